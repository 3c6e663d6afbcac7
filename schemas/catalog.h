/*
 * catalog.h - every schema that is known, and what is missing.
 *
 * Schemas come from the program itself (the four records), from the folder `schemas.path`, and from whoever
 * is asked for what is missing: PostgreSQL (fermata.schema_text) and a registry. The catalog asks nobody.
 * When something is wanted that it does not have, a codec says RETRY with ERR_UNKNOWN_SCHEMA and codec_want
 * tells what; the caller looks for it, and says catalog_learn or catalog_deny, and tries again.
 *
 * For all threads. Schemas are never taken out again before catalog_free: what was found is good for as long
 * as the catalog is; a folder that has changed or a newer version in the registry changes which one is the
 * reader.
 *
 * The folder: NAME.avsc is what today's application reads, the *.avsc in the folder NAME what older (or
 * newer) ones wrote; NAME is the full name of the state's schema (AppState.schema), or
 * fermata.v1.SuspendEvent and the other records: what reads those is in the program. Names that begin with a
 * dot are passed over, links followed. NAME.avsc reads also states of its root's name and of its root's
 * aliases that have no file of their own.
 *
 * A reader from the folder stands before one from the registry, which reads states of exactly the name that
 * it was wanted for. Of several texts of one canonical form the folder's stands before what was learnt; in
 * the folder the one under the reader's NAME before others, the last file before others.
 */
#ifndef FERMATA_SCHEMAS_CATALOG_H
#define FERMATA_SCHEMAS_CATALOG_H

#include "core/records.h"

#define CATALOG_NAME_MAX 1024                       /* bytes, without the NUL */
#define STATE_BYTES_MAX  ((size_t)64 * 1024 * 1024) /* of a migrated state */

struct catalog;

struct catalog_settings {
	const char *folder; /* schemas.path; NULL or "": none */
	bool registry; /* a registry is configured: its framings are read, and states may have readers there */
	bool asks;     /* somebody answers wants. Without it, what is missing is refused at once */
};

/* FATAL ERR_USAGE: the folder cannot be read (see catalog_folder). */
FM_MUSTCHECK enum fate catalog_new(struct catalog **ret_catalog, const struct catalog_settings *settings,
                                   struct error *error);
void catalog_free(struct catalog *catalog);

/* Reads the folder again when it has changed (names, sizes, times of its files). On failure (FATAL ERR_USAGE: the
 * folder itself cannot be read, or there are too many files in it; RETRY ERR_MEMORY or ERR_SYSTEM: not now) everything
 * stays as it was. *ret_changed may be NULL. When it has changed, what was denied is forgotten. Without a folder: OK, not
 * changed. A file that cannot be used does not keep the others from being used: see catalog_each_broken. */
FM_MUSTCHECK enum fate catalog_folder(struct catalog *catalog, bool *ret_changed, struct error *error);

/* ---- what is missing ---- */

enum want_kind {
	WANT_NOTHING,
	WANT_ID,          /* a registry's schema id */
	WANT_GUID,        /* a registry's GUID */
	WANT_FINGERPRINT, /* of a record `name` that an unknown version wrote: CRC-64-AVRO */
	WANT_SHA256,      /* of a SuspendEvent as it was sealed: SHA-256 of the canonical form */
	WANT_READER,      /* the schema that today's application reads its state `name` with */
	WANT_STATE,       /* the schema that a state `name` was written with, by fingerprint */
};

struct schema_want {
	enum want_kind kind;
	int32_t id;
	uint8_t guid[16];
	uint64_t fingerprint;
	uint8_t sha256[32];
	char name[CATALOG_NAME_MAX + 1];
};

/* What a text is known by: CRC-64-AVRO and SHA-256 of its canonical form. REJECT ERR_INVALID: it is no
 * schema. */
FM_MUSTCHECK enum fate catalog_identify(struct view text, uint64_t *ret_fingerprint, uint8_t ret_sha256[32],
                                        struct error *error);

bool want_equal(const struct schema_want *a, const struct schema_want *b);
#define WANT_TEXT_SIZE 192 /* what want_text says at most, with the NUL */
/* For logs and messages: "schema id 17", "the reader of com.example.State" (long names are cut). Returns
 * text. */
const char *want_text(const struct schema_want *want, char *text, size_t size);

/*
 * The answer to a want: its text. For WANT_READER the new reader of that name, which replaces an older one of
 * the registry's. REJECT, and nothing is learnt: it is no schema (ERR_INVALID), or has another fingerprint or
 * SHA-256 than was wanted (ERR_UNKNOWN_SCHEMA); for WANT_ID and WANT_GUID any schema is taken here, and the
 * codec refuses one that does not resolve. What was learnt for the same want before is replaced, a denial of
 * it ends. RETRY ERR_MEMORY: no memory, or there are 100,000 schemas already that are not the folder's, or
 * 256 MiB of them. want->kind is not WANT_NOTHING.
 */
FM_MUSTCHECK enum fate catalog_learn(struct catalog *catalog, const struct schema_want *want,
                                     struct view text, struct error *error);
/* There is no such schema: for ms from now on it is refused without a want (WANT_READER: the state passes
 * as it is). why may be NULL, and goes into the refusal. At most 4,096 denials are remembered, the oldest
 * go first. */
void catalog_deny(struct catalog *catalog, const struct schema_want *want, int64_t ms, const char *why);
/* Is that still so? What may stand in a broken file waits all the same, but need not be asked for again meanwhile. */
bool catalog_is_denied(struct catalog *catalog, const struct schema_want *want);

/* ---- looking at it ---- */

struct catalog_entry {
	const char *name; /* under which it is kept: NAME of the folder, or its root's full name */
	const char *full; /* full name of its root; name when the root has none */
	bool reader;      /* what today's application reads */
	enum { FROM_PROGRAM, FROM_FOLDER, FROM_ELSEWHERE } from;
	int32_t registry_id; /* 0: none is known */
	uint64_t fingerprint;
	uint8_t sha256[32];
	struct view text;
};

/* Calls each until it returns false; in the order of name, then readers first. each may not call the
 * catalog. */
void catalog_each(struct catalog *catalog, bool (*each)(void *context, const struct catalog_entry *entry),
                  void *context);
/* The text of the schema whose canonical form has that SHA-256: what a codec said that a suspend was written in.
 * It is the catalog's, and stays. False: it is not known, or is today's own. */
bool catalog_text(struct catalog *catalog, const uint8_t sha256[32], struct view *ret_text);
size_t catalog_readers(struct catalog *catalog);
size_t catalog_schemas(struct catalog *catalog); /* those of the program not counted */

/* A file of the folder that cannot be used: it is no schema, cannot be read, or has the fingerprint of another. While it
 * is there, what may stand in it is wanted (RETRY ERR_UNKNOWN_SCHEMA; without somebody who answers: REJECT), and neither
 * denied nor passed over: as a reader, all states of NAME, and those of other names without a reader that may be its
 * aliases (any, where its text does not tell); of what was written, whatever else is known nowhere. */
struct catalog_broken {
	const char *file; /* below the folder */
	const char *name; /* NAME */
	bool reader;      /* NAME.avsc, else NAME/...avsc */
	const char *why;
};
size_t catalog_broken(struct catalog *catalog);
/* In the order of their names. each may not call the catalog. */
void catalog_each_broken(struct catalog *catalog,
                         void (*each)(void *context, const struct catalog_broken *file), void *context);
#define BROKEN_WHY_SIZE 128
/* May the answer to the want stand in such a file? Then text says in which one, and why it cannot be used. */
bool catalog_is_broken(struct catalog *catalog, const struct schema_want *want, char *text, size_t size);

/* ---- states ---- */

/*
 * A state under the schema that its application reads today. Unchanged (its views borrow from in, *ret_from
 * is the null view) when it is not there, is JSON, has no reader, or has the reader's fingerprint already.
 * Else its body, in the arena, is what the reader's schema makes of it, schema and fingerprint are the
 * reader's, and *ret_from is the fingerprint that it was written with, hex as in the single-object header
 * (ResumeEvent.migrated_from).
 *
 * RETRY with ERR_UNKNOWN_SCHEMA: *ret_want says what is to be looked for first, or waited for (catalog_is_broken). REJECT (for quarantine; the
 * message names fields and schemas, never content): ERR_INVALID, it is JSON and is not, or the schemas do not
 * resolve; ERR_MALFORMED, its bytes are not of its schema; ERR_UNKNOWN_SCHEMA, nobody has what it was written
 * with: add the schema and retry; ERR_TOO_LARGE. ret_want and ret_from may not be NULL. catalog NULL: no
 * schemas.
 */
FM_MUSTCHECK enum fate state_migrate(struct catalog *catalog, const struct app_state *in, struct arena *arena,
                                     struct app_state *ret_state, struct view *ret_from,
                                     struct schema_want *ret_want, struct error *error);

/* A reader that is in no catalog, for "would what waits load under it"; keeps nothing of text. REJECT ERR_INVALID: it
 * is no schema. */
struct state_reader;
FM_MUSTCHECK enum fate state_reader_new(struct state_reader **ret_reader, struct view text,
                                        struct error *error);
void state_reader_free(struct state_reader *reader); /* NULL is fine */

/* As state_migrate with that reader of whatever in is. */
FM_MUSTCHECK enum fate state_migrate_to(struct catalog *catalog, const struct state_reader *to,
                                        const struct app_state *in, struct arena *arena,
                                        struct app_state *ret_state, struct schema_want *ret_want,
                                        struct error *error);

#endif
