/* outbox.h - an outbox that is full before a worker runs. */
#ifndef FERMATA_BENCH_OUTBOX_H
#define FERMATA_BENCH_OUTBOX_H

#include "bench/run_inner.h"

/* Decides the next count sessions in the database, no worker running: each has a verdict, a decision and a row in the
 * outbox then. As the store's errors. */
FM_MUSTCHECK enum fate outbox_fill(struct run *run, uint32_t count, struct error *error);

#endif
