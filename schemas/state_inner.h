/* state_inner.h - the schemas of a folder, as the codec and the migration of states see them. Private to this
 * room. */
#ifndef FERMATA_SCHEMAS_STATE_INNER_H
#define FERMATA_SCHEMAS_STATE_INNER_H

#include "schemas/migrate.h"
#include "schemas/state.h"

struct known_schema {
	const char *name; /* of the folder or file */
	const char *full; /* full name of its root; the name when the root has none */
	struct view text;
	uint64_t fingerprint;
	uint8_t sha256[32];    /* of its canonical form */
	struct schema *schema; /* of a reader, else NULL */
	const char **aliases;  /* of the root, as full names */
	size_t aliases_len;
};

struct states {
	struct arena *arena;
	char *path;
	struct known_schema *schemas;
	size_t len, cap;
	uint8_t seen[32]; /* of names, sizes and times in the folder */
	struct migrate_cache *cache;
};

/* The reader of states whose schema has that name: its own, its root's, or an alias of its root's. */
const struct known_schema *states_reader(const struct states *states, struct view name);
/* What was written as name with that fingerprint, or with that SHA-256. */
const struct known_schema *states_writer(const struct states *states, const char *name, uint64_t fingerprint);
const struct known_schema *states_writer_of(const struct states *states, const char *name,
                                            const uint8_t sha256[32]);

/* Appends body, written under writer, as the text reader has it. */
FM_MUSTCHECK enum fate states_resolve(const struct states *states, const struct known_schema *writer,
                                      struct view reader, struct view body, struct buffer *out,
                                      struct error *error);

/* state_folder.c: reads the folder into states; only the digest when just_look. */
FM_MUSTCHECK enum fate states_read(struct states *states, bool just_look, uint8_t ret_seen[32],
                                   struct error *error);
/* state_known.c: takes a text in. path is for messages. */
FM_MUSTCHECK enum fate states_add(struct states *states, const char *name, bool reader, struct view text,
                                  const char *path, struct error *error);

#endif
