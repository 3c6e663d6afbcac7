/*
 * replay.h - `fermata replay`: a topic is read again from some place up to where the worker stands, against the database
 * that is there. What is missing is put in (or marked as published), what is settled is not changed; everything that is
 * not as the topic has it is told. No position moves, so it runs beside workers: it takes the locks that they take.
 *
 * Two passes. The first one only looks, in read-only transactions. When something of suspends or approvals is missing,
 * all ledgers are read for it next, because what was published must not be decided again; then comes the second pass.
 * What would be decided by it now, and is in no ledger that goes on past the decision, is IN_DOUBT, as on a rebuild.
 */
#ifndef FERMATA_WORKER_REPLAY_H
#define FERMATA_WORKER_REPLAY_H

#include "config/config.h"
#include "core/policy.h"

enum replay_what {
	REPLAY_MISSING,       /* it is not in the database */
	REPLAY_UNFILLED,      /* a suspend of which only decisions or the resume were known */
	REPLAY_NO_CHECKPOINT, /* a decision that is not there, nor its checkpoint: not put in */
	REPLAY_NOT_MARKED,    /* a resume of what is not RESUMED in the database */
	REPLAY_DIFFERS,       /* the database has another record under this id: it stays */
	REPLAY_OUTCOME,       /* a decision that would end otherwise today: it stays */
	REPLAY_VERDICT,       /* a resume with another verdict than the database has: it stays */
	REPLAY_UNREADABLE,    /* it cannot be taken in, now as then */
	REPLAY_WHATS,
};

/* "missing", "unfilled", "no_checkpoint", ... Never NULL. */
const char *replay_what_name(enum replay_what what);

struct replay_finding {
	enum replay_what what;
	struct coordinates at;
	const struct uuid *checkpoint_id; /* or NULL: not known */
	const struct uuid *decision_id;   /* or NULL */
	const char *text;                 /* one line, no content of any session's state */
};

struct replay_options {
	const char *topic;
	int32_t partition; /* or -1: all */
	bool by_time;
	int64_t from; /* an offset, or a time in us */
	bool dry_run;
	void (*each)(void *context, const struct replay_finding *finding); /* in the order of reading */
	bool (*stop)(
		void *context); /* asked many times a second: true ends it, with RETRY and ERR_STALE; or NULL */
	void *context;
};

struct replay_report {
	int64_t records; /* that were read */
	int64_t same;    /* as the database has them */
	int64_t again;   /* the same record another time */
	int64_t purged;  /* settled and purged: not missing */
	int64_t found[REPLAY_WHATS];
	int64_t states[GATE_STATE_COUNT];      /* the checkpoints that were written, by what they are now */
	int64_t outcomes[OUTCOME_REFUSED + 1]; /* the decisions that were written */
	int64_t marked;                        /* checkpoints that were marked as published */
};

/* FATAL ERR_USAGE: configuration, a topic that is none of those, no installation. RETRY: a service is away; what was put in
 * so far stays. */
FM_MUSTCHECK enum fate replay_run(const struct config *config, const struct replay_options *options,
                                  struct replay_report *ret_report, struct error *error);

#endif
