/* settled.h - tables that have been used for a long time: rows of sessions that are over. */
#ifndef FERMATA_BENCH_SETTLED_H
#define FERMATA_BENCH_SETTLED_H

#include "bench/run_inner.h"

/* Fills the tables with so many settled sessions, a worker running: some of this run are decided and published, and their rows
 * (checkpoint and decision; the payloads of such sessions are gone) are put in again and again under other ids, in the order
 * of time. Then the tables are vacuumed, as autovacuum would. */
FM_MUSTCHECK enum fate settled_fill(struct run *run, struct error *error);

#endif
