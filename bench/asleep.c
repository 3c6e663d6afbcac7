/* asleep.c - what sessions cost that only wait: memory of the worker, disk of the database; and a worker that starts among them. */
#include "bench/run_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB          1048576.0
#define KIB32        ((size_t)32 << 10)
#define KIB2         ((size_t)2 << 10)
#define ROW_BYTES    700 /* what a sleeping session may take beside its compressed bytes */
#define MANY         1000000
#define RSS_GOAL_MIB 64
#define STEP         2000
#define AT_ONCE      (4 * STEP) /* suspend events on the topic before the worker's progress is looked at */

static void give(struct run *run, struct bench_figure *figure, int64_t count)
{
	figure->count = count;
	run_give(run, figure);
}

/* ---- memory ---- */

/* Resident memory of a process, in MiB. */
static enum fate read_rss(long pid, double *ret_mib, struct error *error)
{
	char path[64], line[256];
	long kib = -1;

	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	if (file != NULL)
		fclose(file);
	if (kib < 0)
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "%s does not tell the worker's memory", path);
	*ret_mib = (double)kib * 1024 / MIB;
	return FATE_OK;
}

/* What the allocators give back by themselves is given back. */
static enum fate settled_rss(struct run *run, long pid, double *ret_mib, struct error *error)
{
	int64_t end_ms = clock_mono_ms() + 1000 * (int64_t)run->plan->settle_s;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && clock_mono_ms() < end_ms) {
		run_progress(run, "the worker rests", 0, 0);
		fate = run_pause(run, end_ms - clock_mono_ms() < 500 ? end_ms - clock_mono_ms() : 500, error);
	}
	return fate == FATE_OK ? read_rss(pid, ret_mib, error) : fate;
}

/* As they come, with no more on the topic at once than a worker has soon: what a backlog does to memory is no question
 * of how many sleep. */
static enum fate take_in(struct run *run, uint32_t count, struct error *error)
{
	enum fate fate = FATE_OK;

	for (uint32_t done = 0; done < count && fate == FATE_OK; done += STEP) {
		fate = run_send_suspends(run, count - done < STEP ? count - done : STEP, error);
		if (fate == FATE_OK && (done % AT_ONCE == 0 || done + STEP >= count))
			fate = run_await_suspends(run, NULL, error);
		run_progress(run, "sessions go to sleep", done, count);
	}
	return fate == FATE_OK ? run_await_gates(run, error) : fate;
}

/* A worker that takes so many in, and what it holds afterwards, at once and rested. It still runs then. */
static enum fate memory_of(struct run *run, uint32_t count, double *ret_at_once, double *ret_rested,
                           struct error *error)
{
	long pid = 0;
	enum fate fate = run_start_worker(run, &pid, error);

	if (fate == FATE_OK)
		fate = run_await_ready(run, error);
	if (fate == FATE_OK)
		fate = take_in(run, count, error);
	if (fate == FATE_OK)
		fate = read_rss(pid, ret_at_once, error);
	return fate == FATE_OK ? settled_rss(run, pid, ret_rested, error) : fate;
}

static void give_memory(struct run *run, double few, double at_once, double rested)
{
	int64_t count = run->plan->asleep;
	struct bench_figure figures[] = {
		{ .phase = BENCH_ASLEEP,
		  .what = "memory of the worker, after a rest",
		  .unit = "MiB",
		  .value = rested,
		  .goal = count >= MANY ? RSS_GOAL_MIB : 0,
		  .goal_of_value = true,
		  .goal_at_most = true },
		{ .phase = BENCH_ASLEEP,
		  .what = "memory of the worker, after a rest",
		  .unit = "MiB",
		  .value = rested,
		  .limit = few,
		  .limit_of = "with few asleep",
		  .goal = 1.1,
		  .goal_at_most = true },
		{ .phase = BENCH_ASLEEP, .what = "memory of the worker, at once", .unit = "MiB", .value = at_once },
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		give(run, &figures[i], count);
}

/* ---- disk ---- */

/* What the sessions after the first `made` of them added, as vacuum leaves the tables: what was deleted from the lists of work is free, or gone. */
static enum fate give_disk(struct run *run, int64_t empty, uint32_t made, struct error *error)
{
	struct bench_figure figure = { .phase = BENCH_ASLEEP,
		                           .what = "stored for a session asleep",
		                           .unit = "bytes",
		                           .limit_of = "zstd -3 of the same, and 700",
		                           .goal = run->plan->size == KIB2 || run->plan->size == KIB32 ? 1 : 0,
		                           .goal_at_most = true };
	int64_t stored;
	enum fate fate = run_long(run, "VACUUM", "the tables are vacuumed", error);

	if (fate == FATE_OK)
		fate = run_stored(run, &stored, error);
	if (fate != FATE_OK)
		return fate;
	figure.value = (double)(stored - empty) / (run->made - made);
	figure.limit = run->zstd_len > 0 ? run->zstd_sum / (double)run->zstd_len + ROW_BYTES : 0;
	give(run, &figure, run->made - made);
	return FATE_OK;
}

/* ---- restart ---- */

static enum fate time_restart(struct run *run, bool kill, const char *what, struct error *error)
{
	struct bench_figure figure = { .phase = BENCH_RESTART, .what = what, .unit = "ms" };
	int64_t began_us;
	enum fate fate;

	run->host->stop(run->host->context, kill);
	began_us = now_us();
	fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_ready(run, error);
	if (fate != FATE_OK)
		return fate;
	figure.value = (double)(now_us() - began_us) / 1000;
	give(run, &figure, run->made);
	return FATE_OK;
}

/* The worker still runs from before, and is ready. */
static enum fate restarts(struct run *run, struct error *error)
{
	enum fate fate = time_restart(run, false, "ready again, once it was stopped", error);

	if (fate == FATE_OK && run->plan->kill)
		fate = time_restart(run, true, "ready again, once it was killed", error);
	return fate;
}

/* ---- the phase ---- */

enum fate phase_asleep(struct run *run, struct error *error)
{
	bool restart = run->plan->phases[BENCH_RESTART], asleep = run->plan->phases[BENCH_ASLEEP];
	double few = 0, few_at_once, at_once, rested;
	int64_t empty = 0;
	uint32_t made = run->made;
	enum fate fate = FATE_OK;

	if (asleep)
		fate = run_stored(run, &empty, error);
	if (fate == FATE_OK && asleep)
		fate = memory_of(run, run->plan->few, &few_at_once, &few, error);
	if (asleep)
		run->host->stop(run->host->context, false);
	if (fate == FATE_OK)
		fate = memory_of(run, run->plan->asleep, &at_once, &rested, error);
	if (fate == FATE_OK && asleep) {
		give_memory(run, few, at_once, rested);
		fate = give_disk(run, empty, made, error);
	}
	return fate == FATE_OK && restart ? restarts(run, error) : fate;
}
