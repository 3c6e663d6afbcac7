/* rebuild_inner.h - what the files of rebuild.h share. */
#ifndef FERMATA_WORKER_REBUILD_INNER_H
#define FERMATA_WORKER_REBUILD_INNER_H

#include "worker/letters_known.h"
#include "worker/rebuild.h"
#include "worker/worker.h"

#define REBUILD_AWAY_MS   60000 /* a service that stays away for so long ends it */
#define REBUILD_SILENT_MS 30000 /* and a broker that is there, and does not answer for so long */

/* A partition that is read, and how far. */
struct goal {
	enum rebuild_phase phase;
	const char *topic;
	int32_t partition;
	int64_t low;
	int64_t end; /* as it stood at the start */
	int64_t first_at;
	int64_t next; /* what the database says; below low: nothing yet */
	bool known;   /* there is a row */
	bool waits;
};

struct pace {
	int64_t started_ms; /* mono; 0: not yet */
	int64_t ended_ms;   /* 0: not yet */
	int64_t base;       /* what was read when it started */
};

struct rebuild {
	struct worker worker;
	const struct rebuild_options *options;
	struct rebuild_report *report;
	struct store *store;
	struct arena *arena; /* of one look */
	struct letters_known letters;
	struct goal *goals;
	size_t goals_len;
	pthread_t schemas; /* the thread that asks the registry */
	bool learns;       /* it runs */
	struct pace paces[REBUILD_PHASES];
	int64_t looked_ms;     /* mono: when the database was asked last */
	int64_t told_ms;       /* and when the caller was told */
	int64_t away_since_ms; /* mono: since when the looks fail; 0: they do not */
	int64_t moved_sum;     /* of all positions when they were seen to move last, */
	int64_t moved_ms;      /* mono: at this time; 0: not looked at yet */
	int64_t ask_at_ms;     /* mono: when Kafka is asked next, while nothing moves */
	int64_t silent_ms;     /* mono: since when it does not answer; 0: it does */
	bool done;             /* the ends are reached: it is we who stop the threads */
};

/* ---- rebuild_watch.c ---- */

/* Asks the database how far it is, and tells the caller once a second. RETRY: the database has been away for too long. */
FM_MUSTCHECK enum fate rebuild_look(struct rebuild *rebuild, struct error *error);
/* Waits a little and takes signals; a look now and then. True: it is to stop. */
bool rebuild_tick(struct rebuild *rebuild);
/* Is everything of the phase read, as of the last look? */
bool rebuild_reached(const struct rebuild *rebuild, enum rebuild_phase phase);

/* ---- rebuild_threads.c ---- */

/* R1 and R2 of every shard, several at once. Failures stop the worker. */
FM_MUSTCHECK enum fate rebuild_ledgers(struct rebuild *rebuild, struct error *error);
/* Suspends and approvals up to their ends. Failures stop the worker. */
FM_MUSTCHECK enum fate rebuild_intakes(struct rebuild *rebuild, struct error *error);

#endif
