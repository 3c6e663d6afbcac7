/*
 * failpoint.h - places where a test may hold, break or kill the process. They exist only in builds with
 * FERMATA_FAILPOINTS; in a release they are nothing at all. The places are those of core/failpoint.def.
 *
 * FERMATA_FAILPOINT is a comma-separated list of NAME=ACTION: `kill` ends the process as kill -9 does,
 * `error` makes the step fail with RETRY, `delay:MS` holds the thread and `stop` the whole process, as
 * SIGSTOP does, until somebody sends SIGCONT. Where FERMATA_FAILPOINT_DIR is set, a file arm.NAME in it
 * holds an action for the first process that gets there, once; and reaching a place where something is to
 * happen leaves a file NAME.PID, so that a test can strike just then.
 * FERMATA_SABOTAGE names a rule of the protocol that is broken on purpose (no_ledger, position_ahead):
 * a test that is to find such faults must find them there.
 */
#ifndef FERMATA_CORE_FAILPOINT_H
#define FERMATA_CORE_FAILPOINT_H

#include "core/error.h"

#include <stdbool.h>

enum failpoint {
#define FAILPOINT(identifier, name, line) FAILPOINT_##identifier,
#define SABOTAGE(identifier, name, line)  FAILPOINT_##identifier,
#include "core/failpoint.def"
#undef FAILPOINT
#undef SABOTAGE
	FAILPOINT_COUNT
};

#ifdef FERMATA_FAILPOINTS

/* Marks the place and does what a test wants there. RETRY for `error`, else OK. */
FM_MUSTCHECK enum fate failpoint(enum failpoint place, struct error *error);
/* Is this rule of the protocol to be broken? */
bool sabotaged(const char *rule);

#else

static inline FM_MUSTCHECK enum fate failpoint(enum failpoint place, struct error *error)
{
	(void)place;
	(void)error;
	return FATE_OK;
}

static inline bool sabotaged(const char *rule)
{
	(void)rule;
	return false;
}

#endif

#endif
