/*
 * way_out.h - how checkpoints are led out of a state: what `quarantine retry` and `drop` and `in-doubt resume` and `drop`
 * have in common. Which are meant, asking first, the deed, and saying what became of each.
 */
#ifndef FERMATA_CLI_WAY_OUT_H
#define FERMATA_CLI_WAY_OUT_H

#include "cli/cli.h"
#include "store/store_way_out.h"

/* What is done to one: a function of store_way_out.h. RETRY: whether it was done may be unknown. */
typedef enum fate way_deed(struct cli *cli, struct store *store, const struct operator_deed *deed,
                           struct arena *arena, struct deed_result *ret_result, struct error *error);

/* What is said of what is QUARANTINED afterwards. */
#define NOT_MENDED "quarantined: the row of fermata.common that it stands on is not there"

struct way_out {
	enum gate_state from;
	const char *word;    /* what is in that state is so: "quarantined", "in doubt" */
	const char *several; /* "are quarantined" */
	const char *done;    /* what is to be done to it: "retried" */
	way_deed *deed;
	const char *follows[GATE_STATE_COUNT]; /* what is said of one that is in that state afterwards */
	bool all;             /* the command has --all with its filters, and --dry-run; else it takes one ID */
	bool wants_reason;    /* --reason must be given */
	const char *question; /* asked before each, unless --yes; NULL: nothing is asked */
};

/* The whole command; returns the exit code. */
int way_out_run(struct cli *cli, const struct way_out *way);

#endif
