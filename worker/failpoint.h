/*
 * failpoint.h - places where a test may hold, break or kill the process. They exist only in builds with
 * FERMATA_FAILPOINTS; in a release they are nothing at all.
 *
 * FERMATA_FAILPOINT is a comma-separated list of NAME=ACTION: `delay:MS` sleeps, `kill` ends the process
 * as kill -9 does, `error` makes the step fail with RETRY. Where FERMATA_FAILPOINT_DIR is set, a file
 * arm.NAME in it holds an action for the first process that gets there, once; and reaching a place where
 * something is to happen leaves a file NAME.PID, so that a test can strike just then.
 * FERMATA_SABOTAGE names a rule of the protocol that is broken on purpose (no_ledger, position_ahead):
 * a test that is to find such faults must find them there.
 */
#ifndef FERMATA_WORKER_FAILPOINT_H
#define FERMATA_WORKER_FAILPOINT_H

#include "core/error.h"

#include <stdbool.h>

#ifdef FERMATA_FAILPOINTS

/* Marks the place and does what FERMATA_FAILPOINT says; RETRY for `error`. */
FM_MUSTCHECK enum fate failpoint(const char *name, struct error *error);
bool sabotaged(const char *rule);

#else

static inline FM_MUSTCHECK enum fate failpoint(const char *name, struct error *error)
{
	(void)name;
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
