/*
 * growth.c - sessions that suspended twenty times, their history longer each time: the last suspend waits, the others are
 * superseded, and their sealed states are past retention; and then the topic has let go of what is superseded, and the rows
 * have gone, too. Beside them sessions that had only the last suspend. What retention
 * and vacuum have freed is given back before it is looked at: on a busy system the next sessions take that place.
 */
#include "bench/run_inner.h"

#include "producer/topics.h"

#include <stdio.h>

#define SHARE      400 /* sessions of the other phases for one of this */
#define LEAST      50
#define LOOK_MS    500
#define GIVE_UP_S  900
#define ASK_MS     10000
#define PARTITIONS 1024

static enum fate look_at_disk(struct run *run, int64_t *ret_bytes, struct error *error)
{
	enum fate fate;

	run->host->stop(run->host->context, false);
	fate = run_long(run, "VACUUM (FULL)", "the tables are vacuumed", error);
	return fate == FATE_OK ? run_stored(run, ret_bytes, error) : fate;
}

/* Until a table holds no more rows than those that wait. */
static enum fate await_retention(struct run *run, const char *table, int64_t wait, struct error *error)
{
	char sql[64];
	int64_t end_ms = clock_mono_ms() + (int64_t)GIVE_UP_S * 1000, held = wait + 1;
	enum fate fate = FATE_OK;

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM fermata.%s", table);
	while (fate == FATE_OK && held > wait) {
		fate = database_number(run->database, sql, NULL, &held, error);
		run_progress(run, "what is superseded waits for retention", 0, 0);
		if (fate == FATE_OK && held > wait)
			fate = run_pause(run, LOOK_MS, error);
		if (fate == FATE_OK && clock_mono_ms() > end_ms)
			fate = error_set(error, FATE_RETRY, ERR_SYSTEM, "retention has not come by in %d minutes",
			                 GIVE_UP_S / 60);
	}
	return fate;
}

/* The ends of the partitions of the suspends topic, and how many those are. */
static enum fate ask_ends(struct run *run, int64_t *ret_ends, int32_t most, int32_t *ret_count,
                          struct error *error)
{
	const char *topic = run_topic(run, PARAM_TOPICS_SUSPENDS);
	int64_t low;
	enum fate fate = reader_partitions(run->ends, topic, ASK_MS, ret_count, error);

	if (fate == FATE_OK && *ret_count > most)
		fate = error_set(error, FATE_FATAL, ERR_USAGE, "%d partitions are too many for this phase",
		                 (int)*ret_count);
	for (int32_t i = 0; i < *ret_count && fate == FATE_OK; i++)
		fate = reader_range(run->ends, topic, i, ASK_MS, &low, &ret_ends[i], error);
	return fate;
}

struct growing {
	uint32_t count;
	int64_t ends[PARTITIONS]; /* of the suspends topic before the last of each session */
	int32_t ends_len;
};

/* All first suspends, then all second ones: nobody suspends twice at once. */
static enum fate send_grown(struct run *run, struct growing *growing, struct error *error)
{
	enum fate fate = FATE_OK;

	for (uint32_t seq = 1; seq <= BENCH_GROWTH_SUSPENDS && fate == FATE_OK; seq++) {
		if (seq == BENCH_GROWTH_SUSPENDS)
			fate = ask_ends(run, growing->ends, PARTITIONS, &growing->ends_len, error);
		for (uint32_t i = 0; i < growing->count && fate == FATE_OK; i++)
			fate = run_send_grown(run, run->made + i, seq, BENCH_GROWTH_SUSPENDS, error);
		if (fate == FATE_OK)
			fate = run_wait_sent(run, run->producer, error);
		if (fate == FATE_OK)
			fate = run_await_suspends(run, NULL, error);
	}
	return fate == FATE_OK ? run_await_gates(run, error) : fate;
}

static enum fate grow(struct run *run, struct growing *growing, struct error *error)
{
	enum fate fate = run_start_worker(run, NULL, error);

	if (fate == FATE_OK)
		fate = send_grown(run, growing, error);
	return fate == FATE_OK ? await_retention(run, "payload", run->made + growing->count, error) : fate;
}

/* The topic lets go of all but the last suspends, as it does of itself when they are old; then their rows go. */
static enum fate let_go(struct run *run, const struct growing *growing, struct error *error)
{
	size_t len;
	const struct property *properties = config_kafka(run->place->config, KAFKA_PRODUCER, &len);
	enum fate fate = topics_trim(properties, len, run_topic(run, PARAM_TOPICS_SUSPENDS), growing->ends,
	                             growing->ends_len, ASK_MS, error);

	if (fate == FATE_OK)
		fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = await_retention(run, "checkpoint", run->made + growing->count, error);
	return fate == FATE_OK ? run_await_gates(run, error) : fate;
}

static void give_grown(struct run *run, const char *what, uint32_t count, int64_t once, int64_t grown)
{
	struct bench_figure figure = { .phase = BENCH_GROWTH,
		                           .what = what,
		                           .unit = "bytes",
		                           .value = (double)grown / count,
		                           .limit = (double)once / count,
		                           .limit_of = "with only the last of them",
		                           .goal = 1.3,
		                           .goal_at_most = true,
		                           .count = count };
	run_give(run, &figure);
}

enum fate phase_growth(struct run *run, struct error *error)
{
	uint32_t count = run->plan->sessions / SHARE > LEAST ? run->plan->sessions / SHARE : LEAST;
	struct growing growing = { .count = count };
	int64_t before = 0, once = 0, grown = 0, left = 0;
	enum fate fate = look_at_disk(run, &before, error);

	if (fate == FATE_OK)
		fate = run_take_in(run, count, error);
	if (fate == FATE_OK)
		fate = look_at_disk(run, &once, error);
	if (fate == FATE_OK)
		fate = grow(run, &growing, error);
	if (fate == FATE_OK)
		fate = look_at_disk(run, &grown, error);
	if (fate != FATE_OK)
		return fate;
	give_grown(run, "stored for a session of 20 suspends", count, once - before, grown - once);
	fate = let_go(run, &growing, error);
	if (fate == FATE_OK)
		fate = look_at_disk(run, &left, error);
	if (fate == FATE_OK)
		give_grown(run, "the same, once their topic has let go", count, once - before, left - once);
	return fate;
}
