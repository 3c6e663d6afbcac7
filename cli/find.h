/* find.h - what somebody means who gives an ID: a checkpoint, or the gates of a session. */
#ifndef FERMATA_CLI_FIND_H
#define FERMATA_CLI_FIND_H

#include "store/store.h"

#define FIND_MAX 10000 /* gates of one session that are looked at */

struct found {
	struct checkpoint **rows; /* whole copies in the arena, oldest first */
	size_t len;
	bool by_checkpoint; /* the ID was that of a checkpoint */
};

/*
 * A checkpoint_id (36 characters, either case), else a session_id; a session may well be named by a UUID.
 * Nothing found is OK with len 0. open_only counts for sessions only.
 */
FM_MUSTCHECK enum fate find_checkpoints(struct store *store, const char *id, bool open_only,
                                        struct arena *arena, struct found *ret_found, struct error *error);

/* The same; of a session only the gates in that state, which may be any number. */
FM_MUSTCHECK enum fate find_in_state(struct store *store, const char *id, enum gate_state state,
                                     struct arena *arena, struct found *ret_found, struct error *error);

/* Says on stderr that nothing is stored under the ID; returns the exit code. */
int find_say_unknown(const char *id);

/* The same where it is a session and several of its gates could be meant. what: "wait", "are in doubt". */
int find_say_several(const char *id, const struct found *found, const char *what);

/* The same where nothing was found that is so (word: "quarantined", "in doubt"): what there is instead. */
int find_say_not_so(struct store *store, const char *id, const char *word, struct arena *arena);

/* A copy of the row that lives as long as the arena; NULL when there is no memory. */
struct checkpoint *checkpoint_copy(const struct checkpoint *checkpoint, struct arena *arena);

#endif
