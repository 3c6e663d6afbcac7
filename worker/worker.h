/*
 * worker.h - what the threads of one worker share. Everything here is set before the threads start and
 * constant from then on, but for what is marked atomic.
 *
 *   main      signals                        intake    both topics in, one transaction a batch
 *   shards    the relays' group              relay     one for each shard that this worker holds
 *   reaper    expiry, sweeps, days ahead     watch     gauges, the end of a drain
 *   schemas   follows the folder, asks the registry
 */
#ifndef FERMATA_WORKER_WORKER_H
#define FERMATA_WORKER_WORKER_H

#include "config/config.h"
#include "consumer/reader.h"
#include "producer/producer.h"
#include "schemas/codec.h"
#include "store/store.h"
#include "store/store_facts.h"
#include "vault/vault.h"

#include <pthread.h>
#include <stdatomic.h>

/* The group on the resumes topics is worker.group with this behind it. */
#define WORKER_RELAYS_SUFFIX "-relays"

/* The parts of a worker that may have to wait for the world; each says so in worker_part_ok. */
enum worker_part {
	PART_INTAKE_KAFKA,
	PART_INTAKE_POSTGRES,
	PART_RELAY,
	PART_REAPER,
	PART_REGISTRY, /* something waits for it */
	PART_START,    /* the threads are not there yet */
	PART_GROUP,    /* another installation is in the group */
	PART_COUNT,
};

/* Why a part waits, where readiness has words for it of its own. */
enum wait_reason { WAIT_WORLD, WAIT_READ_ONLY, WAIT_RIVAL, WAIT_COUNT };

struct tray_event; /* worker/tray.h */

struct worker {
	const struct config *config;
	struct vault *vault;
	struct reader *ends; /* read_uncommitted: high watermarks, partition counts */
	char cluster_id[64];
	uint8_t routes_digest[32];
	struct resumes_topic *topics; /* every resumes topic that is configured or was ever published to */
	size_t topics_len;
	struct arena *arena; /* of the above */

	_Atomic bool stopping;
	_Atomic bool
		failed; /* a thread met a FATAL error: the process ends with its exit code, and it is failure */
	_Atomic int exit_code;
	_Atomic int64_t away_since_ms[PART_COUNT]; /* mono; 0: all is well */
	_Atomic int waits_for[PART_COUNT];         /* enum wait_reason */
	_Atomic int fenced_shards;                 /* relays that something else fences again and again */
	char mark[STORE_MARK_CAP];                 /* of the installation, part of the names in the group */
	_Atomic bool behind;        /* the last batch of intake was full: more is waiting on the topics */
	_Atomic bool resumes_flow;  /* relays: their last R3 found every ledger read */
	_Atomic bool caught_up;     /* intake: approvals are not held back any more */
	_Atomic int alarmed_parts;  /* intake: partitions that it leaves alone */
	_Atomic int stopped_parts;  /* intake: partitions that its breaker has stopped */
	_Atomic int probing_parts;  /* of those: that are being tried just now */
	_Atomic int broken_schemas; /* files of schemas.path that cannot be used */
	pthread_mutex_t mutex;      /* of the condition only */
	pthread_cond_t stop_changed;

	struct shards *shards;
	struct catalog *catalog; /* every schema that is known (schemas/catalog.h) */
	struct learner *learner; /* and what is missing of them (worker/learn.h) */

	bool quiet;           /* a command that runs once: it says itself what failed */
	struct error failure; /* the first one */
};

/* Waits ms, less when the worker is to stop. Returns true when it is to stop. */
bool worker_wait(struct worker *worker, int64_t ms);
bool worker_stopping(const struct worker *worker);
/* Asks all threads to end. */
void worker_stop(struct worker *worker);
/* A thread cannot go on: logs it and ends the process with the error's exit code. */
void worker_fail(struct worker *worker, const char *room, const struct error *error);
/* This part works, or waits for the world (readiness, and --drain's patience). */
void worker_part_ok(struct worker *worker, enum worker_part part, bool ok);
/* It waits, because of this error or for this reason. */
void worker_part_waits(struct worker *worker, enum worker_part part, const struct error *error);
void worker_part_waits_for(struct worker *worker, enum worker_part part, enum wait_reason reason);
/* How long, in ms, some part has been waiting; 0: none is. */
int64_t worker_away_ms(const struct worker *worker);

/* A store for one of the worker's threads. */
FM_MUSTCHECK enum fate worker_open_store(const struct worker *worker, const char *room,
                                         struct store **ret_store, struct error *error);
/* The number of partitions of a resumes topic that the installation knows; 0: unknown. */
int32_t worker_partitions(const struct worker *worker, const char *topic);

struct worker_options {
	bool drain;
	bool adopt_group;
	const char *const *command; /* only for the log */
	int64_t patience_ms;        /* how long a start waits for the world; 0: for ever, or what a drain has */
	/* Before anything is written: what it returns other than OK ends the start. With the store of the start. */
	enum fate (*look)(void *context, struct store *store, struct error *error);
	void *context;
	const char *const *resumes_topics; /* besides those of the configuration: of an earlier one */
	size_t resumes_topics_len;
	bool look_only; /* the installation is read, and nothing is written */
};

/* Runs a worker until SIGTERM, SIGINT, the end of a drain or a fatal error. Returns the exit code. */
int worker_run(const struct config *config, const struct worker_options *options);

/* ---- threads; each returns when the worker stops ---- */
void *intake_thread(void *worker);
void *shards_thread(void *worker);
void *reaper_thread(void *worker);

/* Before the threads start, and after they have ended. */
FM_MUSTCHECK enum fate shards_new(struct worker *worker, struct error *error);
void shards_free(struct worker *worker);
/* The shards (store_shard_bit) of what a batch puts into outbox or gate_outbox that no relay of this process has. */
uint64_t shards_elsewhere(struct worker *worker, const struct batch_write *batch);
/* Intake of this process has committed a batch: wakes the relays of this process that have a shard of it. Those that are
 * gathering go on with it unless there is something for the outbox. NULL: all of them, at once. */
void shards_wake(struct worker *worker, const struct batch_write *batch);
/* A gate event that intake has committed is put on the tray of the relay that has the row's shard, if one has. */
void shards_hand_over(struct worker *worker, const struct checkpoint *row, const struct tray_event *event);
/* What was handed over may not be what the database has: it is forgotten. */
void shards_forget(struct worker *worker);
/* Rows left in the outbox of the shards held here, and is every one of their relays past its R2? */
FM_MUSTCHECK enum fate shards_backlog(struct worker *worker, struct store *store, int64_t *ret_rows,
                                      struct error *error);

#endif
