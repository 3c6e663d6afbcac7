/* replay_inner.h - what the files of replay.h share. */
#ifndef FERMATA_WORKER_REPLAY_INNER_H
#define FERMATA_WORKER_REPLAY_INNER_H

#include "worker/ids.h"
#include "worker/intake.h"
#include "worker/replay.h"
#include "worker/scan.h"

/* From when on a shard's ledger says for sure what was published. */
struct certainty {
	const char *topic;
	int32_t partition;
	int64_t doubt_before; /* or TIME_NONE */
};

struct replay {
	const struct replay_options *options;
	struct replay_report *report;
	struct worker worker;
	struct intake desk; /* understands, judges; its store is ours */
	bool suspends;      /* the topic is that of suspends */
	bool writing;       /* the second pass */

	struct item *items;
	struct item **order;
	size_t len;
	size_t bytes;

	struct ids told;   /* what the first pass has told of: checkpoints or decisions */
	struct ids wanted; /* checkpoints that the second pass would write */

	pthread_t schemas; /* the thread that looks for them (worker/learn.h) */
	bool learns;       /* it is there */

	struct certainty *shards;
	size_t shards_len;
};

/* Tells the caller, and counts. */
void replay_tell(struct replay *replay, enum replay_what what, const struct coordinates *at,
                 const struct uuid *checkpoint_id, const struct uuid *decision_id, const char *text);

/* After a fate of RETRY with ERR_UNKNOWN_SCHEMA: the registry was asked. Waits until there is news, at most a minute. news
 * is what learn_count said before. RETRY: there is none, or it is to stop. */
FM_MUSTCHECK enum fate replay_await_schema(struct replay *replay, uint64_t news, struct error *error);

/* ---- replay_events.c: suspends and approvals ---- */

/* For struct scan: context is the replay. */
enum fate replay_event(void *context, const struct scan_part *part, const struct record *record,
                       struct error *error);
/* What is gathered and not yet judged. */
FM_MUSTCHECK enum fate replay_flush(struct replay *replay, struct error *error);

/* ---- replay_outcome.c ---- */

/* How a decision that is known would end today, given the checkpoint as it is and those of its decisions that counted
 * (all, any order). False: as it has ended; else ret_text (cap bytes) says how. */
bool replay_outcome(const struct policy *policy, const struct checkpoint *row,
                    const struct decision *decision, struct decision *const *decisions, size_t decisions_len,
                    struct arena *arena, char *ret_text, size_t cap);

/* ---- replay_ledger.c ---- */

/* Resumes, `scan` being of their topic from where to where: marks what is not marked, unless it is a dry run. */
FM_MUSTCHECK enum fate replay_resumes(struct replay *replay, const struct scan *scan, struct error *error);
/* Reads all ledgers, marks those of the wanted checkpoints that are in them, and fills replay->shards. */
FM_MUSTCHECK enum fate replay_certainties(struct replay *replay, struct error *error);
/* For struct judge_settings: the context is the replay. */
const char *replay_doubts(void *context, const struct checkpoint *row);

#endif
