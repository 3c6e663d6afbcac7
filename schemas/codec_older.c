/* Records that other schemas wrote, under the schemas of today. */
#include "schemas/codec_inner.h"

#include "schemas/catalog_inner.h"
#include "schemas/fingerprint.h"

#include <stdio.h>
#include <string.h>

static enum fate migrate(struct codec *codec, enum part whole, const struct known_schema *known,
                         struct view body, struct view *ret_body, struct error *error)
{
	buffer_reset(&codec->migrated);
	enum fate fate = catalog_resolve(codec->settings.catalog, known, &class_of(whole)->text, body,
	                                 &codec->migrated, error);
	if (fate != FATE_OK)
		return fate;
	*ret_body = codec->migrated.len > 0 ? buffer_view(&codec->migrated) : VIEW_LITERAL("");
	return FATE_OK;
}

/* What a frame says that its body was written with. */
static struct schema_want want_of(enum part whole, const struct frame *frame)
{
	struct schema_want want = { .kind = WANT_ID, .id = frame->id };

	if (frame->framing == FRAMING_HEADER_GUID) {
		want.kind = WANT_GUID;
		memcpy(want.guid, frame->guid, sizeof(want.guid));
	}
	if (frame->framing == FRAMING_SINGLE_OBJECT) {
		want.kind = WANT_FINGERPRINT;
		want.fingerprint = frame->fingerprint;
		snprintf(want.name, sizeof(want.name), "%s", class_of(whole)->type->name);
	}
	return want;
}

/* The record that today's schema of that fingerprint is of, or NULL. */
static const char *other_record(const struct schema_want *want)
{
	for (int part = PART_SUSPEND; part <= PART_GATE; part++) {
		if (want->kind == WANT_FINGERPRINT && class_of((enum part)part)->fingerprint == want->fingerprint)
			return class_of((enum part)part)->name;
	}
	return NULL;
}

/* why: of whoever was asked, or "". */
static enum fate unknown_schema(const struct codec *codec, enum part whole, const struct schema_want *want,
                                const char *why, struct error *error)
{
	const struct catalog *catalog = codec->settings.catalog;
	const char *wanted = class_of(whole)->name, *other = other_record(want), *colon = why[0] ? ": " : "";
	char hex[FINGERPRINT_HEX_LEN + 1], text[WANT_TEXT_SIZE];

	fingerprint_hex(want->fingerprint, hex);
	if (other)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "the schema with fingerprint %s is %s, where %s is wanted", hex, other, wanted);
	if (want->kind == WANT_FINGERPRINT)
		return error_set(
			error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
			"no schema of %s with fingerprint %s is known: the value was written with another version%s%s",
			wanted, hex, colon, why);
	(void)want_text(want, text, sizeof(text));
	if (want->kind == WANT_ID && want->id < 0)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "there is no %s: ids are not negative",
		                 text);
	return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "%s is not known%s%s%s", text,
	                 catalog && catalog->asks ? " to the registry of registry.url" : "", colon, why);
}

static enum fate missing(struct codec *codec, const struct schema_want *want, struct error *error)
{
	char text[WANT_TEXT_SIZE];

	codec->want = *want;
	return error_set(error, FATE_RETRY, ERR_UNKNOWN_SCHEMA, "%s is not known yet",
	                 want_text(want, text, sizeof(text)));
}

static enum fate find(struct codec *codec, enum part whole, const struct schema_want *want,
                      const struct known_schema **ret_known, struct error *error)
{
	struct catalog *catalog = codec->settings.catalog;
	char why[DENIED_WHY_MAX + 1] = "";
	enum answer answer = catalog ? catalog_find(catalog, want, NULL, ret_known, why) : ANSWER_DENIED;

	if (answer == ANSWER_KNOWN)
		return FATE_OK;
	bool may_come = answer == ANSWER_MISSING || answer == ANSWER_BROKEN;
	if (may_come && catalog->asks && !other_record(want) && want->id >= 0)
		return missing(codec, want, error);
	return unknown_schema(codec, whole, want, why, error);
}

/* A registry's id may be that of any schema, so what it is stands in the message. */
static enum fate wrap_resolve(enum part whole, const struct schema_want *want,
                              const struct known_schema *known, struct error *error)
{
	char text[WANT_TEXT_SIZE];

	if (want->kind == WANT_FINGERPRINT)
		return error->fate;
	return error_wrap(error, "%s (%.80s) where %s is wanted", want_text(want, text, sizeof(text)),
	                  known->full, class_of(whole)->type->name);
}

enum fate older_take(struct codec *codec, enum part whole, const struct frame *frame, struct view *ret_body,
                     uint8_t ret_sha256[32], struct error *error)
{
	const struct schema_want want = want_of(whole, frame);
	const struct known_schema *known;
	enum fate fate = find(codec, whole, &want, &known, error);

	if (fate != FATE_OK)
		return fate;
	memcpy(ret_sha256, known->sha256, 32);
	if (memcmp(known->sha256, class_of(whole)->sha256, 32) == 0) {
		*ret_body = frame->body;
		return FATE_OK;
	}
	fate = migrate(codec, whole, known, frame->body, ret_body, error);
	return fate == FATE_REJECT ? wrap_resolve(whole, &want, known, error) : fate;
}

/* ---- what was sealed ---- */

static enum fate unknown_sealed(const struct catalog *catalog, const struct schema_want *want,
                                const char *why, struct error *error)
{
	const char *name = class_of(PART_SUSPEND)->type->name;
	char text[WANT_TEXT_SIZE];

	(void)want_text(want, text, sizeof(text));
	if (!catalog || !catalog->asks)
		return error_set(
			error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
			"%s, which wrote it, is not in the folder %s of schemas.path: put it there, then retry", text,
			name);
	return error_set(
		error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		"%s, which wrote it, is not known: put it into the folder %s of schemas.path, then retry%s%s", text,
		name, why[0] ? ": " : "", why);
}

enum fate codec_today(struct codec *codec, const uint8_t sha256[32], struct view body, struct view *ret_body,
                      struct error *error)
{
	struct catalog *catalog = codec->settings.catalog;
	struct schema_want want = { .kind = WANT_SHA256 };
	const struct known_schema *known;
	char why[DENIED_WHY_MAX + 1] = "", text[WANT_TEXT_SIZE];

	*ret_body = body;
	codec->want.kind = WANT_NOTHING;
	if (memcmp(sha256, class_of(PART_SUSPEND)->sha256, 32) == 0)
		return FATE_OK;
	memcpy(want.sha256, sha256, sizeof(want.sha256));
	enum answer answer = catalog ? catalog_find(catalog, &want, NULL, &known, why) : ANSWER_DENIED;
	if ((answer == ANSWER_MISSING || answer == ANSWER_BROKEN) && catalog->asks)
		return missing(codec, &want, error);
	if (answer != ANSWER_KNOWN)
		return unknown_sealed(catalog, &want, why, error);
	enum fate fate = migrate(codec, PART_SUSPEND, known, body, ret_body, error);
	return fate == FATE_REJECT ? error_wrap(error, "%s", want_text(&want, text, sizeof(text))) : fate;
}
