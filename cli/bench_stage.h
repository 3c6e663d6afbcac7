/*
 * bench_stage.h - the stage of `fermata bench`: servers, and on them databases and topics of its own, with a random part in
 * their names, which nobody else can have; and the workers on them.
 *
 * The order is: stage_open, then for each measurement ground_make and ground_clear, then stage_close; the last two always.
 */
#ifndef FERMATA_CLI_BENCH_STAGE_H
#define FERMATA_CLI_BENCH_STAGE_H

#include "bench/bench.h"
#include "cli/dev_world.h"

#define STAGE_TOPICS   (BROKER_TOPICS + 2)
#define STAGE_DSN_MAX  8192
#define STAGE_NAME_MAX 64

struct stage {
	struct world world;
	const struct config *users;
	bool dev; /* the servers of `fermata dev` */
	char admin_dsn[STAGE_DSN_MAX];
	/* Of the ground: */
	char random[9];        /* in all names */
	struct config *config; /* of the workers on it */
	char databases[2][STAGE_NAME_MAX];
	bool databases_made[2];
	char dsns[2][STAGE_DSN_MAX];
	char topics[STAGE_TOPICS][STAGE_NAME_MAX];
	bool topics_made;
	const char *retention;
	struct bench_place place;
};

struct stage_request {
	const struct config *config; /* the user's */
	const char *kafka_libs;
	bool dev;
};

/* Takes over the signals, and starts the servers or looks whether they are there. FATAL or RETRY ERR_SERVICE (69): one is
 * not; FATAL ERR_USAGE. */
FM_MUSTCHECK enum fate stage_open(struct stage *stage, const struct stage_request *request,
                                  struct error *error);
/* Databases, tables, topics, keys and settings for one measurement; their names have a random part of their own.
 * retention: of payloads and rows, a value of retention.payload; NULL: the defaults. */
FM_MUSTCHECK enum fate ground_make(struct stage *stage, const char *retention, struct error *error);
/* Removes them; what could not be removed is said on stderr (false). Stops the worker first. */
bool ground_clear(struct stage *stage);
/* Stops everything that was started. keep_logs: they are left where they are. */
bool stage_close(struct stage *stage, bool keep_logs);

/* As struct bench_host wants them. */
FM_MUSTCHECK enum fate stage_start_worker(struct stage *stage, long *ret_pid, struct error *error);
bool stage_worker_ready(const struct stage *stage);
void stage_stop_worker(struct stage *stage, bool kill);
FM_MUSTCHECK enum fate stage_pause(struct stage *stage, int64_t ms, struct error *error);

#endif
