/* test_schemas_catalog.h - what the tests of the catalog share. */
#ifndef FERMATA_TESTS_UNIT_TEST_SCHEMAS_CATALOG_H
#define FERMATA_TESTS_UNIT_TEST_SCHEMAS_CATALOG_H

#include "schemas/catalog.h"
#include "schemas/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONG_MS              600000
#define STATE(fields)        "{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[" fields "]}"
#define FIELD(name, type)    "{\"name\":\"" name "\",\"type\":\"" type "\"}"
#define DEFAULT(name, value) "{\"name\":\"" name "\",\"type\":\"long\",\"default\":" value "}"
#define V1                   STATE(FIELD("n", "int"))
#define V2                   STATE(FIELD("n", "long") "," DEFAULT("extra", "1"))
#define V3                   STATE(FIELD("n", "long") "," DEFAULT("extra", "1") "," DEFAULT("more", "2"))

static struct arena *arena;

static inline void must(enum fate fate, const struct error *error)
{
	if (fate != FATE_OK)
		fail_msg("%s", error->message);
}

static inline struct catalog *new_catalog(const char *path, bool registry, bool asks)
{
	struct error error = { 0 };
	struct catalog_settings settings = { .folder = path, .registry = registry, .asks = asks };
	struct catalog *catalog;

	must(catalog_new(&catalog, &settings, &error), &error);
	return catalog;
}

static inline uint64_t fingerprint_of(const char *text)
{
	struct error error = { 0 };
	uint64_t fingerprint;
	uint8_t sha256[32];

	must(catalog_identify(view_of(text), &fingerprint, sha256, &error), &error);
	return fingerprint;
}

static inline struct schema_want want_of(enum want_kind kind, const char *name, uint64_t fingerprint)
{
	struct schema_want want = { .kind = kind, .fingerprint = fingerprint };

	snprintf(want.name, sizeof(want.name), "%s", name);
	return want;
}

static inline void learn(struct catalog *catalog, const struct schema_want *want, const char *text)
{
	struct error error = { 0 };

	must(catalog_learn(catalog, want, view_of(text), &error), &error);
}

static inline void learn_reader(struct catalog *catalog, const char *name, const char *text)
{
	struct schema_want want = want_of(WANT_READER, name, 0);

	learn(catalog, &want, text);
}

/* A state with n = 7. */
static inline struct app_state state_of(const char *name, const char *text)
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint_of(text), bytes);
	return (struct app_state){
		.present = true,
		.schema = view_of(name),
		.encoding = ENCODING_AVRO,
		.fingerprint = arena_copy(arena, (struct view){ bytes, 8 }),
		.body = VIEW_LITERAL("\x0e"),
	};
}

/* What becomes of it, or NULL when it passes unchanged. */
static inline const char *body_of(struct catalog *catalog, const struct app_state *in)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	must(state_migrate(catalog, in, arena, &out, &from, &want, &error), &error);
	assert_int_equal(want.kind, WANT_NOTHING);
	if (!view_is_null(from))
		return arena_text(arena, out.body);
	assert_true(view_equal(out.body, in->body));
	return NULL;
}

static inline struct schema_want misses(struct catalog *catalog, const struct app_state *in)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	assert_int_equal(state_migrate(catalog, in, arena, &out, &from, &want, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	return want;
}

#endif
