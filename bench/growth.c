/*
 * growth.c - sessions that suspended twenty times, their history longer each time: the last suspend waits, the others are
 * superseded, and their sealed states are past retention. Beside them sessions that had only the last suspend. What retention
 * and vacuum have freed is given back before it is looked at: on a busy system the next sessions take that place.
 */
#include "bench/run_inner.h"

#define SHARE     400 /* sessions of the other phases for one of this */
#define LEAST     50
#define LOOK_MS   500
#define GIVE_UP_S 900

static enum fate look_at_disk(struct run *run, int64_t *ret_bytes, struct error *error)
{
	enum fate fate;

	run->host->stop(run->host->context, false);
	fate = run_long(run, "VACUUM (FULL)", "the tables are vacuumed", error);
	return fate == FATE_OK ? run_stored(run, ret_bytes, error) : fate;
}

/* Until the database holds no more payloads than those that wait. */
static enum fate await_retention(struct run *run, int64_t wait, struct error *error)
{
	int64_t end_ms = clock_mono_ms() + (int64_t)GIVE_UP_S * 1000, held = wait + 1;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && held > wait) {
		fate = database_number(run->database, "SELECT count(*) FROM fermata.payload", NULL, &held, error);
		run_progress(run, "superseded states wait for retention", 0, 0);
		if (fate == FATE_OK && held > wait)
			fate = run_pause(run, LOOK_MS, error);
		if (fate == FATE_OK && clock_mono_ms() > end_ms)
			fate = error_set(error, FATE_RETRY, ERR_SYSTEM, "retention has not come by in %d minutes",
			                 GIVE_UP_S / 60);
	}
	return fate;
}

/* All first suspends, then all second ones: nobody suspends twice at once. */
static enum fate send_grown(struct run *run, uint32_t count, struct error *error)
{
	enum fate fate = FATE_OK;

	for (uint32_t seq = 1; seq <= BENCH_GROWTH_SUSPENDS && fate == FATE_OK; seq++) {
		for (uint32_t i = 0; i < count && fate == FATE_OK; i++)
			fate = run_send_grown(run, run->made + i, seq, BENCH_GROWTH_SUSPENDS, error);
		if (fate == FATE_OK)
			fate = run_wait_sent(run, run->producer, error);
		if (fate == FATE_OK)
			fate = run_await_suspends(run, NULL, error);
	}
	return fate == FATE_OK ? run_await_gates(run, error) : fate;
}

static enum fate grow(struct run *run, uint32_t count, struct error *error)
{
	enum fate fate = run_start_worker(run, NULL, error);

	if (fate == FATE_OK)
		fate = send_grown(run, count, error);
	return fate == FATE_OK ? await_retention(run, run->made + count, error) : fate;
}

enum fate phase_growth(struct run *run, struct error *error)
{
	uint32_t count = run->plan->sessions / SHARE > LEAST ? run->plan->sessions / SHARE : LEAST;
	struct bench_figure figure = { .phase = BENCH_GROWTH,
		                           .what = "stored for a session of 20 suspends",
		                           .unit = "bytes",
		                           .limit_of = "with only the last of them",
		                           .goal = 1.3,
		                           .goal_at_most = true,
		                           .count = count };
	int64_t before = 0, once = 0, grown = 0;
	enum fate fate = look_at_disk(run, &before, error);

	if (fate == FATE_OK)
		fate = run_take_in(run, count, error);
	if (fate == FATE_OK)
		fate = look_at_disk(run, &once, error);
	if (fate == FATE_OK)
		fate = grow(run, count, error);
	if (fate == FATE_OK)
		fate = look_at_disk(run, &grown, error);
	if (fate != FATE_OK)
		return fate;
	figure.value = (double)(grown - once) / count;
	figure.limit = (double)(once - before) / count;
	run_give(run, &figure);
	return FATE_OK;
}
