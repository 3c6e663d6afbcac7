/* deadline.h - for calls of foreign libraries that may never come back. */
#ifndef FERMATA_CORE_DEADLINE_H
#define FERMATA_CORE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

typedef void deadline_work(void *context);

/*
 * Runs work(context) on a thread of its own and waits for it at most deadline_ms. True: it has ended. False:
 * it is still running, or could not be started (then *ret_started is false); what it was given stays its own
 * until the process ends, so context must not be on the caller's stack, and it is work that frees it.
 */
bool deadline_run(deadline_work *work, void *context, int64_t deadline_ms, bool *ret_started);

#endif
