/*
 * deadletter.h - what cannot be understood leaves by here: the original bytes, key and headers untouched,
 * and headers that say why. No header repeats any content of the state.
 */
#ifndef FERMATA_WORKER_DEADLETTER_H
#define FERMATA_WORKER_DEADLETTER_H

#include "producer/producer.h"
#include "worker/item.h"

/* The report callback that the producer of dead letters has to be opened with. */
void deadletter_report(void *context, const struct outgoing *sent, int64_t offset, const struct error *error);

/* Produces a letter for every dead item of the batch that has none yet and waits for the acknowledgements, at most 10 s each
 * time. One that is too large for its topic goes without its value and with the code too_large; if it still
 * is, without the key and the headers that it came with. RETRY: not all are acknowledged; none is lost, for
 * the batch is tried again (a second letter may result). */
FM_MUSTCHECK enum fate deadletter_send(struct producer *producer, const char *topic, struct item **items,
                                       size_t len, struct arena *arena, struct error *error);

#endif
