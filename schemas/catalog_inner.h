/*
 * catalog_inner.h - the catalog, as its parts, the codec and the migration of states see it. Private to this
 * room.
 *
 * What answers a want is found in a map by the want's key. There are three maps: the readers of the folder,
 * made anew when the folder has changed; what the folder has, or had, that was written; and what was learnt.
 * Names and fingerprints come from anybody, so a key that has a name in it is a SHA-256, which nobody can
 * make clash.
 */
#ifndef FERMATA_SCHEMAS_CATALOG_INNER_H
#define FERMATA_SCHEMAS_CATALOG_INNER_H

#include "schemas/catalog.h"
#include "schemas/catalog_broken.h"
#include "schemas/migrate.h"
#include "schemas/texts.h"

#include <pthread.h>

#define DENIALS_MAX      4096
#define LEARNT_MAX       100000
#define LEARNT_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define FOLDER_BYTES_MAX ((size_t)512 * 1024 * 1024) /* all texts that the folder ever had */
#define DENIED_WHY_MAX   120
#define BINDING_BYTES    64 /* what one takes in a map, about */

/* One text under one name. Nothing of it changes but what the catalog's lock guards. */
struct known_schema {
	const char *name; /* of the folder or file; of what was learnt its root's full name */
	const char *full; /* full name of its root; the name when the root has none */
	struct migrate_text text;
	uint64_t fingerprint;
	uint8_t sha256[32]; /* of its canonical form */
	bool elsewhere;     /* not from the folder */
	size_t weight;      /* bytes that it takes */
	/* Under the lock: */
	struct schema *schema; /* set once, before it is first a reader; then it may be read without the lock */
	size_t reads;          /* names that it is the reader of */
	size_t loaded;         /* the reading of the folder that last saw it */
	int32_t registry_id;   /* or 0 */
};

struct key {
	uint8_t kind; /* enum want_kind, or KEY_TEXT */
	uint8_t bytes[32];
};

/* Beside the kinds of wants: a text with its name and origin. */
#define KEY_TEXT 100

struct key key_of(const struct schema_want *want);
/* A key of kind with a name in it. */
struct key key_named(int kind, const char *name, uint64_t fingerprint);
struct key key_sha256(const uint8_t sha256[32]);
struct key key_text(const struct known_schema *known);
bool key_equal(const struct key *a, const struct key *b);
/* seed makes it hard to say beforehand which keys meet. */
uint64_t key_hash(const struct key *key, uint64_t seed);

struct binding;

struct map {
	struct binding **buckets;
	size_t cap, len; /* cap: 0 or a power of two */
};

struct known_schema *map_get(const struct map *map, uint64_t seed, const struct key *key);
/* Replaces what is there. False: no memory. */
FM_MUSTCHECK bool map_set(struct map *map, uint64_t seed, const struct key *key, struct known_schema *known);
void map_done(struct map *map);

struct denial {
	struct key key;
	int64_t until_ms; /* clock_mono_ms */
	uint16_t next;    /* with the same hash: its place + 1, or 0 */
	bool used;
	char why[DENIED_WHY_MAX + 1];
};

struct denials {
	struct denial slots[DENIALS_MAX]; /* a ring */
	uint16_t buckets[DENIALS_MAX];    /* place + 1, or 0 */
	size_t next;
};

/* NULL when it is not denied at that time. */
const struct denial *denials_find(const struct denials *denials, uint64_t seed, const struct key *key,
                                  int64_t now_ms);
void denials_add(struct denials *denials, uint64_t seed, const struct key *key, int64_t until_ms,
                 const char *why);
void denials_remove(struct denials *denials, uint64_t seed, const struct key *key);
void denials_clear(struct denials *denials);

struct catalog {
	char *folder; /* NULL: none */
	bool registry, asks;
	uint64_t seed;
	struct migrate_cache *cache;
	pthread_mutex_t reload; /* who reads the folder; before lock */
	uint8_t seen[32];       /* of names, sizes and times in the folder: under reload */
	bool seen_once;
	pthread_mutex_t listing; /* catalog_each's room; before lock */
	pthread_rwlock_t lock;   /* what follows */
	struct known_schema **known;
	size_t len, cap;
	struct catalog_entry *list; /* room for cap and SCHEMA_TEXTS */
	struct map texts;           /* of known, by key_text */
	struct map readers, written, learnt;
	struct broken broken; /* files of the folder that cannot be used */
	size_t loads;         /* of the folder */
	size_t folder_bytes, learnt_len, learnt_bytes;
	struct denials *denials;
};

/* ---- catalog_known.c ---- */

/* Parses text and makes what is known of it; *ret_schema is the caller's. name may be NULL: its root's.
 * REJECT ERR_INVALID: no schema. */
FM_MUSTCHECK enum fate known_new(struct known_schema **ret_known, struct schema **ret_schema,
                                 const char *name, struct view text, bool elsewhere, struct error *error);
void known_free(struct known_schema *known);
FM_MUSTCHECK enum fate schema_digest(const struct schema *schema, uint64_t *ret_fingerprint,
                                     uint8_t ret_sha256[32], struct error *error);

/* Room for one schema more; once before anything else. */
FM_MUSTCHECK bool known_reserve(struct catalog *catalog);
/* Would more bytes be too much? RETRY ERR_MEMORY. */
FM_MUSTCHECK enum fate known_check_room(const struct catalog *catalog, bool elsewhere, size_t more,
                                        struct error *error);
/* Under the lock, to be written to. Takes *made into the catalog, or frees it and gives the one that is
 * there; on failure it is gone too. *schema, when schema is not NULL and the known one has none, is taken
 * as well. RETRY ERR_MEMORY: no memory, or it would be too much. */
FM_MUSTCHECK enum fate known_add(struct catalog *catalog, struct known_schema **made, struct schema **schema,
                                 struct error *error);

/* ---- catalog.c ---- */

enum answer {
	ANSWER_KNOWN,
	ANSWER_DENIED,
	ANSWER_MISSING,
	ANSWER_BROKEN, /* it may stand in a file of the folder that cannot be used: before denials, and, of a reader, before
	                * what was learnt */
};

/*
 * What answers want. WANT_STATE looks first among what was written in the folder `folder`, then among all of
 * the folder's: their aliases and logical types may differ. Others leave it NULL. ret_why: of a denial, or
 * of the broken file, else "". It is for the caller to look at catalog->asks.
 */
enum answer catalog_find(struct catalog *catalog, const struct schema_want *want, const char *folder,
                         const struct known_schema **ret_known, char ret_why[DENIED_WHY_MAX + 1]);

/* Appends body, written under writer, as the text reader has it. */
FM_MUSTCHECK enum fate catalog_resolve(struct catalog *catalog, const struct known_schema *writer,
                                       const struct migrate_text *reader, struct view body,
                                       struct buffer *out, struct error *error);

#endif
