#include "worker/intake.h"
#include "worker/rebuild_inner.h"
#include "worker/relay.h"

#include <stdlib.h>
#include <unistd.h>

#define BATCH_RECORDS 1000 /* records in a transaction: nobody waits for a single one of them */
#define LEDGERS_MAX   8    /* ledgers that are read at once */
#define LANES_MAX     16   /* intakes at once */

/* ---- ledgers ---- */

struct ledgers {
	struct rebuild *rebuild;
	_Atomic size_t taken; /* goals that some thread has, or has done */
	_Atomic size_t over;  /* threads that have ended */
};

/* R1 and R2 until they work; the error that is left when they have not for a minute ends it all. */
static enum fate read_ledger(struct relay *relay, struct error *error)
{
	struct backoff backoff;
	int64_t since_ms = clock_mono_ms();
	backoff_init(&backoff, 100, 3000);
	enum fate fate = relay_open(relay, error);
	while (fate == FATE_OK && !worker_stopping(relay->worker)) {
		fate = relay_begin(relay, error);
		producer_close(relay->producer); /* it has fenced: nothing is published */
		relay->producer = NULL;
		if (fate != FATE_RETRY || clock_mono_ms() - since_ms > REBUILD_AWAY_MS)
			break;
		(void)worker_wait(relay->worker, backoff_next(&backoff));
		fate = FATE_OK;
	}
	relay_close(relay);
	return fate;
}

static void take_goal(struct rebuild *rebuild, const struct goal *goal)
{
	struct error error = { 0 };
	struct relay *relay = calloc(1, sizeof(*relay));
	enum fate fate = FATE_OK;
	if (relay == NULL) {
		fate = error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for a ledger");
	} else {
		relay_init(relay, &rebuild->worker, &(struct partition_at){ goal->topic, goal->partition, 0 });
		relay->rebuilding = true;
		fate = read_ledger(relay, &error);
	}
	if (fate != FATE_OK && !worker_stopping(&rebuild->worker))
		worker_fail(&rebuild->worker, "rebuild", &error);
	free(relay);
}

static void *ledgers_thread(void *argument)
{
	struct ledgers *ledgers = argument;
	struct rebuild *rebuild = ledgers->rebuild;
	for (;;) {
		size_t i = atomic_fetch_add(&ledgers->taken, 1);
		if (i >= rebuild->goals_len || worker_stopping(&rebuild->worker))
			break;
		if (rebuild->goals[i].phase == REBUILD_RESUMES)
			take_goal(rebuild, &rebuild->goals[i]);
	}
	atomic_fetch_add(&ledgers->over, 1);
	return NULL;
}

enum fate rebuild_ledgers(struct rebuild *rebuild, struct error *error)
{
	struct ledgers ledgers = { .rebuild = rebuild };
	pthread_t threads[LEDGERS_MAX];
	size_t len = 0;
	enum fate fate = FATE_OK;
	while (len < LEDGERS_MAX && len < rebuild->goals_len && fate == FATE_OK) {
		if (pthread_create(&threads[len], NULL, ledgers_thread, &ledgers) == 0)
			len++;
		else
			fate = error_set(error, FATE_FATAL, ERR_SYSTEM, "no more threads can be started");
	}
	if (fate != FATE_OK)
		worker_fail(&rebuild->worker, "rebuild", error);
	while (atomic_load(&ledgers.over) < len && !rebuild_tick(rebuild))
		;
	for (size_t i = 0; i < len; i++)
		pthread_join(threads[i], NULL);
	return fate;
}

/* ---- suspends and approvals ---- */

struct lane {
	struct worker *worker;
	struct intake_options options;
	struct partition_at *parts;
	pthread_t thread;
};

static void *lane_thread(void *argument)
{
	struct lane *lane = argument;
	intake_run(lane->worker, &lane->options);
	return NULL;
}

/* As many as there are processors: what one waits for from PostgreSQL, another one computes. */
static size_t count_lanes(const struct rebuild *rebuild)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t partitions = 0, lanes = processors < 2 ? 2 : (size_t)processors;
	for (size_t i = 0; i < rebuild->goals_len; i++)
		partitions += rebuild->goals[i].phase == REBUILD_SUSPENDS;
	lanes = lanes < LANES_MAX ? lanes : LANES_MAX;
	return partitions == 0 || lanes < partitions ? lanes : partitions;
}

/* Each gets its share of both topics: the suspends that come meanwhile are read on while approvals are judged. */
static enum fate fill_lanes(struct rebuild *rebuild, struct lane *lanes, size_t len, struct error *error)
{
	size_t dealt[REBUILD_PHASES] = { 0 };
	for (size_t i = 0; i < len; i++) {
		lanes[i].worker = &rebuild->worker;
		lanes[i].parts = calloc(rebuild->goals_len, sizeof(*lanes[i].parts));
		if (lanes[i].parts == NULL)
			return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a rebuild");
		lanes[i].options = (struct intake_options){
			.parts = lanes[i].parts,
			.batch_records = BATCH_RECORDS,
			.letters = &rebuild->letters,
		};
	}
	for (size_t i = 0; i < rebuild->goals_len; i++) {
		const struct goal *goal = &rebuild->goals[i];
		if (goal->phase == REBUILD_RESUMES)
			continue;
		struct lane *lane = &lanes[dealt[goal->phase]++ % len];
		lane->parts[lane->options.parts_len++] =
			(struct partition_at){ goal->topic, goal->partition, READER_BEGINNING };
	}
	return FATE_OK;
}

static enum fate run_lanes(struct rebuild *rebuild, struct lane *lanes, size_t len, struct error *error)
{
	size_t started = 0;
	enum fate fate = FATE_OK;
	while (started < len && fate == FATE_OK) {
		if (pthread_create(&lanes[started].thread, NULL, lane_thread, &lanes[started]) == 0)
			started++;
		else
			fate = error_set(error, FATE_FATAL, ERR_SYSTEM, "no more threads can be started");
	}
	while (fate == FATE_OK && !rebuild->done && !rebuild_tick(rebuild))
		rebuild->done =
			rebuild_reached(rebuild, REBUILD_SUSPENDS) && rebuild_reached(rebuild, REBUILD_APPROVALS);
	worker_stop(&rebuild->worker);
	for (size_t i = 0; i < started; i++)
		pthread_join(lanes[i].thread, NULL);
	return fate;
}

enum fate rebuild_intakes(struct rebuild *rebuild, struct error *error)
{
	size_t len = count_lanes(rebuild);
	struct lane *lanes = calloc(len, sizeof(*lanes));
	if (lanes == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a rebuild");
	enum fate fate = fill_lanes(rebuild, lanes, len, error);
	if (fate == FATE_OK)
		fate = run_lanes(rebuild, lanes, len, error);
	for (size_t i = 0; i < len; i++)
		free(lanes[i].parts);
	free(lanes);
	return fate;
}
