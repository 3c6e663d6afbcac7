/* Two connections at once on the same rows: nothing is lost, and what is behind is told so. */
#include "tests/integration_store/store_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 4000

struct side {
	struct store *store;
	struct arena *arena;
	pthread_barrier_t *barrier;
	int32_t partition;
	int64_t next; /* position of its partition */
	bool suspends;
	uint32_t stale; /* how often it had to do a batch again */
	uint32_t retried;
	const char *failure;
};

static void side_open(struct side *side, const char *name, bool suspends, pthread_barrier_t *barrier)
{
	*side = (struct side){
		.store = open_store(name),
		.arena = arena_new((size_t)64 * 1024 * 1024),
		.barrier = barrier,
		.partition = suspends ? 0 : 1,
		.next = POSITION_NEW,
		.suspends = suspends,
	};
	assert_non_null(side->arena);
}

static void side_close(struct side *side)
{
	store_close(side->store);
	arena_free(side->arena);
}

/* What a worker does with a suspend event: a row is made or filled, and what waits for it counts. */
static void suspend_rows(struct side *side, const struct batch_loaded *loaded, uint32_t number,
                         struct checkpoint_write *row, const struct decision **updates, size_t *updates_len)
{
	struct checkpoint *made = make_checkpoint(side->arena, number, 200);

	*row = (struct checkpoint_write){ .checkpoint = made, .insert = true, .fill = true, .gate_event = true };
	if (loaded->checkpoints_len == 0)
		return;
	row->insert = false;
	row->unclaimed_clear = true;
	row->outbox = true;
	made->state = GATE_DECIDED;
	made->has_verdict = true;
	made->approvals = (int32_t)loaded->decisions_len;
	for (size_t i = 0; i < loaded->decisions_len; i++) {
		loaded->decisions[i]->outcome = OUTCOME_COUNTED;
		updates[(*updates_len)++] = loaded->decisions[i];
	}
}

/* What it does with a decision. */
static void decision_rows(struct side *side, const struct batch_loaded *loaded, uint32_t number,
                          struct checkpoint_write *row, struct decision *decision)
{
	struct checkpoint *made = arena_alloc(side->arena, sizeof(*made));

	if (loaded->checkpoints_len == 0) {
		*made = (struct checkpoint){
			.id = uuid_of(number), .state = GATE_UNCLAIMED, .decided_at = TIME_NONE, .changed_at = T0
		};
		*row = (struct checkpoint_write){ .checkpoint = made, .insert = true, .unclaimed_add = 1 };
		decision->outcome = OUTCOME_WAITING;
		return;
	}
	made = loaded->checkpoints[0];
	made->state = GATE_DECIDED;
	made->has_verdict = true;
	made->approvals = 1;
	*row = (struct checkpoint_write){ .checkpoint = made, .outbox = true, .gate_event = true };
}

static enum fate batch(struct side *side, uint32_t number, struct error *error)
{
	struct uuid id = uuid_of(number);
	struct checkpoint *shape = make_checkpoint(side->arena, number, 1);
	struct line line = { shape->tenant, shape->session_id, shape->gate_id };
	struct move move = move_of(side->partition, side->next, number + 1);
	struct batch_request request = { .cluster_id = CLUSTER,
		                             .moves = &move,
		                             .moves_len = 1,
		                             .lines = &line,
		                             .lines_len = side->suspends ? 1 : 0,
		                             .checkpoints = &id,
		                             .checkpoints_len = 1 };
	struct batch_loaded loaded;
	struct checkpoint_write row = { 0 };
	const struct decision *decisions[8];
	size_t updates_len = 0;
	struct decision *decision = make_decision(side->arena, 1000000 + number, number);
	enum fate fate = store_batch_begin(side->store, &request, side->arena, &loaded, error);

	if (fate == FATE_OK && loaded.stale)
		return error_set(error, FATE_FATAL, ERR_BUG, "stale");
	if (fate != FATE_OK)
		return fate;
	struct batch_write write = { .checkpoints = &row, .checkpoints_len = 1, .notify = STORE_ALL_SHARDS };
	if (side->suspends) {
		suspend_rows(side, &loaded, number, &row, decisions, &updates_len);
		write.updates = decisions;
		write.updates_len = updates_len;
	} else {
		decision_rows(side, &loaded, number, &row, decision);
		decisions[0] = decision;
		write.inserts = decisions;
		write.inserts_len = 1;
	}
	fate = store_batch_write(side->store, &write, error);
	return fate == FATE_OK ? store_commit(side->store, error) : fate;
}

static void *run_side(void *argument)
{
	struct side *side = argument;

	for (uint32_t i = 0; i < PAIRS; i++) {
		struct error error = { 0 };
		pthread_barrier_wait(side->barrier);
		enum fate fate = batch(side, i, &error);
		while (fate == FATE_RETRY) {
			store_rollback(side->store);
			arena_reset(side->arena);
			if (error.code == ERR_STALE)
				side->stale++;
			else
				side->retried++;
			fate = batch(side, i, &error);
		}
		if (fate != FATE_OK && side->failure == NULL) {
			side->failure = strdup(error.message);
			store_rollback(side->store);
		}
		side->next = i + 1;
		arena_reset(side->arena);
	}
	return NULL;
}

static void suspend_and_decision_at_once(void **state)
{
	(void)state;
	pthread_barrier_t barrier;
	struct side sides[2];
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 2);
	side_open(&sides[0], "suspends", true, &barrier);
	side_open(&sides[1], "approvals", false, &barrier);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_side, &sides[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	print_message(
		"%d pairs: the suspend was done again %u times, the decision %u; deadlocks and the like: %u\n", PAIRS,
		sides[0].stale, sides[1].stale, sides[0].retried + sides[1].retried);
	for (int i = 0; i < 2; i++) {
		if (sides[i].failure != NULL)
			print_error("%s\n", sides[i].failure);
		assert_null(sides[i].failure);
		side_close(&sides[i]);
	}
	assert_true(sides[0].stale + sides[1].stale > 0); /* else they never met */
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.checkpoint WHERE state = 'DECIDED' AND filled"), PAIRS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE outcome = 'counted'"), PAIRS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), PAIRS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload"), PAIRS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), PAIRS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.unclaimed"), 0);
}

/* ---- two workers that both think that a partition is theirs ---- */

struct owner {
	struct store *store;
	struct arena *arena;
	pthread_barrier_t *barrier;
	uint32_t won;
	uint32_t lost;
	const char *failure;
};

#define STEPS 500

static void *run_owner(void *argument)
{
	struct owner *owner = argument;

	for (int64_t i = 0; i < STEPS; i++) {
		struct error error = { 0 };
		struct move move = move_of(9, i == 0 ? POSITION_NEW : i, i + 1);
		struct batch_request request = { .cluster_id = CLUSTER, .moves = &move, .moves_len = 1 };
		struct batch_loaded loaded;
		pthread_barrier_wait(owner->barrier);
		enum fate fate = store_batch_begin(owner->store, &request, owner->arena, &loaded, &error);
		if (fate == FATE_OK && !loaded.stale) {
			owner->won++;
			fate = store_commit(owner->store, &error);
		} else {
			owner->lost++;
			store_rollback(owner->store);
		}
		if (fate != FATE_OK && owner->failure == NULL)
			owner->failure = strdup(error.message);
		arena_reset(owner->arena);
	}
	return NULL;
}

static void one_of_two_owners_moves_a_position(void **state)
{
	(void)state;
	pthread_barrier_t barrier;
	struct owner owners[2];
	pthread_t threads[2];

	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		owners[i] = (struct owner){ open_store("owner"), arena_new(1 << 20), &barrier, 0, 0, NULL };
		assert_int_equal(pthread_create(&threads[i], NULL, run_owner, &owners[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_null(owners[i].failure);
		store_close(owners[i].store);
		arena_free(owners[i].arena);
	}
	pthread_barrier_destroy(&barrier);
	assert_int_equal(owners[0].won + owners[1].won, STEPS);
	assert_int_equal(owners[0].lost + owners[1].lost, STEPS);
}

/* ---- one line, suspended by two workers at once ---- */

struct entering {
	struct store *store;
	struct arena *arena;
	const struct checkpoint *line;
	struct batch_loaded loaded;
};

static void *enter_line(void *argument)
{
	struct entering *entering = argument;

	entering->loaded = begin_batch(entering->store, entering->arena, NULL, NULL, 0, entering->line);
	store_rollback(entering->store);
	return NULL;
}

static void a_line_is_entered_by_one_at_a_time(void **state)
{
	(void)state;
	struct store *first = open_store("line 1");
	struct arena *arena = arena_new(1 << 20);
	struct error error = { 0 };
	struct checkpoint *made = make_checkpoint(arena, 900001, 10);
	struct checkpoint_write row = { .checkpoint = made, .insert = true, .fill = true };
	struct batch_write write = { .checkpoints = &row, .checkpoints_len = 1 };
	struct entering entering = { .store = open_store("line 2"), .arena = arena_new(1 << 20), .line = made };
	pthread_t thread;

	begin_batch(first, arena, NULL, &made->id, 1, made);
	assert_ok(store_batch_write(first, &write, &error), error);
	assert_int_equal(pthread_create(&thread, NULL, enter_line, &entering), 0);
	world_wait("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
	assert_ok(store_commit(first, &error), error);
	pthread_join(thread, NULL);
	assert_int_equal(entering.loaded.highest[0], 1);
	assert_int_equal(entering.loaded.checkpoints_len, 1);
	assert_int_equal(world_number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), 0);
	store_close(first);
	store_close(entering.store);
	arena_free(entering.arena);
	arena_free(arena);
}

/* ---- relays that mark while intake judges: in one order, so that nobody deadlocks ---- */

#define SHARED 64
#define ROUNDS 150

static atomic_bool marking;

static void *run_marking(void *argument)
{
	struct owner *owner = argument;
	struct shard shard = { CLUSTER, "resumes", 0 };
	struct ledger_found found[SHARED];
	struct gate_sent sent[SHARED];
	uint8_t digest[32] = { 1 };

	for (uint32_t i = 0; i < SHARED; i++) { /* falling: the store has to sort */
		found[i] =
			(struct ledger_found){ uuid_of(800000 + SHARED - 1 - i), VERDICT_APPROVED, NULL, 0, T0, 0 };
		sent[i] =
			(struct gate_sent){ found[i].checkpoint_id, T0 * 2, i % 2 == 0 ? WAITING_GOES : WAITING_COMES };
	}
	int64_t mine = LEDGER_NONE;
	while (atomic_load(&marking) && owner->failure == NULL) {
		struct error error = { 0 };
		size_t fresh;
		int64_t next = mine == LEDGER_NONE ? 1 : mine + 1;
		enum fate fate = store_ledger_advance(owner->store, &shard, mine, next, NO_DOUBT, digest, found,
		                                      SHARED, &fresh, &error);
		mine = next;
		if (fate == FATE_OK)
			fate = store_relay_mark(owner->store, &shard, mine, mine + 1, sent, SHARED, sent, SHARED, T0,
			                        &error);
		if (fate == FATE_OK)
			mine++;
		if (fate == FATE_RETRY && error.code == ERR_STALE)
			fate = FATE_OK; /* not all of them were DECIDED at that moment: nothing is marked */
		if (fate != FATE_OK)
			owner->failure = strdup(error.message);
		owner->won++;
	}
	return NULL;
}

/* False: some are in the outbox already, and it is to be done again, singly. */
static bool judge_once(struct store *store, struct arena *arena, int round, bool singly)
{
	struct checkpoint_write rows[SHARED];
	struct uuid ids[SHARED];
	struct batch_write write = { .checkpoints = rows, .checkpoints_len = SHARED, .singly = singly };
	struct error error = { 0 };

	memset(rows, 0, sizeof(rows));
	for (uint32_t i = 0; i < SHARED; i++)
		ids[i] = uuid_of(800000 + i);
	struct batch_loaded loaded = begin_batch(store, arena, NULL, ids, SHARED, NULL);
	assert_int_equal(loaded.checkpoints_len, SHARED);
	for (size_t i = 0; i < SHARED; i++) {
		loaded.checkpoints[i]->state = round % 2 == 0 ? GATE_DECIDED : GATE_PENDING;
		loaded.checkpoints[i]->version++;
		rows[i] = (struct checkpoint_write){
			.checkpoint = loaded.checkpoints[i], .outbox = true, .gate_event = true, .expiry_set = true
		};
	}
	enum fate fate = store_batch_write(store, &write, &error);
	bool stale = fate == FATE_RETRY && error.code == ERR_STALE && !singly;
	if (stale) {
		store_rollback(store);
	} else {
		assert_ok(fate, error);
		assert_ok(store_commit(store, &error), error);
	}
	arena_reset(arena);
	return !stale;
}

static void judge_all(struct store *store, struct arena *arena, int round)
{
	if (!judge_once(store, arena, round, false))
		assert_true(judge_once(store, arena, round, true));
}

static void relay_and_intake_do_not_deadlock(void **state)
{
	(void)state;
	struct owner owner = { open_store("relay"), NULL, NULL, 0, 0, NULL };
	struct store *intake = open_store("intake");
	struct arena *arena = arena_new((size_t)16 * 1024 * 1024);
	pthread_t thread;

	for (uint32_t i = 0; i < SHARED; i++)
		insert_checkpoint(intake, arena, make_checkpoint(arena, 800000 + i, 10));
	atomic_store(&marking, true);
	assert_int_equal(pthread_create(&thread, NULL, run_marking, &owner), 0);
	for (int round = 0; round < ROUNDS; round++)
		judge_all(intake, arena, round);
	atomic_store(&marking, false);
	pthread_join(thread, NULL);
	if (owner.failure != NULL)
		print_error("%s\n", owner.failure);
	assert_null(owner.failure);
	assert_int_equal(store_reconnects(intake), 1);
	print_message("%d batches of intake beside %u rounds of a relay\n", ROUNDS, owner.won);
	assert_int_equal(
		world_number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), 0);
	store_close(owner.store);
	store_close(intake);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspend_and_decision_at_once),
		cmocka_unit_test(one_of_two_owners_moves_a_position),
		cmocka_unit_test(a_line_is_entered_by_one_at_a_time),
		cmocka_unit_test(relay_and_intake_do_not_deadlock),
	};

	return run_in_world(tests);
}
