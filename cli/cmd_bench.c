/* cmd_bench.c - `fermata bench`: options, and one measurement after the other, each on a ground of its own. */
#include "cli/bench_say.h"
#include "cli/bench_stage.h"
#include "cli/cmd.h"
#include "cli/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZES_MAX      8
#define KIB            ((size_t)1024)
#define SESSIONS       40000 /* at 2 KiB; fewer of what is larger */
#define SESSIONS_QUICK 4000
#define SESSIONS_LEAST 64
#define ASLEEP         100000
#define FEW            1000
#define LATENCY_S      20
#define LATENCY_S_MAX  3600
#define REST_S         60
#define MOST           20000000
#define TAIL_LINES     12
#define SIGNAL_EXIT    128

struct benching {
	struct cli *cli;
	struct stage stage;
	struct bench_saying saying;
	bool phases[BENCH_PHASES]; /* that are wanted */
	struct bench_plan plan;    /* of one size */
	size_t sizes[SIZES_MAX];
	size_t sizes_len;
	size_t sessions, asleep, latency_s; /* as given, or by default */
	size_t rounds, settled;
	bool quick;
	struct error said; /* what could not be written */
};

/* ---- options ---- */

static enum fate take_size(const char *text, size_t *ret_size, struct error *error)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	size_t unit = !strcmp(end, "KiB") ? KIB : !strcmp(end, "MiB") ? KIB * KIB : *end == '\0' ? 1 : 0;

	if (text[0] < '0' || text[0] > '9' || unit == 0 || number > BENCH_SIZE_MAX ||
	    number * unit < BENCH_SIZE_MIN || number * unit > BENCH_SIZE_MAX)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "--size %.40s: it is to be bytes, 2KiB or 1MiB, from 1KiB to 4MiB", text);
	*ret_size = (size_t)number * unit;
	return FATE_OK;
}

static enum fate take_sizes(struct benching *benching, struct error *error)
{
	enum fate fate = FATE_OK;
	const char *text;

	for (size_t n = 0; fate == FATE_OK && (text = cli_value_at(benching->cli, "size", n)) != NULL; n++) {
		if (n == SIZES_MAX)
			return error_set(error, FATE_FATAL, ERR_USAGE, "--size may be given %d times", SIZES_MAX);
		fate = take_size(text, &benching->sizes[benching->sizes_len++], error);
	}
	if (benching->sizes_len == 0) {
		benching->sizes[0] = 2 * KIB;
		benching->sizes[1] = 32 * KIB;
		benching->sizes_len = 2;
	}
	return fate;
}

static enum fate take_phases(struct benching *benching, struct error *error)
{
	bool *phases = benching->phases;
	const char *text;
	size_t n;

	for (n = 0; (text = cli_value_at(benching->cli, "phase", n)) != NULL; n++) {
		int phase = 0;
		while (phase < BENCH_PHASES && strcmp(bench_phase_name((enum bench_phase)phase), text) != 0)
			phase++;
		if (phase == BENCH_PHASES)
			return error_set(error, FATE_FATAL, ERR_USAGE,
			                 "--phase %.40s: it is to be suspend, asleep, restart, decide, outbox, together, "
			                 "latency or growth",
			                 text);
		phases[phase] = true;
	}
	for (int phase = 0; n == 0 && phase < BENCH_PHASES; phase++)
		phases[phase] = phase != BENCH_GROWTH || !benching->quick; /* it takes minutes */
	return FATE_OK;
}

static enum fate take_count(struct benching *benching, const char *name, size_t fallback, size_t most,
                            size_t *ret_count, struct error *error)
{
	enum fate fate = cli_number(benching->cli, name, fallback, ret_count, error);

	if (fate == FATE_OK && *ret_count > most)
		return error_set(error, FATE_FATAL, ERR_USAGE, "--%s: at most %zu", name, most);
	return fate;
}

static enum fate take_options(struct benching *benching, struct error *error)
{
	enum fate fate;

	benching->quick = cli_given(benching->cli, "quick");
	fate = take_sizes(benching, error);
	if (fate == FATE_OK)
		fate = take_phases(benching, error);
	if (fate == FATE_OK)
		fate = take_count(benching, "sessions", benching->quick ? SESSIONS_QUICK : SESSIONS, MOST,
		                  &benching->sessions, error);
	if (fate == FATE_OK)
		fate = take_count(benching, "asleep", benching->quick ? SESSIONS_QUICK : ASLEEP, MOST,
		                  &benching->asleep, error);
	if (fate == FATE_OK)
		fate = take_count(benching, "rounds", 1, SAYING_ROUNDS_MAX, &benching->rounds, error);
	if (fate == FATE_OK && cli_given(benching->cli, "settled"))
		fate = take_count(benching, "settled", 1, MOST, &benching->settled, error);
	if (fate == FATE_OK)
		fate = take_count(benching, "seconds", benching->quick ? LATENCY_S / 5 : LATENCY_S, LATENCY_S_MAX,
		                  &benching->latency_s, error);
	return fate;
}

/* So many of 2 KiB; of what is larger fewer, down to where they would say nothing. */
static uint32_t fewer(size_t count, size_t size)
{
	size_t fitting = size <= 2 * KIB ? count : count * 4 * KIB / size;

	fitting = fitting < count ? fitting : count;
	return (uint32_t)(fitting > SESSIONS_LEAST ? fitting : SESSIONS_LEAST);
}

static void plan_size(struct benching *benching, size_t size, size_t settled)
{
	struct bench_plan *plan = &benching->plan;

	plan->run = benching->stage.random;
	plan->size = size;
	plan->settled = (uint32_t)settled;
	plan->sessions = fewer(benching->sessions, size);
	plan->asleep = fewer(benching->asleep, size);
	plan->few = fewer(benching->quick ? FEW / 4 : FEW, size);
	plan->latency_s = (int)benching->latency_s;
	plan->kill = !benching->quick;
	plan->settle_s = benching->quick ? REST_S / 20 : REST_S;
}

/* ---- the host ---- */

static enum fate start(void *context, long *ret_pid, struct error *error)
{
	struct benching *benching = context;
	return stage_start_worker(&benching->stage, ret_pid, error);
}

static bool ready(void *context)
{
	const struct benching *benching = context;
	return stage_worker_ready(&benching->stage);
}

static void stop(void *context, bool kill)
{
	struct benching *benching = context;
	stage_stop_worker(&benching->stage, kill);
}

static enum fate rest(void *context, int64_t ms, struct error *error)
{
	struct benching *benching = context;
	return stage_pause(&benching->stage, ms, error);
}

static void progress(void *context, const char *doing, int64_t done, int64_t of)
{
	struct benching *benching = context;
	bench_say_progress(&benching->saying, benching->plan.size, doing, done, of);
}

static void figure(void *context, const struct bench_figure *given)
{
	struct benching *benching = context;
	(void)!bench_say_figure(&benching->saying, given, &benching->said);
}

/* ---- the run ---- */

static enum fate measure(struct benching *benching, const char *retention, struct error *error)
{
	const struct bench_host host = { benching, start, ready, stop, rest, progress, figure };
	struct stage *stage = &benching->stage;
	enum fate fate;

	progress(benching, "making databases and topics", 0, 0);
	fate = ground_make(stage, retention, error);
	if (fate == FATE_OK)
		fate = bench_run(&benching->plan, &stage->place, &host, error);
	bench_say_over(&benching->saying);
	if (!ground_clear(stage) && fate == FATE_OK)
		fate = error_set(error, FATE_RETRY, ERR_SYSTEM, "not everything that was made could be removed");
	return fate;
}

/* Growth wants workers that the others are not to have. */
static enum fate measure_growth(struct benching *benching, size_t size, struct error *error)
{
	bool *phases = benching->plan.phases;

	plan_size(benching, size, 0);
	memset(phases, 0, sizeof(benching->plan.phases));
	phases[BENCH_GROWTH] = true;
	return measure(benching, BENCH_GROWTH_RETENTION, error);
}

/* All phases but that one, of one size; false: none of them is wanted. */
static bool plan_others(struct benching *benching, size_t size, size_t settled)
{
	bool any = false;

	plan_size(benching, size, settled);
	for (int phase = 0; phase < BENCH_PHASES; phase++) {
		benching->plan.phases[phase] = benching->phases[phase] && phase != BENCH_GROWTH;
		any = any || benching->plan.phases[phase];
	}
	return any;
}

/* On empty tables and then, where that is wanted, among settled rows. */
static enum fate measure_size(struct benching *benching, size_t size, struct error *error)
{
	enum fate fate = FATE_OK;

	if (plan_others(benching, size, 0))
		fate = measure(benching, NULL, error);
	if (fate == FATE_OK && benching->phases[BENCH_GROWTH])
		fate = measure_growth(benching, size, error);
	if (fate != FATE_OK || benching->settled == 0 || !plan_others(benching, size, benching->settled))
		return fate;
	fate = measure(benching, NULL, error);
	if (fate == FATE_OK)
		fate = bench_say_settled(&benching->saying, size, (uint32_t)benching->settled, error);
	return fate;
}

static enum fate measure_round(struct benching *benching, struct error *error)
{
	enum fate fate = FATE_OK;

	benching->saying.round++;
	for (size_t i = 0; i < benching->sizes_len && fate == FATE_OK; i++)
		fate = measure_size(benching, benching->sizes[i], error);
	return fate;
}

static void show_line(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "  %s\n", line);
}

/* The exit code; what failed is said, with the end of the worker's log where there is one. */
static int finish(struct benching *benching, enum fate fate, const struct error *error)
{
	bool asked = processes_signal() != 0;
	bool keep;
	struct error written = { .fate = FATE_OK };
	char log[DEV_PATH_MAX];
	int code = EXIT_YES;

	bench_say_over(&benching->saying);
	if (bench_say_table(&benching->saying, &written) != FATE_OK || benching->said.fate != FATE_OK)
		code = cli_fail(written.fate != FATE_OK ? &written : &benching->said);
	if (asked)
		code = SIGNAL_EXIT + processes_signal();
	else if (fate != FATE_OK)
		code = cli_fail(error);
	files_join(log, benching->stage.world.logs, "worker.log");
	keep = fate != FATE_OK && !asked && benching->stage.world.logs[0] != '\0' && access(log, R_OK) == 0;
	if (keep) {
		files_tail(log, TAIL_LINES, show_line, NULL);
		fprintf(stderr, "  the logs are in %s\n", benching->stage.world.logs);
	}
	if (!stage_close(&benching->stage, keep) && code == EXIT_YES)
		code = EXIT_AGAIN;
	return code;
}

int cmd_bench(struct cli *cli)
{
	static struct benching benching; /* too large for a stack */
	struct error error = { .fate = FATE_OK };
	struct stage_request request = { .config = cli->config,
		                             .kafka_libs = cli_value(cli, "kafka-libs"),
		                             .dev = cli_given(cli, "dev") };
	enum fate fate;

	benching = (struct benching){ .cli = cli };
	bench_say_init(&benching.saying, cli->json);
	fate = take_options(&benching, &error);
	if (fate != FATE_OK)
		return cli_fail(&error);
	fate = stage_open(&benching.stage, &request, &error);
	if (fate != FATE_OK)
		(void)kafka_away(cli, &error);
	for (size_t i = 0; i < benching.rounds && fate == FATE_OK; i++)
		fate = measure_round(&benching, &error);
	return finish(&benching, fate, &error);
}
