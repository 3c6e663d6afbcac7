/* run.c - the order of the phases, time, and when to give up. */
#include "bench/settled.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS      100
#define STATEMENT_MS 20
#define PATIENCE_MS  120000
#define VALUE_MAX    ((size_t)2 * BENCH_SIZE_MAX)
#define LINGER_MS    "20"
#define US_PER_S     1e6

/* ---- figures ---- */

const char *bench_phase_name(enum bench_phase phase)
{
	static const char *const names[BENCH_PHASES] = {
		[BENCH_SUSPEND] = "suspend", [BENCH_ASLEEP] = "asleep", [BENCH_RESTART] = "restart",
		[BENCH_DECIDE] = "decide",   [BENCH_OUTBOX] = "outbox", [BENCH_TOGETHER] = "together",
		[BENCH_LATENCY] = "latency", [BENCH_GROWTH] = "growth",
	};

	return phase < BENCH_PHASES ? names[phase] : "";
}

double bench_ratio(const struct bench_figure *figure)
{
	return figure->limit > 0 ? figure->value / figure->limit : 0;
}

bool bench_goal_met(const struct bench_figure *figure)
{
	double value = figure->goal_of_value ? figure->value : bench_ratio(figure);

	if (figure->goal <= 0)
		return false;
	return figure->goal_at_most ? value <= figure->goal : value >= figure->goal;
}

/* ---- time ---- */

int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

double timing_seconds(const struct timing *timing)
{
	int64_t us = timing->ended_us - timing->began_us;

	return us > 0 ? (double)us / US_PER_S : 1 / US_PER_S;
}

double timing_rate(const struct timing *timing)
{
	return (double)timing->count / timing_seconds(timing);
}

enum fate samples_init(struct samples *samples, size_t cap, struct error *error)
{
	*samples = (struct samples){ .values = calloc(cap, sizeof(*samples->values)), .cap = cap };
	return samples->values != NULL ? FATE_OK
	                               : error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the samples");
}

void samples_done(struct samples *samples)
{
	free(samples->values);
	samples->values = NULL;
}

void samples_add(struct samples *samples, int64_t us)
{
	if (samples->len < samples->cap)
		samples->values[samples->len++] = us;
}

static int compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

double samples_at(struct samples *samples, double share)
{
	if (samples->len == 0)
		return 0;
	qsort(samples->values, samples->len, sizeof(*samples->values), compare);
	size_t at = (size_t)(share * (double)samples->len);
	return (double)samples->values[at < samples->len ? at : samples->len - 1] / 1000;
}

/* ---- going on ---- */

enum fate run_pause(struct run *run, int64_t ms, struct error *error)
{
	enum fate fate = run->host->pause(run->host->context, ms, error);

	run->looked_at_ms = clock_mono_ms();
	if (fate == FATE_OK && run->looked_at_ms - run->went_on_ms > PATIENCE_MS)
		fate = error_set(error, FATE_RETRY, ERR_SYSTEM,
		                 "nothing has gone on for %d s; the worker's log tells what it waits for",
		                 PATIENCE_MS / 1000);
	return fate;
}

enum fate run_goes_on(struct run *run, struct error *error)
{
	return clock_mono_ms() - run->looked_at_ms < LOOK_MS ? FATE_OK : run_pause(run, 0, error);
}

void run_progress(struct run *run, const char *doing, int64_t done, int64_t of)
{
	run->went_on_ms = clock_mono_ms();
	run->host->progress(run->host->context, doing, done, of);
}

void run_give(struct run *run, const struct bench_figure *figure)
{
	struct bench_figure given = *figure;

	given.size = run->plan->size;
	given.settled = run->plan->settled;
	run->host->figure(run->host->context, &given);
}

struct waiting {
	struct run *run;
	const char *doing;
};

static enum fate wait_on(void *context, struct error *error)
{
	struct waiting *waiting = context;

	run_progress(waiting->run, waiting->doing, 0, 0);
	return run_pause(waiting->run, STATEMENT_MS, error);
}

enum fate run_long(struct run *run, const char *sql, const char *doing, struct error *error)
{
	struct waiting waiting = { run, doing };

	return database_run_long(run->database, sql, wait_on, &waiting, error);
}

enum fate run_start_worker(struct run *run, long *ret_pid, struct error *error)
{
	long pid;

	run_progress(run, "starting a worker", 0, 0);
	return run->host->start(run->host->context, ret_pid != NULL ? ret_pid : &pid, error);
}

enum fate run_await_ready(struct run *run, struct error *error)
{
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && !run->host->ready(run->host->context))
		fate = run_pause(run, 2, error);
	return fate;
}

enum fate run_take_in(struct run *run, uint32_t count, struct error *error)
{
	enum fate fate = run_send_suspends(run, count, error);

	if (fate == FATE_OK)
		fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_suspends(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_gates(run, error);
	return fate;
}

const char *run_topic(const struct run *run, enum param topic)
{
	return config_text(run->place->config, topic);
}

/* ---- the phases ---- */

static bool wanted(const struct run *run, enum bench_phase phase)
{
	return run->plan->phases[phase];
}

static enum fate run_phases(struct run *run, struct error *error)
{
	static const struct {
		enum bench_phase phase, also;
		enum fate (*run)(struct run *run, struct error *error);
	} phases[] = {
		{ BENCH_ASLEEP, BENCH_RESTART, phase_asleep },      { BENCH_SUSPEND, BENCH_SUSPEND, phase_suspend },
		{ BENCH_DECIDE, BENCH_DECIDE, phase_decide },       { BENCH_OUTBOX, BENCH_OUTBOX, phase_outbox },
		{ BENCH_TOGETHER, BENCH_TOGETHER, phase_together }, { BENCH_LATENCY, BENCH_LATENCY, phase_latency },
		{ BENCH_GROWTH, BENCH_GROWTH, phase_growth },
	};
	bool settled = run->plan->settled > 0;
	enum fate fate = FATE_OK;

	/* Everything has been done once before it is measured: caches are warm, plans are made, pages are there. */
	if (!wanted(run, BENCH_ASLEEP) || settled)
		fate = run_take_in(run, run->plan->few, error);
	if (fate == FATE_OK && settled)
		fate = settled_fill(run, error);
	run->host->stop(run->host->context, false);
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]) && fate == FATE_OK; i++) {
		if (!wanted(run, phases[i].phase) && !wanted(run, phases[i].also))
			continue;
		fate = phases[i].run(run, error);
		run->host->stop(run->host->context, false);
	}
	return fate;
}

/* ---- the beginning and the end ---- */

/* All sessions that the phases will make. */
static size_t sessions_max(const struct bench_plan *plan)
{
	return 2 * (size_t)plan->few + plan->asleep + 4 * (size_t)plan->sessions +
	       BENCH_RATE * (size_t)plan->latency_s;
}

static enum fate open_run(struct run *run, struct error *error)
{
	size_t most = sessions_max(run->plan);
	enum fate fate;

	buffer_init(&run->value, VALUE_MAX);
	run->went_on_ms = clock_mono_ms();
	run->ids = calloc(most, sizeof(*run->ids));
	run->resumed = calloc(most, 1);
	if (run->ids == NULL || run->resumed == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for %zu sessions", most);
	fate = session_writer_new(&run->writer, run->plan->run, run->plan->size, error);
	if (fate == FATE_OK)
		fate = database_open(&run->database, run->place->dsn, error);
	if (fate == FATE_OK)
		fate = run_producer(run, LINGER_MS, NULL, &run->producer, error);
	if (fate == FATE_OK)
		fate = run_reader(run, run_topic(run, PARAM_TOPICS_RESUMES), &run->resumes, error);
	if (fate == FATE_OK)
		fate = run_asker(run, &run->ends, error);
	return fate;
}

static void close_run(struct run *run)
{
	reader_close(run->resumes, 2000);
	reader_close(run->ends, 2000);
	producer_close(run->producer);
	database_close(run->database);
	session_writer_free(run->writer);
	buffer_done(&run->value);
	free(run->ids);
	free(run->resumed);
}

enum fate bench_run(const struct bench_plan *plan, const struct bench_place *place,
                    const struct bench_host *host, struct error *error)
{
	struct run run = { .plan = plan, .place = place, .host = host };
	enum fate fate = open_run(&run, error);

	if (fate == FATE_OK)
		fate = run_phases(&run, error);
	host->stop(host->context, false);
	close_run(&run);
	return fate;
}
