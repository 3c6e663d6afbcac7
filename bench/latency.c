/*
 * latency.c - one decision at a time on an idle system, BENCH_RATE a second: from its produce call until a read_committed
 * reader in this process has its resume. Beside it its parts, each alone at the same pace: two hops (a record from the
 * produce call to a reader's poll, acks=all, linger 0), one COMMIT of PostgreSQL, one transaction of Kafka with one record.
 */
#include "bench/run_inner.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PACE_US   (1000000 / BENCH_RATE)
#define REST_MS   20000 /* for those that are still on their way at the end */
#define WARM      10    /* the first ones, which do not count */
#define PARTS_MAX 200
#define KIB2      ((size_t)2 << 10)
#define BOUND_P99 3

static void nap(int64_t us)
{
	struct timespec wait = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&wait, NULL);
}

/* ---- the whole way ---- */

struct pacing {
	struct run *run;
	struct producer *producer;
	uint32_t first; /* session */
	uint32_t count;
	int64_t *sent_us; /* by number - first */
	struct samples samples;
	uint32_t seen;
};

static enum fate take(void *context, const struct record *record, uint32_t number, struct error *error)
{
	struct pacing *pacing = context;
	int64_t now = now_us();

	(void)record;
	(void)error;
	if (number < pacing->first || number - pacing->first >= pacing->count)
		return FATE_OK;
	pacing->seen++;
	if (number - pacing->first >= WARM)
		samples_add(&pacing->samples, now - pacing->sent_us[number - pacing->first]);
	return FATE_OK;
}

/* What comes until then. */
static enum fate read_until(struct pacing *pacing, int64_t until_us, struct error *error)
{
	uint32_t came;
	enum fate fate = FATE_OK;
	int64_t left;

	while (fate == FATE_OK && (left = until_us - now_us()) > 1000)
		fate = run_poll_resume(pacing->run, (int)(left / 1000), take, pacing, &came, error);
	nap(until_us - now_us());
	return fate;
}

static enum fate pace(struct pacing *pacing, struct error *error)
{
	struct run *run = pacing->run;
	int64_t due_us = now_us();
	enum fate fate = FATE_OK;

	for (uint32_t i = 0; i < pacing->count && fate == FATE_OK; i++, due_us += PACE_US) {
		fate = read_until(pacing, due_us, error);
		pacing->sent_us[i] = now_us();
		if (fate == FATE_OK)
			fate = run_send_decision(run, pacing->producer, error);
		producer_poll(pacing->producer, 0);
		if (i % BENCH_RATE == 0)
			run_progress(run, "one decision at a time", i, pacing->count);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	int64_t end_us = now_us() + (int64_t)REST_MS * 1000;
	while (fate == FATE_OK && pacing->seen < pacing->count && now_us() < end_us) {
		fate = read_until(pacing, now_us() + PACE_US, error);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	if (fate == FATE_OK && pacing->seen < pacing->count)
		fate = error_set(error, FATE_RETRY, ERR_SYSTEM,
		                 "%u resumes have not come within %d s of their decisions",
		                 pacing->count - pacing->seen, REST_MS / 1000);
	return fate;
}

/* ---- its parts ---- */

static enum fate time_hop(struct run *run, struct producer *producer, struct reader *reader, int64_t *ret_us,
                          struct error *error)
{
	struct outgoing outgoing = { .topic = run->place->hop_topic,
		                         .value = VIEW_LITERAL("from the produce call to the reader's poll"),
		                         .timestamp_us = TIME_NONE };
	enum reader_event event = READER_NOTHING;
	struct record record;
	int64_t began_us = now_us();
	enum fate fate = producer_send(producer, &outgoing, error);

	while (fate == FATE_OK && event != READER_RECORD) {
		fate = reader_poll(reader, 100, &event, &record, error);
		if (fate == FATE_OK && event != READER_RECORD)
			fate = run_goes_on(run, error);
	}
	*ret_us = now_us() - began_us;
	if (event == READER_RECORD)
		record_done(&record);
	producer_poll(producer, 0);
	return fate;
}

static enum fate time_transaction(struct run *run, struct producer *producer, struct reader *reader,
                                  int64_t *ret_us, struct error *error)
{
	struct outgoing outgoing = { .topic = run->place->hop_topic,
		                         .value = VIEW_LITERAL("from begin to the answer to commit"),
		                         .timestamp_us = TIME_NONE };
	int64_t began_us = now_us();
	enum fate fate = producer_begin(producer, error);

	(void)run;
	(void)reader;
	if (fate == FATE_OK)
		fate = producer_send(producer, &outgoing, error);
	if (fate == FATE_OK)
		fate = producer_commit(producer, error);
	*ret_us = now_us() - began_us;
	return fate;
}

static enum fate time_commit(struct database *database, int64_t *ret_us, struct error *error)
{
	enum fate fate = database_run(database, "BEGIN", error);

	if (fate == FATE_OK)
		fate = database_run(database, "INSERT INTO bench_commit DEFAULT VALUES", error);
	int64_t began_us = now_us();
	if (fate == FATE_OK)
		fate = database_run(database, "COMMIT", error);
	*ret_us = now_us() - began_us;
	return fate;
}

/* One part, again and again at the pace. */
struct part {
	enum fate (*time)(struct run *run, struct producer *producer, struct reader *reader, int64_t *ret_us,
	                  struct error *error);
	struct producer *producer;
	struct reader *reader;
	struct database *database; /* in the place of time */
};

static enum fate median_of(struct run *run, const struct part *part, const char *doing, double *ret_ms,
                           struct error *error)
{
	struct samples samples;
	int64_t us, due_us = now_us();
	size_t count = (size_t)run->plan->latency_s * BENCH_RATE;
	enum fate fate;

	count = count < PARTS_MAX ? count : PARTS_MAX;
	fate = samples_init(&samples, count, error);
	for (size_t i = 0; i < count + WARM && fate == FATE_OK; i++, due_us += PACE_US) {
		nap(due_us - now_us());
		fate = part->database != NULL ? time_commit(part->database, &us, error)
		                              : part->time(run, part->producer, part->reader, &us, error);
		if (i >= WARM)
			samples_add(&samples, us);
		run_progress(run, doing, (int64_t)i, (int64_t)(count + WARM));
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	*ret_ms = samples_at(&samples, 0.5);
	samples_done(&samples);
	return fate;
}

struct parts {
	double hop_ms;
	double commit_ms;
	double transaction_ms;
};

static enum fate measure_hop(struct run *run, struct parts *parts, struct error *error)
{
	struct part part = { .time = time_hop };
	enum fate fate = run_producer(run, "0", NULL, &part.producer, error);

	if (fate == FATE_OK)
		fate = producer_warm(part.producer, run->place->hop_topic, 10000, NULL, error);
	if (fate == FATE_OK)
		fate = run_reader(run, run->place->hop_topic, &part.reader, error);
	if (fate == FATE_OK)
		fate = median_of(run, &part, "a hop alone", &parts->hop_ms, error);
	producer_close(part.producer);
	reader_close(part.reader, 2000);
	return fate;
}

static enum fate measure_commit(struct run *run, struct parts *parts, struct error *error)
{
	struct part part = { .time = NULL };
	enum fate fate = database_open(&part.database, run->place->scratch_dsn, error);

	if (fate == FATE_OK)
		fate = database_run(part.database,
		                    "CREATE TABLE bench_commit (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)",
		                    error);
	if (fate == FATE_OK)
		fate = median_of(run, &part, "a commit alone", &parts->commit_ms, error);
	database_close(part.database);
	return fate;
}

static enum fate measure_transaction(struct run *run, struct parts *parts, struct error *error)
{
	struct part part = { .time = time_transaction };
	enum fate fate = run_producer(run, "0", run->place->hop_topic, &part.producer, error);

	if (fate == FATE_OK)
		fate = producer_warm(part.producer, run->place->hop_topic, 10000, NULL, error);
	if (fate == FATE_OK)
		fate = producer_init_transactions(part.producer, 30000, error);
	if (fate == FATE_OK)
		fate = median_of(run, &part, "a transaction alone", &parts->transaction_ms, error);
	producer_close(part.producer);
	return fate;
}

/* ---- the phase ---- */

static void give(struct run *run, const struct bench_figure *figure)
{
	struct bench_figure all = *figure;

	all.phase = BENCH_LATENCY;
	all.unit = "ms";
	all.goal_at_most = true;
	all.count = all.count > 0 ? all.count : PARTS_MAX;
	run_give(run, &all);
}

static void give_all(struct run *run, struct samples *samples, const struct parts *parts)
{
	bool goal = run->plan->size == KIB2;
	double p50 = samples_at(samples, 0.5);
	double sum = 2 * parts->hop_ms + parts->commit_ms + parts->transaction_ms;
	int64_t count = (int64_t)samples->len;
	const struct bench_figure figures[] = {
		{ .what = "decision to resume, p50",
		  .value = p50,
		  .limit = sum,
		  .limit_of = "its parts, each alone",
		  .goal = goal ? 1 : 0,
		  .count = count },
		{ .what = "decision to resume, p99",
		  .value = samples_at(samples, 0.99),
		  .limit = p50,
		  .limit_of = "p50",
		  .goal = goal ? BOUND_P99 : 0,
		  .count = count },
		{ .what = "decision to resume, max", .aside = true, .value = samples_at(samples, 1), .count = count },
		{ .what = "  part: a hop, of two", .aside = true, .value = parts->hop_ms },
		{ .what = "  part: a commit of PostgreSQL", .aside = true, .value = parts->commit_ms },
		{ .what = "  part: a transaction of Kafka", .aside = true, .value = parts->transaction_ms },
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		give(run, &figures[i]);
}

/* Sessions asleep, a worker that is idle, and the pace. */
static enum fate run_pacing(struct pacing *pacing, struct error *error)
{
	struct run *run = pacing->run;
	enum fate fate = run_send_suspends(run, pacing->count, error);

	if (fate == FATE_OK)
		fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_suspends(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_ready(run, error);
	if (fate == FATE_OK)
		fate = run_await_gates(run, error);
	if (fate == FATE_OK)
		fate = run_producer(run, "0", NULL, &pacing->producer, error);
	if (fate == FATE_OK)
		fate = producer_warm(pacing->producer, run_topic(run, PARAM_TOPICS_APPROVALS), 10000, NULL, error);
	return fate == FATE_OK ? pace(pacing, error) : fate;
}

enum fate phase_latency(struct run *run, struct error *error)
{
	struct pacing pacing = { .run = run,
		                     .first = run->made,
		                     .count = BENCH_RATE * (uint32_t)run->plan->latency_s };
	struct parts parts = { .hop_ms = 0 };
	enum fate fate = samples_init(&pacing.samples, pacing.count, error);

	run->decided = run->made;
	pacing.sent_us = calloc(pacing.count, sizeof(*pacing.sent_us));
	if (fate == FATE_OK && pacing.sent_us == NULL)
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the samples");
	if (fate == FATE_OK)
		fate = run_pacing(&pacing, error);
	run->host->stop(run->host->context, false);
	if (fate == FATE_OK)
		fate = measure_hop(run, &parts, error);
	if (fate == FATE_OK)
		fate = measure_commit(run, &parts, error);
	if (fate == FATE_OK)
		fate = measure_transaction(run, &parts, error);
	if (fate == FATE_OK)
		give_all(run, &pacing.samples, &parts);
	producer_close(pacing.producer);
	samples_done(&pacing.samples);
	free(pacing.sent_us);
	return fate;
}
