/*
 * judge.h - decides what a batch of records changes. No I/O of its own: rows that are loaded and locked
 * go in, what is to be written comes out. Suspends go first, then decisions, each in the order in which
 * they stood in the batch, which keeps the order of every partition.
 */
#ifndef FERMATA_WORKER_JUDGE_H
#define FERMATA_WORKER_JUDGE_H

#include "store/store.h"
#include "worker/item.h"

struct vault;
struct codec;

/* What the judge has to know of the world. */
struct judge_settings {
	struct policy policy;
	int64_t unclaimed_max; /* decisions that may wait in all */
	struct vault *vault;   /* to compare the edits of two approvals */
	struct codec *codec;
	/* Should a verdict that is not APPROVED be settled without a resume (on_reject = drop)? */
	bool (*drops)(void *context, struct view tenant, struct view agent);
	/* Is what has just been decided in doubt, so that it does not go into the outbox? Says why, or NULL. The function
	 * may be NULL: nothing is. */
	const char *(*doubts)(void *doubts_context, const struct checkpoint *row);
	void *doubts_context;
	void *context;
};

/* Figures of one batch, added to the metrics once it is committed. */
struct judge_tally {
	int64_t suspends;
	int64_t suspend_duplicates;
	int64_t superseded;
	int64_t counted;
	int64_t waiting;
	int64_t refused;
	int64_t decision_duplicates;
	int64_t quarantined; /* decided, and in no shard */
	bool wakes_relay;    /* there is something in outbox or gate_outbox */
};

/* What intake has to ask of the store before it can judge: ids sorted and without doubles. The moves,
 * and the cluster, are the caller's. REJECT with ERR_MEMORY: the arena is full, fewer items may fit. */
FM_MUSTCHECK enum fate judge_request(struct item **items, size_t len, struct arena *arena,
                                     struct batch_request *ret_request, struct error *error);

/* How the lines of a request are sorted: for qsort and bsearch, of struct line. */
int judge_compare_lines(const void *a, const void *b);

/* Judges. Items may become dead (conflict, unclaimed_full). ret_write lives in the arena. RETRY: a key
 * cannot be had now. REJECT with ERR_MEMORY: the arena is full, fewer items may fit. */
FM_MUSTCHECK enum fate judge_batch(const struct judge_settings *settings, struct item **items, size_t len,
                                   const struct batch_request *request, const struct batch_loaded *loaded,
                                   struct arena *arena, struct batch_write *ret_write,
                                   struct judge_tally *ret_tally, struct error *error);

/* Do two decisions ask for the same edits? Edits that cannot be opened any more are not the same as any. RETRY: no memory, or
 * the key is not to be had at the moment. */
FM_MUSTCHECK enum fate judge_compare_edits(const struct judge_settings *settings, const struct decision *a,
                                           const struct decision *b, bool *ret_same, struct error *error);

/* Does the record lie below its horizon? Where it has no row that is filled it was settled and purged, and it is as if the
 * row were there. */
bool judge_is_purged(const struct batch_loaded *loaded, const struct coordinates *at);

#endif
