/*
 * store_schemas.h - schema texts that were ever seen, and what a registry said of them (fermata.schema_text,
 * fermata.registry_schema).
 *
 * What is read here may have been tampered with: who uses a text works out its fingerprint and digests anew, and
 * believes only those. Texts live in the arena that a call was given; REJECT ERR_MEMORY when it is too small.
 */
#ifndef FERMATA_STORE_STORE_SCHEMAS_H
#define FERMATA_STORE_STORE_SCHEMAS_H

#include "store/store.h"

struct schema_row {
	uint8_t text_sha256[32]; /* of the text: two texts may have one canonical form and other defaults */
	uint8_t sha256[32];      /* of the canonical form */
	uint64_t fingerprint;    /* CRC-64-AVRO of the canonical form */
	struct view text;
};

/* Keeps the texts that are not there yet; the others stay as they are. Doubles are no harm. Committed. */
FM_MUSTCHECK enum fate store_schemas_keep(struct store *store, const struct schema_row *rows, size_t len,
                                          int64_t now, struct error *error);

/* Of the texts with that canonical form the one that was seen first. */
FM_MUSTCHECK enum fate store_schema_by_sha256(struct store *store, const uint8_t sha256[32],
                                              struct arena *arena, bool *ret_found,
                                              struct schema_row *ret_row, struct error *error);
/* One text of each canonical form with that fingerprint: the one that was seen first. */
FM_MUSTCHECK enum fate store_schema_by_fingerprint(struct store *store, uint64_t fingerprint,
                                                   struct arena *arena, struct schema_row **ret_rows,
                                                   size_t *ret_len, struct error *error);

/* ---- what a registry said ---- */

enum registry_fact_kind {
	FACT_ID,     /* ref: the id, decimal */
	FACT_GUID,   /* ref: 32 hex digits */
	FACT_READER, /* ref: the name of a state's schema; the text is the latest version that was seen */
	FACT_OWN,    /* ref: a subject; id is the one under which our own text is registered there */
};
const char *registry_fact_name(int kind); /* "id", "guid", "reader", "own" */

struct registry_fact {
	enum registry_fact_kind kind;
	struct view ref;
	int32_t id;               /* 0: not known */
	struct schema_row schema; /* text null: the fact has none */
};

/*
 * Keeps what a registry said, with the texts, in one transaction, committed. An id or GUID that is known already keeps
 * what it had first, for it never means anything else; a reader or an id of our own is replaced. When one call holds
 * a fact twice, the same rule holds between them. registry: its address, without credentials.
 */
FM_MUSTCHECK enum fate store_registry_keep(struct store *store, const char *registry,
                                           const struct registry_fact *facts, size_t len, int64_t now,
                                           struct error *error);

/* What is kept of one: *ret_id is 0 and *ret_text the null view where it has none, or was not found. */
FM_MUSTCHECK enum fate store_registry_find(struct store *store, const char *registry,
                                           enum registry_fact_kind kind, struct view ref, struct arena *arena,
                                           bool *ret_found, int32_t *ret_id, struct view *ret_text,
                                           struct error *error);

struct registry_reader {
	struct view name; /* of the state's schema */
	int32_t id;       /* 0: not known */
	struct view text; /* never null */
};

/* The readers that are known of a registry, by name. */
FM_MUSTCHECK enum fate store_registry_readers(struct store *store, const char *registry, struct arena *arena,
                                              struct registry_reader **ret_readers, size_t *ret_len,
                                              struct error *error);

/* ---- looking at it ---- */

struct schema_seen {
	struct schema_row schema;
	int64_t seen_at;      /* us */
	struct view registry; /* a registry that has it, or null */
	int32_t registry_id;  /* there; 0: not known */
	bool reader;          /* some registry's reader of a state */
};

/* All texts in the order in which they were seen; stops to call each when it returns false. The arena is reset before
 * each text; each may not call the store. */
typedef bool store_each_schema(void *context, const struct schema_seen *seen);
FM_MUSTCHECK enum fate store_schemas_each(struct store *store, struct arena *arena, store_each_schema *each,
                                          void *context, struct error *error);

struct schema_use {
	uint8_t sha256[32]; /* of the canonical form that suspend events were written with */
	int64_t waiting;    /* how many of those are PENDING, DECIDED, QUARANTINED or IN_DOUBT */
};

/* Reads every checkpoint. */
FM_MUSTCHECK enum fate store_schemas_used(struct store *store, struct arena *arena,
                                          struct schema_use **ret_uses, size_t *ret_len, struct error *error);

#endif
