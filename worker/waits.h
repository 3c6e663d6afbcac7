/*
 * waits.h - does Kafka keep records for as long as what came of them waits? A checkpoint lives on in PostgreSQL when its
 * record has gone, and nobody misses it, until the database is lost: a rebuild finds what the topics have.
 */
#ifndef FERMATA_WORKER_WAITS_H
#define FERMATA_WORKER_WAITS_H

#include "consumer/reader.h"
#include "store/store_waits.h"
#include "worker/worker.h"

#define WAITS_FOR_EVER INT64_C(-1)
#define WAITS_UNKNOWN  INT64_C(-2)

struct waits {
	const struct config *config;
	struct store_waits found;
	int64_t suspends_ms,
		approvals_ms; /* retention.ms, or WAITS_FOR_EVER, or WAITS_UNKNOWN: the brokers do not say */
};

/* Asks Kafka and the database. page: as for store_waits; how long topics keep records is asked for with the last one only. What is asked for lives in the arena until the call is over. */
FM_MUSTCHECK enum fate waits_ask(const struct config *config, struct reader *ends, struct store *store,
                                 struct store_waits_page *page, int timeout_ms, struct arena *arena,
                                 struct waits *ret_waits, struct error *error);

/* A topic's retention.ms as the broker tells it, in ms. WAITS_FOR_EVER for -1, and for what is more microseconds than there
 * are numbers: the largest one is another way to say for ever. */
int64_t waits_retention(const char *text);

/* what: what is so, and what that means; mend: what to do about it. */
typedef void waits_say(void *context, const char *what, const char *mend);
/* Says each thing that waits for longer than its topic keeps records, or will; now in us. Pure. Returns how many. */
size_t waits_judge(const struct waits *waits, int64_t now, waits_say *say, void *context);

/* A worker's walk over all checkpoints, a page now and then: most of them may be settled, and kept. */
struct waits_walk {
	int64_t at_ms; /* when the next page is due; 0 at first */
	struct store_waits_page page;
	struct store_waits sum; /* of the pages that were looked at */
};

/* At the start, then once a day: looks at a page, and behind the last one warns in the log. Kafka or PostgreSQL away:
 * another time, from the beginning. */
void waits_tick(struct worker *worker, struct store *store, struct arena *arena, struct waits_walk *walk);

#endif
