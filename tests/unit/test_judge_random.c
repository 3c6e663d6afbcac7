// links: worker schemas vault store core
// Thousands of random logs, cut into random batches: the judge against a model that knows neither rows nor
// batches, but looks through the whole log for each checkpoint and says what became of it.
#include "test_judge.h"

#include <stdio.h>

#define CHECKPOINTS 7
#define DECISIONS   24
#define LOG_MAX     64
#define SEEDS       2000
#define EXPIRES     (T0 + 3600 * SECOND)
#define NEVER       (-1)

/* ---- a log ---- */

struct entry {
	bool suspend;
	int number; /* of the checkpoint or the decision, from 1 */
	uint8_t bytes;
};

/* Each checkpoint and each decision may come in two versions, of which the first to come stands. */
struct plan {
	uint64_t random;
	int lines;
	struct suspend_args suspends[CHECKPOINTS + 1][2];
	int checkpoint_of[DECISIONS + 1];
	struct decision_args decisions[DECISIONS + 1][2];
	struct entry log[LOG_MAX];
	int len;
};

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016). */
static int draw(struct plan *plan, int below)
{
	plan->random ^= plan->random >> 12;
	plan->random ^= plan->random << 25;
	plan->random ^= plan->random >> 27;
	return (int)((plan->random * UINT64_C(2685821657736338717) >> 33) % (uint64_t)below);
}

static bool chance(struct plan *plan, int percent)
{
	return draw(plan, 100) < percent;
}

static struct suspend_args draw_suspend(struct plan *plan, int number)
{
	static const char *const sessions[] = { "a", "b", "c", "d", "e", "f", "g" };
	int line = plan->lines < CHECKPOINTS ? draw(plan, plan->lines) : number - 1;

	return (struct suspend_args){
		.session = sessions[line],
		.seq = 1 + draw(plan, 5),
		.expires_at = chance(plan, 60) ? EXPIRES : 0,
		.on_expiry = (enum on_expiry)draw(plan, 3),
		.quorum = 1 + draw(plan, 3),
		.approver = chance(plan, 20) ? "bob" : NULL,
	};
}

static struct decision_args draw_decision(struct plan *plan, int checkpoint)
{
	static const char *const people[] = { "ann", "bob", "cyd" };

	return (struct decision_args){
		.kind = chance(plan, 60) ? DECISION_APPROVE : (enum decision_kind)draw(plan, 4),
		.who = people[draw(plan, 3)],
		.at = chance(plan, 70) ? EXPIRES - SECOND : EXPIRES,
		.digest = chance(plan, 80)   ? 0
		          : chance(plan, 50) ? checkpoint
		                             : checkpoint + 100,
	};
}

static void draw_plan(struct plan *plan, uint64_t seed, int lines, int suspends_percent)
{
	memset(plan, 0, sizeof(*plan));
	plan->random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
	plan->lines = lines;
	for (int i = 1; i <= CHECKPOINTS; i++)
		for (int v = 0; v < 2; v++) {
			plan->suspends[i][v] = draw_suspend(plan, i);
			plan->suspends[i][v].bytes = (uint8_t)v;
		}
	for (int i = 1; i <= DECISIONS; i++) {
		plan->checkpoint_of[i] = 1 + draw(plan, CHECKPOINTS);
		for (int v = 0; v < 2; v++) {
			plan->decisions[i][v] = draw_decision(plan, plan->checkpoint_of[i]);
			plan->decisions[i][v].bytes = (uint8_t)v;
		}
	}
	plan->len = 1 + draw(plan, LOG_MAX);
	for (int i = 0; i < plan->len; i++) {
		struct entry *entry = &plan->log[i];
		entry->suspend = chance(plan, suspends_percent);
		entry->number = 1 + draw(plan, entry->suspend ? CHECKPOINTS : DECISIONS);
		entry->bytes = chance(plan, 15);
	}
}

/* ---- the model ---- */

struct story {
	bool exists;
	enum gate_state state;
	bool has_verdict;
	enum verdict verdict;
	int approvals;
	bool held;
	bool someone[3]; /* who has approved */
	const struct suspend_args *event;
	int came;       /* when its suspend event came, NEVER */
	int superseded; /* when a later one of its line came, NEVER */
	bool outdated;
};

struct ending {
	struct story stories[CHECKPOINTS + 1];
	bool known[DECISIONS + 1];
	uint8_t bytes[DECISIONS + 1]; /* the version that stands */
	enum outcome outcome[DECISIONS + 1];
	const char *refusal[DECISIONS + 1];
};

static int first_coming(const struct entry *log, int len, bool suspend, int number)
{
	for (int i = 0; i < len; i++)
		if (log[i].suspend == suspend && log[i].number == number)
			return i;
	return NEVER;
}

/* What the suspend events say, and which later one made it void. */
static void tell_line(const struct plan *plan, const struct entry *log, int len, struct ending *ending)
{
	for (int i = 1; i <= CHECKPOINTS; i++) {
		struct story *story = &ending->stories[i];
		story->came = first_coming(log, len, true, i);
		story->superseded = NEVER;
		if (story->came != NEVER)
			story->event = &plan->suspends[i][log[story->came].bytes];
	}
	for (int i = 1; i <= CHECKPOINTS; i++)
		for (int j = 1; j <= CHECKPOINTS; j++) {
			struct story *mine = &ending->stories[i];
			const struct story *other = &ending->stories[j];
			if (i == j || mine->came == NEVER || other->came == NEVER ||
			    strcmp(mine->event->session, other->event->session) != 0)
				continue;
			if (other->came < mine->came && other->event->seq >= mine->event->seq)
				mine->outdated = true;
			if (other->came > mine->came && other->event->seq > mine->event->seq &&
			    (mine->superseded == NEVER || other->came < mine->superseded))
				mine->superseded = other->came;
		}
}

/* Why the decision does not count, or NULL. */
static const char *objection(const struct story *story, int checkpoint, const struct decision_args *said,
                             int when)
{
	const struct suspend_args *event = story->event;
	bool late = event->expires_at != 0 && said->at >= event->expires_at;
	bool expire = said->kind == DECISION_EXPIRE;
	bool hold = event->on_expiry == ON_EXPIRY_HOLD;

	if (!story->has_verdict && (story->outdated || (story->superseded != NEVER && when > story->superseded)))
		return "superseded";
	if (story->has_verdict || (expire && hold && story->held))
		return "already_decided";
	if (said->digest != 0 && said->digest != checkpoint + 16 * event->bytes)
		return "wrong_digest";
	if (expire)
		return late ? NULL : "too_early";
	if (late && !hold)
		return "late";
	if (said->kind != DECISION_CANCEL && event->approver != NULL && strcmp(event->approver, said->who) != 0)
		return "not_approver";
	if (said->kind == DECISION_APPROVE && story->someone[said->who[0] - 'a'])
		return "same_approver";
	return NULL;
}

static void settle(struct story *story, enum verdict verdict)
{
	story->has_verdict = true;
	story->verdict = verdict;
}

static void count(struct story *story, const struct decision_args *said)
{
	const struct suspend_args *event = story->event;

	switch (said->kind) {
	case DECISION_APPROVE:
		story->someone[said->who[0] - 'a'] = true;
		if (++story->approvals == event->quorum)
			settle(story, VERDICT_APPROVED);
		return;
	case DECISION_REJECT:
		settle(story, VERDICT_REJECTED);
		return;
	case DECISION_CANCEL:
		settle(story, VERDICT_CANCELLED);
		return;
	case DECISION_EXPIRE:
		if (event->on_expiry == ON_EXPIRY_HOLD)
			story->held = true;
		else
			settle(story, event->on_expiry == ON_EXPIRY_APPROVE ? VERDICT_APPROVED : VERDICT_EXPIRED);
		return;
	}
}

/* The log in the order of judging gives the decisions of each checkpoint in their order too; those that came
 * before its suspend are judged at the moment when it comes. */
static void tell_decisions(const struct plan *plan, const struct entry *log, int len, struct ending *ending)
{
	for (int i = 0; i < len; i++) {
		int number = log[i].number;
		if (log[i].suspend || ending->known[number])
			continue;
		int checkpoint = plan->checkpoint_of[number];
		struct story *story = &ending->stories[checkpoint];
		const struct decision_args *said = &plan->decisions[number][log[i].bytes];
		ending->known[number] = true;
		ending->bytes[number] = log[i].bytes;
		ending->outcome[number] = OUTCOME_WAITING;
		story->exists = true;
		if (story->came == NEVER)
			continue;
		int when = i > story->came ? i : story->came;
		ending->refusal[number] = objection(story, checkpoint, said, when);
		ending->outcome[number] = ending->refusal[number] == NULL ? OUTCOME_COUNTED : OUTCOME_REFUSED;
		if (ending->refusal[number] == NULL)
			count(story, said);
	}
}

static void tell(const struct plan *plan, const struct entry *log, int len, struct ending *ret_ending)
{
	memset(ret_ending, 0, sizeof(*ret_ending));
	tell_line(plan, log, len, ret_ending);
	tell_decisions(plan, log, len, ret_ending);
	for (int i = 1; i <= CHECKPOINTS; i++) {
		struct story *story = &ret_ending->stories[i];
		bool gone = story->outdated || story->superseded != NEVER;
		story->exists = story->exists || story->came != NEVER;
		story->state = story->came == NEVER ? GATE_UNCLAIMED
		               : story->has_verdict ? GATE_DECIDED
		               : gone               ? GATE_SUPERSEDED
		                                    : GATE_PENDING;
	}
}

/* ---- the judge, batch by batch ---- */

static struct item *item_of(struct world *w, const struct plan *plan, const struct entry *entry)
{
	int number = entry->number;

	if (entry->suspend)
		return suspend_item(w, number, plan->suspends[number][entry->bytes]);
	return decision_item(w, number, plan->checkpoint_of[number], plan->decisions[number][entry->bytes]);
}

static void run_batch(struct world *w, const struct plan *plan, const struct entry *entries, int len)
{
	struct item *items[LOG_MAX];

	for (int i = 0; i < len; i++)
		items[i] = item_of(w, plan, &entries[i]);
	judge_items(w, items, (size_t)len);
}

/* Appends the entries to judged in the order in which a batch is judged. */
static int judged_order(const struct entry *entries, int len, struct entry *judged)
{
	int n = 0;

	for (int pass = 1; pass >= 0; pass--)
		for (int i = 0; i < len; i++)
			if (entries[i].suspend == (pass == 1))
				judged[n++] = entries[i];
	return n;
}

/* Cuts the log anywhere and judges it; returns the order of judging. */
static void run_log(struct world *w, struct plan *plan, struct entry *judged)
{
	for (int at = 0; at < plan->len;) {
		int len = 1 + draw(plan, 9);
		if (len > plan->len - at)
			len = plan->len - at;
		run_batch(w, plan, &plan->log[at], len);
		judged_order(&plan->log[at], len, &judged[at]);
		at += len;
	}
}

/* ---- comparing ---- */

static void compare_story(struct world *w, int number, const struct story *story)
{
	struct uuid id = id_of('c', number);
	const struct world_row *row = world_find(w, &id);

	assert_int_equal(row != NULL, story->exists);
	if (row == NULL)
		return;
	const struct checkpoint *checkpoint = &row->checkpoint;
	assert_int_equal(checkpoint->state, story->state);
	assert_int_equal(checkpoint->has_verdict, story->has_verdict);
	if (story->has_verdict)
		assert_int_equal(checkpoint->verdict, story->verdict);
	assert_int_equal(checkpoint->approvals, story->approvals);
	assert_int_equal(checkpoint->held, story->held);
	assert_int_equal(row->outbox, story->state == GATE_DECIDED);
	assert_int_equal(row->gate_version, checkpoint->version);
	assert_int_equal(row->expiry,
	                 story->state == GATE_PENDING && !story->held && story->event->expires_at != 0);
	if (story->state != GATE_UNCLAIMED)
		assert_int_equal(checkpoint->digest[0], number + 16 * story->event->bytes);
}

static void compare_decision(struct world *w, int number, const struct ending *ending)
{
	struct uuid id = id_of('d', number);
	const struct decision *decision = decision_find(w, &id);

	assert_int_equal(decision != NULL, ending->known[number]);
	if (decision == NULL)
		return;
	assert_int_equal(decision->record_digest[0], (uint8_t)(number + 16 * ending->bytes[number]));
	assert_int_equal(decision->outcome, ending->outcome[number]);
	if (decision->outcome == OUTCOME_REFUSED)
		check_refused(decision, ending->refusal[number]);
	else
		assert_true(view_is_null(decision->outcome_reason));
}

static void compare(struct world *w, const struct ending *ending)
{
	int64_t waiting = 0, unclaimed = 0;

	for (int i = 1; i <= CHECKPOINTS; i++)
		compare_story(w, i, &ending->stories[i]);
	for (int i = 1; i <= DECISIONS; i++) {
		compare_decision(w, i, ending);
		waiting += ending->known[i] && ending->outcome[i] == OUTCOME_WAITING;
	}
	for (size_t i = 0; i < w->rows_len; i++)
		unclaimed += w->rows[i].unclaimed;
	assert_int_equal(unclaimed, waiting);
}

/* ---- the tests ---- */

static void note_seed(uint64_t seed)
{
	static char text[64];

	snprintf(text, sizeof(text), "seed %llu", (unsigned long long)seed);
	setenv("TEST_JUDGE_SEED", text, 1); /* to be found in a debugger or a core */
}

static void the_judge_says_what_the_model_says(void **state)
{
	struct plan plan;
	struct entry judged[LOG_MAX];
	struct ending ending;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		note_seed(seed);
		struct world *w = world_new();
		draw_plan(&plan, seed, 3, 35);
		run_log(w, &plan, judged);
		tell(&plan, judged, plan.len, &ending);
		compare(w, &ending);
		world_free(w);
	}
}

/* L8: whatever is told again, in whatever pieces and from wherever on, changes nothing. */
static void a_replay_writes_nothing(void **state)
{
	struct plan plan;
	struct entry judged[LOG_MAX];
	struct batch_write write;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		note_seed(seed);
		struct world *w = world_new();
		draw_plan(&plan, seed, 3, 35);
		run_log(w, &plan, judged);
		for (int at = draw(&plan, plan.len); at < plan.len; at++) {
			struct item *items[] = { item_of(w, &plan, &plan.log[at]),
				                     item_of(w, &plan, &plan.log[draw(&plan, plan.len)]) };
			assert_int_equal(judge_only(w, items, 2, &write), FATE_OK);
			assert_int_equal(write.checkpoints_len + write.inserts_len + write.updates_len, 0);
			assert_int_equal(w->tally.suspends + w->tally.counted + w->tally.refused + w->tally.waiting, 0);
		}
		world_free(w);
	}
}

/* A verdict that stands is never another one later, whatever comes. */
static void the_first_verdict_stands(void **state)
{
	struct plan plan;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		bool decided[CHECKPOINTS + 1] = { false };
		enum verdict verdicts[CHECKPOINTS + 1] = { VERDICT_APPROVED };
		note_seed(seed);
		struct world *w = world_new();
		draw_plan(&plan, seed, 3, 35);
		for (int at = 0; at < plan.len; at++) {
			run_batch(w, &plan, &plan.log[at], 1);
			for (size_t i = 0; i < w->rows_len; i++) {
				const struct checkpoint *row = &w->rows[i].checkpoint;
				int number = row->id.bytes[15];
				if (decided[number])
					assert_true(row->has_verdict && row->verdict == verdicts[number]);
				decided[number] = row->has_verdict;
				verdicts[number] = row->verdict;
			}
		}
		world_free(w);
	}
}

/* Where nothing supersedes, the two topics may be read in any pieces and however interleaved: only the order
 * of the decisions counts. */
static void other_batches_end_alike(void **state)
{
	struct plan plan, other;
	struct entry judged[LOG_MAX];
	struct ending ending;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		note_seed(seed);
		draw_plan(&plan, seed, CHECKPOINTS, 35);
		for (int v = 0; v < 2; v++)
			for (int i = 1; i <= CHECKPOINTS; i++)
				plan.suspends[i][v].session = plan.suspends[i][0].session;
		tell(&plan, plan.log, plan.len, &ending);
		struct world *w = world_new();
		run_log(w, &plan, judged);
		compare(w, &ending);
		world_free(w);
		w = world_new();
		other = plan;
		judged_order(plan.log, plan.len, other.log); /* all suspends, then all decisions */
		run_log(w, &other, judged);
		compare(w, &ending);
		world_free(w);
	}
}

/* What the relays would do: each decided one is published, and the resume says which decisions counted. */
static void copy_to_ledger(struct world *from, struct world *to)
{
	for (size_t i = 0; i < from->rows_len; i++) {
		const struct checkpoint *row = &from->rows[i].checkpoint;
		if (row->state != GATE_DECIDED)
			continue;
		struct uuid *ids = arena_array(to->kept, DECISIONS, sizeof(*ids));
		size_t len = 0;
		assert_non_null(ids);
		for (size_t j = 0; j < from->decisions_len; j++)
			if (from->decisions[j].outcome == OUTCOME_COUNTED &&
			    uuid_compare(&from->decisions[j].checkpoint_id, &row->id) == 0)
				ids[len++] = from->decisions[j].id;
		struct world_row *marked = &to->rows[to->rows_len++];
		marked->checkpoint = (struct checkpoint){
			.id = row->id,
			.state = GATE_RESUMED,
			.published = true,
			.from_ledger = true,
			.has_verdict = true,
			.verdict = row->verdict,
			.decided_at = row->decided_at,
			.expires_at = TIME_NONE,
			.ledger_decisions = ids,
			.ledger_decisions_len = len,
		};
	}
}

static void compare_rebuilt(struct world *was, struct world *is)
{
	assert_int_equal(was->rows_len, is->rows_len);
	for (size_t i = 0; i < was->rows_len; i++) {
		const struct checkpoint *before = &was->rows[i].checkpoint;
		const struct world_row *row = world_find(is, &before->id);
		assert_non_null(row);
		bool resumed = before->state == GATE_DECIDED;
		assert_int_equal(row->checkpoint.state, resumed ? GATE_RESUMED : before->state);
		assert_int_equal(row->checkpoint.has_verdict, before->has_verdict);
		assert_int_equal(row->checkpoint.verdict, before->verdict);
		assert_false(row->outbox); /* nothing is published again */
		if (before->state != GATE_SUPERSEDED)
			assert_int_equal(row->checkpoint.approvals, before->approvals);
	}
	for (size_t i = 0; i < was->decisions_len; i++) {
		const struct decision *before = &was->decisions[i];
		const struct decision *after = decision_find(is, &before->id);
		const struct world_row *row = world_find(was, &before->checkpoint_id);
		assert_true(after != NULL && row != NULL);
		if (row->checkpoint.state != GATE_SUPERSEDED) /* there the suspends are read first now */
			assert_int_equal(after->outcome, before->outcome);
	}
}

/* L10: the database lost, the ledger read first, then suspends, then decisions. */
static void a_rebuild_ends_alike(void **state)
{
	struct plan plan, again;
	struct entry judged[LOG_MAX];

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		note_seed(seed);
		struct world *w = world_new(), *rebuilt = world_new();
		draw_plan(&plan, seed, 3, 35);
		run_log(w, &plan, judged);
		copy_to_ledger(w, rebuilt);
		again = plan;
		int suspends = 0;
		judged_order(plan.log, plan.len, again.log);
		while (suspends < plan.len && again.log[suspends].suspend)
			suspends++;
		run_batch(rebuilt, &again, again.log, suspends);
		run_batch(rebuilt, &again, again.log + suspends, plan.len - suspends);
		compare_rebuilt(w, rebuilt);
		world_free(w);
		world_free(rebuilt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_judge_says_what_the_model_says),
		cmocka_unit_test(a_replay_writes_nothing),
		cmocka_unit_test(the_first_verdict_stands),
		cmocka_unit_test(other_batches_end_alike),
		cmocka_unit_test(a_rebuild_ends_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
