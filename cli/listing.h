/* listing.h - checkpoints as a table or as lines of JSON: what `fermata pending` and the like have in common. */
#ifndef FERMATA_CLI_LISTING_H
#define FERMATA_CLI_LISTING_H

#include "cli/cli.h"
#include "cli/table.h"
#include "store/store.h"

#define LISTING_TEXTS 4

/* Room for what is made for the cells of one row. */
struct listing_texts {
	char id[UUID_TEXT_LEN + 1]; /* of the row; filled already */
	char text[LISTING_TEXTS][48];
};

struct listing_kind {
	const char *const *titles;
	size_t columns;
	struct checkpoint_filter filter; /* which are listed at all; the options narrow it */
	/* Fills `columns` cells, which are zeroed. */
	void (*cells)(const struct checkpoint *row, int64_t now, struct listing_texts *texts, struct cell *cells);
	const char *nothing; /* said on a terminal where there are none */
};

/* The filter with what --tenant, --agent, --session and --limit say, which the command must know. FATAL ERR_USAGE. */
FM_MUSTCHECK enum fate listing_narrow(const struct cli *cli, struct checkpoint_filter *filter,
                                      struct error *error);
/* How long since, never below zero, whatever the times are. */
int64_t listing_span(int64_t since, int64_t now);
/* The whole command; returns the exit code. */
int listing_run(struct cli *cli, const struct listing_kind *kind);

#endif
