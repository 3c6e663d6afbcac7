/*
 * handover.h - the first gate event of a suspend, told by intake to the relay of its shard in this process as soon as it is
 * committed (worker/tray.h). Inside of the worker only.
 */
#ifndef FERMATA_WORKER_HANDOVER_H
#define FERMATA_WORKER_HANDOVER_H

#include "worker/intake.h"

/* Right after the COMMIT of a run of items, before relays are woken. Only what is PENDING, and has had no other gate event: the
 * record alone decides what that says. What cannot be told is left out: the relays read it. */
void handover_gates(struct intake *intake, struct item *const *items, size_t len,
                    const struct batch_write *write);

#endif
