/*
 * dev_world.h - the stage of `fermata demo` and `fermata dev`: a directory, PostgreSQL, a broker, a worker, and
 * the product's own commands to set them up. It prints nothing.
 *
 * The order is: world_open, the steps of world_steps one by one, world_close (always).
 */
#ifndef FERMATA_CLI_DEV_WORLD_H
#define FERMATA_CLI_DEV_WORLD_H

#include "cli/dev_broker.h"
#include "cli/dev_postgres.h"

struct world {
	char root[DEV_ROOT_MAX]; /* "" until it is made */
	char logs[DEV_PATH_MAX];
	char settings[DEV_PATH_MAX]; /* the configuration file of all that runs in it */
	char keyring[DEV_PATH_MAX];
	char fermata[DEV_PATH_MAX]; /* our own program */
	char log[DEV_PATH_MAX];     /* of what was done last, to look at when it failed */
	struct postgres postgres;
	struct broker broker;
	struct process worker;
	int metrics_port;
};

struct world_request {
	const char *name; /* "demo": of the directory, and of topics in somebody else's cluster */
	const struct config *config;
	const char *kafka_libs; /* NULL: not given */
	bool mock;
	bool yours; /* the servers of the configuration, both of them: libpq's variables are left alone */
};

/* What there is to say about a step that has been taken: a line, and details (lines, newline after each). */
struct told {
	char title[128];
	char details[640];
};

struct world_step {
	const char *name; /* for "... failed": "starting PostgreSQL" */
	enum fate (*run)(struct world *world, struct error *error);
	void (*tell)(const struct world *world, struct told *ret_told);
	bool (*wanted)(const struct world *world); /* NULL: always */
};

extern const struct world_step world_steps[];
extern const size_t world_steps_len;

/* Takes over the signals, makes the directory, and clears FERMATA_, PG and systemd's variables out of the
 * environment. FATAL with ERR_SYSTEM or ERR_USAGE. */
FM_MUSTCHECK enum fate world_open(struct world *world, const struct world_request *request,
                                  struct error *error);
enum world_keep {
	KEEP_NOTHING,
	KEEP_LOGS,
	KEEP_ALL,
};
/* Stops everything and removes what is not to be kept. *error says what could not be cleaned up (false). */
bool world_close(struct world *world, enum world_keep keep, struct error *error);

/*
 * Runs a program of ours ("fermata": words[0] is the command; else what lies beside it) with words, NULL after
 * the last, to its end; take gets its output line by line. Its log is logs/NAME.log. RETRY with ERR_SYSTEM when
 * it takes more than a minute or we were asked to end.
 */
FM_MUSTCHECK enum fate world_run(struct world *world, const char *program, const char *const *words,
                                 process_line *take, void *context, struct process *ret_process,
                                 struct error *error);
/* The same, when nothing but its success matters. Else FATAL with the code that its exit code stands for. */
FM_MUSTCHECK enum fate world_succeed(struct world *world, const char *const *words, struct error *error);

/* Do the worker and the servers still run? RETRY with ERR_SERVICE: which does not, and with what it ended. */
FM_MUSTCHECK enum fate world_check(struct world *world, struct error *error);

#endif
