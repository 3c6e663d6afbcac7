/*
 * store_retention.h - what becomes of what is settled: sealed states go after retention.payload, by whole days where
 * they can, rows after retention.rows.
 *
 * Every call is a transaction of its own, committed, and small: it holds up neither intake nor a relay. All of them
 * may be made by several workers at once, and at any time anew: what is gone already is not there to be found.
 */
#ifndef FERMATA_STORE_STORE_RETENTION_H
#define FERMATA_STORE_STORE_RETENTION_H

#include "store/store.h"

/* Of all workers one sweeps at a time. mine: the sweep is ours and goes on, or has just ended. *ret_ours: nobody else
 * begins one for lease_us from now on (by the database's clock); false: another has it, or it is too early. */
FM_MUSTCHECK enum fate store_sweep_claim(struct store *store, int64_t lease_us, bool mine, bool *ret_ours,
                                         struct error *error);

/* ---- sealed states ---- */

struct payload_day {
	int64_t day_us; /* its beginning */
	bool own;       /* it has a partition of its own, which can be dropped; else it lies in the default one */
};

/* The days up to that of until_us that hold payloads, oldest first; they live in the arena. */
FM_MUSTCHECK enum fate store_payload_days_held(struct store *store, int64_t until_us, struct arena *arena,
                                               struct payload_day **ret_days, size_t *ret_len,
                                               struct error *error);

/* A page of one day. What was settled before settled_before, or erased, or has no checkpoint, is due. */
struct payload_page {
	int64_t day_us;
	struct uuid from;       /* begins with this id */
	int64_t settled_before; /* us */
	bool move; /* what is not due is moved to another day, for this one is to be dropped; else what is due is
	                         * deleted */
	int64_t now; /* us: what waits is moved to this day, what is settled to that on which it was settled */
	size_t rows; /* at most so many, and of those that are moved about `bytes`, but at least one */
	size_t bytes;
};

struct payload_swept {
	bool end;         /* of the day; else */
	struct uuid next; /* the next page begins here */
	size_t looked;    /* how many were looked at */
	size_t deleted;
	size_t moved;
};

FM_MUSTCHECK enum fate store_payload_sweep(struct store *store, const struct payload_page *page,
                                           struct arena *arena, struct payload_swept *ret_swept,
                                           struct error *error);

/* Drops the partition of the day of day_us with all that is in it. *ret_payloads: how many that were, or -1: something in
 * it is not due, or it is there no more. RETRY with native 55P03: somebody holds
 * the table at the moment (a reader for long, a backup); nobody was held up for more than half a second by that. */
FM_MUSTCHECK enum fate store_payload_day_drop(struct store *store, int64_t day_us, int64_t settled_before,
                                              int64_t *ret_payloads, struct error *error);

/* ---- rows ---- */

/* The first offset that Kafka still has of a partition of suspends or approvals. */
struct kafka_low {
	const char *topic;
	int32_t partition;
	int64_t low;
};

/* A page of checkpoints in the order of appended_at. */
struct purge_page {
	const char *cluster_id;
	const struct kafka_low *lows;
	size_t lows_len;
	int64_t settled_before; /* us */
	int64_t from_at;        /* begins with this appended_at */
	struct uuid from_id;    /* and id, */
	int64_t until_at;       /* ends with this appended_at */
	size_t rows;
	int64_t now; /* us */
};

struct purge_swept {
	bool busy; /* nothing was done: many gate events wait already, and each row that goes makes one more */
	bool end;  /* else the next page begins with */
	int64_t next_at;
	struct uuid next_id;
	size_t looked; /* how many were looked at */
	size_t purged;
};

/*
 * Purges, of a page, what was settled before settled_before and of whose records, the suspend and the decisions, Kafka
 * has none any more: the row, its decisions, its sealed state. In the same transaction the horizons of the
 * cluster's partitions are moved up to where intake and the relays stand, so that a copy of one of those records that
 * was read before does not bring it back; and a tombstone is left to be sent to the gates topic.
 */
FM_MUSTCHECK enum fate store_rows_purge(struct store *store, const struct purge_page *page,
                                        struct arena *arena, struct purge_swept *ret_swept,
                                        struct error *error);

/*
 * The same for decisions that were refused because no suspend event came, and of which no checkpoint is known: in the
 * order of decision_id from from_id on; what was appended before settled_before, and is gone from Kafka, goes. `busy` is never set.
 */
FM_MUSTCHECK enum fate store_orphans_purge(struct store *store, const struct purge_page *page,
                                           struct arena *arena, struct purge_swept *ret_swept,
                                           struct error *error);

#endif
