/* throughput.c - the phases that count how many go through in a second. */
#include "bench/outbox.h"

#define KIB2    ((size_t)2 << 10)
#define KIB32   ((size_t)32 << 10)
#define LOOK_US 20000 /* from one look at how many suspend events were taken in to the next */

static void give(struct run *run, struct bench_figure *figure, const struct timing *timing)
{
	figure->value = timing_rate(timing);
	figure->unit = "/s";
	figure->count = timing->count;
	figure->seconds = timing_seconds(timing);
	run_give(run, figure);
}

/* ---- suspend ---- */

static void give_suspends(struct run *run, const struct timing *taken, const struct timing *consumed,
                          const struct timing *sealed, const struct timing *plain)
{
	size_t size = run->plan->size;
	struct bench_figure figures[] = {
		{ .phase = BENCH_SUSPEND,
		  .what = "suspends, waiting on the topic",
		  .limit = timing_rate(sealed),
		  .limit_of = "COPY of the same rows",
		  .goal = size == KIB2 ? 0.8 : 0 },
		{ .phase = BENCH_SUSPEND,
		  .what = "suspends, waiting on the topic",
		  .limit = timing_rate(plain),
		  .limit_of = "COPY, unsealed, uncompressed",
		  .goal = size == KIB32 ? 1.5 : 0 },
		{ .phase = BENCH_SUSPEND,
		  .what = "suspends, waiting on the topic",
		  .limit = timing_rate(consumed),
		  .limit_of = "plain consumption" },
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		give(run, &figures[i], taken);
}

enum fate phase_suspend(struct run *run, struct error *error)
{
	struct timing taken, consumed, sealed, plain;
	enum fate fate = run_send_suspends(run, run->plan->sessions, error);

	if (fate == FATE_OK)
		fate = limit_consume(run, &consumed, error);
	if (fate == FATE_OK)
		fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_suspends(run, &taken, error);
	if (fate == FATE_OK)
		fate = run_await_gates(run, error);
	run->host->stop(run->host->context, false);
	if (fate == FATE_OK)
		fate = limit_copy(run, &sealed, &plain, error);
	if (fate != FATE_OK)
		return fate;
	run->suspends_per_s = timing_rate(&taken);
	give_suspends(run, &taken, &consumed, &sealed, &plain);
	return FATE_OK;
}

/* ---- resumes ---- */

/* So many sessions asleep that nobody has decided on, and no worker. */
static enum fate need_asleep(struct run *run, uint32_t count, struct error *error)
{
	uint32_t asleep = run->made - run->decided;

	if (asleep >= count)
		return FATE_OK;
	enum fate fate = run_take_in(run, count - asleep, error);
	run->host->stop(run->host->context, false);
	return fate;
}

enum fate phase_decide(struct run *run, struct error *error)
{
	struct timing timing;
	struct bench_figure figure = { .phase = BENCH_DECIDE,
		                           .what = "resumes, decisions waiting on the topic",
		                           .goal = run->plan->size == KIB2 ? 12000 : 0,
		                           .goal_of_value = true };
	enum fate fate = need_asleep(run, run->plan->sessions, error);

	if (fate == FATE_OK)
		fate = run_send_decisions(run, run->plan->sessions, error);
	if (fate == FATE_OK)
		fate = run_time_resumes(run, run->plan->sessions, NULL, NULL, &timing, error);
	if (fate == FATE_OK) {
		run->resumes_per_s = timing_rate(&timing);
		give(run, &figure, &timing);
	}
	return fate;
}

static double outbox_goal(size_t size)
{
	return size == KIB2 ? 0.5 : size == KIB32 ? 0.7 : 0;
}

enum fate phase_outbox(struct run *run, struct error *error)
{
	struct timing timing, bare;
	struct bench_figure figure = { .phase = BENCH_OUTBOX,
		                           .what = "resumes, from a full outbox",
		                           .limit_of = "bare transactional produce",
		                           .goal = outbox_goal(run->plan->size) };
	struct kept kept;
	enum fate fate = kept_init(&kept, run->plan->sessions, error);

	if (fate == FATE_OK)
		fate = need_asleep(run, run->plan->sessions, error);
	if (fate == FATE_OK)
		fate = outbox_fill(run, run->plan->sessions, error);
	if (fate == FATE_OK)
		fate = run_time_resumes(run, run->plan->sessions, kept_take, &kept, &timing, error);
	run->host->stop(run->host->context, false);
	if (fate == FATE_OK)
		fate = limit_produce(run, &kept, &bare, error);
	if (fate == FATE_OK) {
		figure.limit = timing_rate(&bare);
		give(run, &figure, &timing);
	}
	kept_done(&kept);
	return fate;
}

/* ---- both ---- */

/* What the two come to when one waits for the other. */
static double in_turn(const struct run *run)
{
	if (run->suspends_per_s <= 0 || run->resumes_per_s <= 0)
		return 0;
	return 1 / (1 / run->suspends_per_s + 1 / run->resumes_per_s);
}

/* People decide on what they have been told of. */
struct following {
	uint32_t first;    /* number of the first session of the phase */
	int64_t before;    /* suspends that were taken in before it */
	int64_t looked_us; /* when it was last asked how many were */
	int64_t taken_in;  /* and how many that were, of the phase */
	uint32_t seen;     /* resumes */
};

/* The decisions on those that were taken in, and those resumes that have come. */
static enum fate follow_up(struct run *run, struct following *following, struct error *error)
{
	uint32_t came = 1;
	int64_t taken_in = following->before;
	enum fate fate = FATE_OK;

	if (now_us() - following->looked_us >= LOOK_US) {
		fate = run_taken_in(run, &taken_in, error);
		following->taken_in = taken_in - following->before;
		following->looked_us = now_us();
	}
	while (fate == FATE_OK && run->decided - following->first < following->taken_in)
		fate = run_send_decision(run, run->producer, error);
	while (fate == FATE_OK && came > 0) {
		fate = run_poll_resume(run, 0, NULL, NULL, &came, error);
		following->seen += came;
	}
	return fate;
}

static enum fate send_both(struct run *run, struct following *following, struct timing *timing,
                           struct error *error)
{
	uint32_t count = run->plan->sessions;
	enum fate fate = FATE_OK;

	timing->began_us = now_us();
	for (uint32_t i = 0; i < count && fate == FATE_OK; i++) {
		fate = run_send_suspend(run, error);
		if (fate == FATE_OK && i % 16 == 0)
			fate = follow_up(run, following, error);
		if (i % 256 == 0)
			run_progress(run, "suspends and decisions as they come", i, count);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	if (fate == FATE_OK)
		fate = run_wait_sent(run, run->producer, error);
	while (fate == FATE_OK && following->taken_in < count) {
		int64_t before = following->taken_in + following->seen;
		fate = follow_up(run, following, error);
		if (following->taken_in + following->seen > before) /* else the patience with it comes to an end */
			run_progress(run, "resumes come", following->seen, count);
		if (fate == FATE_OK)
			fate = run_pause(run, LOOK_US / 1000, error);
	}
	if (fate == FATE_OK)
		fate = run_read_resumes(run, count - following->seen, NULL, NULL, error);
	timing->ended_us = now_us();
	timing->count = count;
	return fate;
}

enum fate phase_together(struct run *run, struct error *error)
{
	struct timing timing;
	struct bench_figure figure = { .phase = BENCH_TOGETHER,
		                           .what = "sessions, suspend and resume at once",
		                           .limit = in_turn(run),
		                           .limit_of = "the two apart, in turn" };
	struct following following = { .first = run->made, .before = run->suspends };
	enum fate fate;

	run->decided = run->made; /* those that sleep go on sleeping */
	fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = run_await_ready(run, error);
	if (fate == FATE_OK)
		fate = send_both(run, &following, &timing, error);
	if (fate == FATE_OK)
		give(run, &figure, &timing);
	return fate;
}
