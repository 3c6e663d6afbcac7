#include "worker/rebuild_inner.h"
#include "worker/startup.h"

#define TICK_MS  100
#define LOOK_MS  250
#define TELL_MS  1000
#define STILL_MS 5000 /* nothing has moved for so long: does Kafka answer? */
#define ASK_MS   3000

const char *rebuild_phase_name(enum rebuild_phase phase)
{
	static const char *const names[REBUILD_PHASES] = {
		[REBUILD_RESUMES] = "resumes",
		[REBUILD_SUSPENDS] = "suspends",
		[REBUILD_APPROVALS] = "approvals",
	};
	return (unsigned)phase < REBUILD_PHASES ? names[phase] : "?";
}

/* ---- what the database says ---- */

static struct goal *find(struct rebuild *rebuild, bool ledger, struct view topic, int32_t partition)
{
	for (size_t i = 0; i < rebuild->goals_len; i++) {
		struct goal *goal = &rebuild->goals[i];
		if (goal->partition == partition && (goal->phase == REBUILD_RESUMES) == ledger &&
		    view_equal_text(topic, goal->topic))
			return goal;
	}
	return NULL;
}

static void note_row(struct goal *goal, int64_t next, bool waits)
{
	if (goal == NULL)
		return;
	goal->known = true;
	goal->next = next;
	goal->waits = waits;
}

static enum fate ask(struct rebuild *rebuild, struct error *error)
{
	struct ledger_row *ledgers;
	struct position *positions;
	size_t ledgers_len, positions_len;
	const char *cluster = rebuild->worker.cluster_id;
	arena_reset(rebuild->arena);
	enum fate fate = store_ledgers(rebuild->store, cluster, rebuild->arena, &ledgers, &ledgers_len, error);
	if (fate == FATE_OK)
		fate = store_positions(rebuild->store, cluster, rebuild->arena, &positions, &positions_len, error);
	if (fate != FATE_OK)
		return fate;
	for (size_t i = 0; i < ledgers_len; i++)
		note_row(find(rebuild, true, ledgers[i].topic, ledgers[i].partition), ledgers[i].ledger.next, false);
	for (size_t i = 0; i < positions_len; i++)
		note_row(find(rebuild, false, positions[i].topic, positions[i].partition), positions[i].next,
		         positions[i].waits == WAITS_ALARM);
	return FATE_OK;
}

static bool goal_reached(const struct goal *goal)
{
	return goal->known ? goal->waits || goal->next >= goal->end : goal->end == 0;
}

bool rebuild_reached(const struct rebuild *rebuild, enum rebuild_phase phase)
{
	for (size_t i = 0; i < rebuild->goals_len; i++)
		if (rebuild->goals[i].phase == phase && !goal_reached(&rebuild->goals[i]))
			return false;
	return true;
}

/* ---- progress ---- */

static void count_phase(const struct rebuild *rebuild, enum rebuild_phase phase, int64_t *ret_read,
                        int64_t *ret_of)
{
	*ret_read = *ret_of = 0;
	for (size_t i = 0; i < rebuild->goals_len; i++) {
		const struct goal *goal = &rebuild->goals[i];
		if (goal->phase != phase)
			continue;
		int64_t next = !goal->known || goal->next < goal->low ? goal->low : goal->next;
		*ret_of += goal->end - goal->low;
		*ret_read += (next < goal->end ? next : goal->end) - goal->low;
	}
}

static int64_t per_second(const struct pace *pace, int64_t read, int64_t now_ms)
{
	int64_t ms = (pace->ended_ms != 0 ? pace->ended_ms : now_ms) - pace->started_ms;
	if (pace->started_ms == 0 || read <= pace->base || (ms < TELL_MS && pace->ended_ms == 0))
		return -1;
	return (read - pace->base) * 1000 / (ms > 0 ? ms : 1);
}

/* What has not begun is taken to go as fast as what runs. */
static int64_t estimate(const struct rebuild_progress *progress)
{
	int64_t pace = progress->phases[progress->now].per_s, ms = 0;
	for (int i = (int)progress->now; i < REBUILD_PHASES; i++) {
		int64_t left = progress->phases[i].of - progress->phases[i].read;
		if (left == 0)
			continue;
		if (pace <= 0)
			return -1;
		ms += left * 1000 / pace;
	}
	return (ms + 999) / 1000;
}

static void measure(struct rebuild *rebuild)
{
	struct rebuild_progress *progress = &rebuild->report->progress;
	int64_t now_ms = clock_mono_ms();
	bool before = true; /* all phases before this one are over */
	progress->now = REBUILD_APPROVALS;
	for (int i = 0; i < REBUILD_PHASES; i++) {
		struct pace *pace = &rebuild->paces[i];
		int64_t read, of;
		count_phase(rebuild, (enum rebuild_phase)i, &read, &of);
		bool reached = rebuild_reached(rebuild, (enum rebuild_phase)i);
		if (before && pace->started_ms == 0)
			*pace = (struct pace){ .started_ms = now_ms, .base = read };
		if (before && reached && pace->ended_ms == 0)
			pace->ended_ms = now_ms;
		if (before && !reached)
			progress->now = (enum rebuild_phase)i;
		before = before && reached;
		progress->phases[i].read = read;
		progress->phases[i].of = of;
		progress->phases[i].per_s = per_second(pace, read, now_ms);
	}
	progress->left_s = estimate(progress);
}

enum fate rebuild_look(struct rebuild *rebuild, struct error *error)
{
	enum fate fate = ask(rebuild, error);
	int64_t now_ms = clock_mono_ms();
	rebuild->looked_ms = now_ms;
	if (fate == FATE_RETRY) {
		if (rebuild->away_since_ms == 0)
			rebuild->away_since_ms = now_ms;
		return now_ms - rebuild->away_since_ms < REBUILD_AWAY_MS ? FATE_OK : FATE_RETRY;
	}
	if (fate != FATE_OK)
		return fate;
	rebuild->away_since_ms = 0;
	measure(rebuild);
	if (rebuild->options->progress != NULL && now_ms - rebuild->told_ms >= TELL_MS) {
		rebuild->told_ms = now_ms;
		rebuild->options->progress(rebuild->options->context, &rebuild->report->progress);
	}
	return FATE_OK;
}

/* ---- a broker that is frozen ---- */

static int64_t sum_of_positions(const struct rebuild *rebuild)
{
	int64_t sum = 0;
	for (size_t i = 0; i < rebuild->goals_len; i++)
		sum += rebuild->goals[i].next;
	return sum;
}

/* Its connections stay open, so that the clients take minutes to tell it from one that is slow. Whenever nothing has moved for
 * a while it is asked something. */
static bool is_silent(struct rebuild *rebuild, struct error *error)
{
	int64_t low, end, sum = sum_of_positions(rebuild), now_ms = clock_mono_ms();
	if (sum != rebuild->moved_sum || rebuild->moved_ms == 0) {
		rebuild->moved_sum = sum;
		rebuild->moved_ms = now_ms;
		rebuild->silent_ms = 0;
	}
	if (now_ms - rebuild->moved_ms < STILL_MS || now_ms < rebuild->ask_at_ms || rebuild->goals_len == 0)
		return false;
	const struct goal *goal = &rebuild->goals[0];
	enum fate fate =
		reader_range(rebuild->worker.ends, goal->topic, goal->partition, ASK_MS, &low, &end, error);
	rebuild->ask_at_ms = clock_mono_ms() + STILL_MS;
	if (fate != FATE_RETRY)
		rebuild->silent_ms = 0;
	else if (rebuild->silent_ms == 0)
		rebuild->silent_ms = now_ms;
	return rebuild->silent_ms != 0 && now_ms - rebuild->silent_ms > REBUILD_SILENT_MS;
}

/* ---- the main thread's loop ---- */

bool rebuild_tick(struct rebuild *rebuild)
{
	struct worker *worker = &rebuild->worker;
	struct error error = { 0 };
	if (worker_pause(worker, TICK_MS))
		return true;
	if (clock_mono_ms() - rebuild->looked_ms >= LOOK_MS && rebuild_look(rebuild, &error) != FATE_OK)
		worker_fail(worker, "rebuild", &error);
	if (worker_away_ms(worker) > REBUILD_AWAY_MS) {
		(void)error_set(
			&error, FATE_RETRY, ERR_SERVICE,
			"Kafka or PostgreSQL stayed away for a minute: start it again when they are there, it goes "
			"on where it is");
		worker_fail(worker, "rebuild", &error);
	}
	if (is_silent(rebuild, &error)) {
		(void)error_set(
			&error, FATE_RETRY, ERR_SERVICE,
			"Kafka has not answered for half a minute: start it again when it does, it goes on where it is");
		worker_fail(worker, "rebuild", &error);
	}
	return worker_stopping(worker);
}
