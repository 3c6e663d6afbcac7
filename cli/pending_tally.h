/* pending_tally.h - `fermata schema check --pending`: what became of the checkpoints that wait, counted, and those
 * that would not load in groups. */
#ifndef FERMATA_CLI_PENDING_TALLY_H
#define FERMATA_CLI_PENDING_TALLY_H

#include "cli/checking.h"
#include "core/checkpoint.h"
#include "schemas/fingerprint.h"

enum loaded {
	LOADED_UNCHANGED, /* written under the very schema */
	LOADED_MIGRATED,
	LOADED_JSON,    /* no schema is needed for it */
	LOADED_NOT,     /* would not load */
	LOADED_OTHER,   /* a state of another schema */
	LOADED_WITHOUT, /* no state */
	LOADED_COUNT,
};

struct pending_group; /* those that would not load for one reason and were written with one schema */

struct pending_tally {
	size_t counts[LOADED_COUNT];
	size_t unopened; /* of LOADED_NOT: nobody knows what is in them */
	struct pending_group *groups;
	size_t groups_len;
	size_t ungrouped; /* of LOADED_NOT, beyond the number of groups that are kept */
	int64_t shown_at; /* ms: when the progress was last shown */
	bool shows;       /* stderr is a terminal */
	bool has_shown;
};

void tally_init(struct pending_tally *tally);
void tally_done(struct pending_tally *tally);

/* One that would not load. fingerprint: what it was written with, hex; "" when that is not known. With --json its
 * line is written. */
FM_MUSTCHECK enum fate tally_not(struct pending_tally *tally, const struct checking *checking,
                                 const struct checkpoint *row, const char *fingerprint,
                                 const struct error *why, struct error *error);
/* One of the others. Either also shows the progress now and then. */
void tally_one(struct pending_tally *tally, enum loaded loaded);

/* How many wait that are of the schema, or may be. */
size_t tally_waiting(const struct pending_tally *tally);
/* Takes the progress away, and says what came out. */
FM_MUSTCHECK enum fate tally_say(struct pending_tally *tally, const struct checking *checking,
                                 struct error *error);

#endif
