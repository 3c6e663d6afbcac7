/*
 * bench.h - `fermata bench`: what a machine and its servers carry. Real records through real topics, a real database and a
 * real worker, and beside each figure the limit that the same servers set without one, in the same run.
 *
 * Who calls it lends the servers, and starts and stops the worker (struct bench_host): this room starts no process and
 * prints nothing. One thread calls it; it starts some of its own and ends them.
 */
#ifndef FERMATA_BENCH_BENCH_H
#define FERMATA_BENCH_BENCH_H

#include "config/config.h"

enum bench_phase {
	BENCH_SUSPEND,  /* suspends waiting on the topic -> rows durable; beside it COPY of the same rows */
	BENCH_ASLEEP,   /* memory of the worker and disk of the database with all of them asleep */
	BENCH_RESTART,  /* from the start of a worker until it is ready */
	BENCH_DECIDE,   /* decisions waiting on the topic -> resumes readable */
	BENCH_OUTBOX,   /* a full outbox -> resumes readable; beside it bare transactional produce of them */
	BENCH_TOGETHER, /* suspends and their decisions as they come -> resumes readable */
	BENCH_LATENCY,  /* one decision at a time -> its resume readable */
	BENCH_GROWTH, /* disk of sessions that suspended often, once retention has been; a ground for itself: see below */
	BENCH_PHASES,
};

/* "suspend", ...; never NULL. */
const char *bench_phase_name(enum bench_phase phase);

struct bench_plan {
	const char *run;   /* in the ids of the sessions; at most 40 characters */
	size_t size;       /* bytes of a suspend event */
	uint32_t sessions; /* of each phase that measures throughput */
	uint32_t asleep;   /* of the phase ASLEEP, those of SUSPEND among them; at least sessions */
	uint32_t few;      /* what the memory is compared with, and warms everything up */
	uint32_t settled;  /* settled sessions that are put into the tables before anything is measured */
	int latency_s;     /* how long at BENCH_RATE decisions a second */
	int settle_s;      /* before memory is looked at */
	bool kill; /* a restart after kill -9, too: it waits until Kafka gives the dead member up (45 s) */
	bool phases[BENCH_PHASES];
};

/* The suspends of a session in BENCH_GROWTH. It needs workers with this retention.payload and
 * retention.rows (and takes longer than that), which
 * the other phases are not to have. */
#define BENCH_GROWTH_SUSPENDS  20
#define BENCH_GROWTH_RETENTION "60s"

#define BENCH_RATE     50
#define BENCH_SIZE_MIN ((size_t)1024)
#define BENCH_SIZE_MAX ((size_t)4 << 20)

/* Where: topics and tables that nobody else uses. */
struct bench_place {
	const struct config *config; /* of the worker */
	const char *dsn;             /* its database, migrated */
	const char *scratch_dsn;     /* another one, migrated too: for COPY into the same tables */
	const char *bare_topic;      /* as many partitions as the resumes topic */
	const char *hop_topic;       /* one partition */
};

/* A figure, and what it is beside. */
struct bench_figure {
	enum bench_phase phase;
	size_t size;
	const char *what; /* "suspends/s, waiting on the topic" */
	const char *unit; /* "/s", "ms", "MiB", "bytes" */
	double value;
	double limit;         /* 0: there is none */
	const char *limit_of; /* what the limit is: "COPY of the same rows" */
	double goal;          /* 0: there is none */
	bool goal_of_value;   /* the goal is of the value itself, else of value / limit */
	bool goal_at_most;    /* else: at least */
	int64_t count;        /* how many things it is the figure of */
	bool aside;           /* it explains another one: not compared with anything itself */
	uint32_t settled;     /* rows that were settled before anything was measured */
	double seconds;       /* how long that took; 0 where it says nothing */
};

/* value / limit, 0 without a limit. */
double bench_ratio(const struct bench_figure *figure);
/* Is there a goal, and is it met? */
bool bench_goal_met(const struct bench_figure *figure);

struct bench_host {
	void *context;
	/* Starts a worker on the place; *ret_pid is its process. Only one runs at a time. */
	enum fate (*start)(void *context, long *ret_pid, struct error *error);
	/* Is it ready? */
	bool (*ready)(void *context);
	/* Stops it, or kills it; nothing when none runs. */
	void (*stop)(void *context, bool kill);
	/* Waits ms (0: only looks). RETRY when somebody asked for the end or the worker ended of itself. */
	enum fate (*pause)(void *context, int64_t ms, struct error *error);
	/* What is being done, and how far it is; of 0: that is not known. */
	void (*progress)(void *context, const char *doing, int64_t done, int64_t of);
	/* One more figure; borrowed for the call, its texts are constants. */
	void (*figure)(void *context, const struct bench_figure *figure);
};

/* Measures what the plan says, on a place that is empty. Stops the worker in any case. RETRY: somebody asked for the
 * end, or something did not come about in two minutes; else what failed. */
FM_MUSTCHECK enum fate bench_run(const struct bench_plan *plan, const struct bench_place *place,
                                 const struct bench_host *host, struct error *error);

#endif
