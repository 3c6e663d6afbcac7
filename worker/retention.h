/*
 * retention.h - what becomes of what is settled (protocol.md, "Retention"): sealed states go after retention.payload,
 * rows after retention.rows. The reaper's thread does it, a little at each of its ticks; of all workers one at a time.
 */
#ifndef FERMATA_WORKER_RETENTION_H
#define FERMATA_WORKER_RETENTION_H

#include "store/store_retention.h"
#include "worker/worker.h"

enum retention_phase {
	RETENTION_IDLE,
	RETENTION_PAYLOADS,
	RETENTION_ROWS,
	RETENTION_ROWS_AHEAD,
	RETENTION_ORPHANS
};

struct retention {
	struct worker *worker;
	struct store *store; /* the reaper's */
	struct arena *sweep; /* of one sweep */
	struct arena *page;  /* of one page of it */
	enum retention_phase phase;
	int64_t next_ms;  /* mono: when the next sweep is asked for */
	int64_t claim_ms; /* mono: when the claim is to be renewed */
	int64_t idle_us;  /* what this sweep has taken so far for looking at what stays */
	size_t looked;    /* how many a step has looked at */
	int64_t now;      /* us: the time of this sweep */
	bool yields;      /* the rest of this sweep waits for the next tick */
	bool unfinished;  /* a day could not be dropped: another sweep follows soon */

	struct payload_day *days;
	size_t days_len;
	size_t day; /* the one that is swept */
	struct uuid from;

	struct kafka_low *lows;
	size_t lows_len;
	int64_t from_at;
	struct uuid from_id;

	size_t deleted, moved, dropped, purged, orphans; /* by this sweep */
};

FM_MUSTCHECK enum fate retention_init(struct retention *retention, struct worker *worker, struct store *store,
                                      struct error *error);
void retention_done(struct retention *retention);
/* Goes on for a moment, when there is something to do. RETRY: PostgreSQL or Kafka is away; the sweep begins anew. */
FM_MUSTCHECK enum fate retention_tick(struct retention *retention, struct error *error);
/* Is there more to do at once? Then the next tick comes after a breath, for a sweep goes on until nothing is left. */
bool retention_goes_on(const struct retention *retention);

#endif
