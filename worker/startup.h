/* startup.h - what comes before the threads of a worker, and the watch over a drain. */
#ifndef FERMATA_WORKER_STARTUP_H
#define FERMATA_WORKER_STARTUP_H

#include "worker/worker.h"

/* Opens the vault, waits for PostgreSQL, for `fermata migrate`, for Kafka and for the topics, and looks at
 * the installation. Returns OK too when the worker was asked to stop meanwhile. FATAL: exit 2 and why. */
FM_MUSTCHECK enum fate startup(struct worker *worker, const struct worker_options *options,
                               struct error *error);

/* Before startup, and after all threads have ended. */
void worker_init(struct worker *worker, const struct config *config);
void worker_done(struct worker *worker);

/* For startup: waits in the main thread, which takes the signals. True: the worker is to stop. */
bool worker_pause(struct worker *worker, int64_t ms);

/* The ends that stood on both topics at the start of a drain. */
struct drain {
	struct store *store;
	struct arena *arena;
	struct partition_at *ends;
	size_t ends_len;
	int64_t away_since_ms;  /* mono: since when the looks fail; 0: they do not */
	int64_t quiet_since_ms; /* mono: since when only gate events may be left; 0: not yet */
	int64_t stopped_ms;     /* mono: since when a partition is seen to be stopped; 0: none is */
	bool alarmed;           /* a partition that is left alone has not reached its end */
	bool held;              /* what is left waits for a file of schemas.path */
	int64_t held_sum;       /* of positions and of what is left, when it was seen to move last, */
	int64_t held_since_ms;  /* mono: at this time */
};

FM_MUSTCHECK enum fate drain_init(struct drain *drain, struct worker *worker, struct error *error);
/* Are those ends reached (a partition that is stopped or left alone is not waited for, nor what waits for a file of schemas.path: stopped_ms, alarmed and held tell), and is the outbox of this worker's shards empty (and that of gate events too, or has
 * it been waited for)? */
FM_MUSTCHECK enum fate drain_look(struct drain *drain, struct worker *worker, bool *ret_done,
                                  struct error *error);
void drain_done(struct drain *drain);

#endif
