/* A batch of intake: what is written comes back whole, what is stale or refused leaves nothing. */
#include "tests/integration_store/store_fixture.h"

#include <string.h>

static int setup(void **state)
{
	(void)state;
	return begin_test(open_store("batch"), (size_t)64 * 1024 * 1024);
}

static void assert_view(struct view a, struct view b)
{
	assert_int_equal(a.len, b.len);
	assert_int_equal(view_is_null(a), view_is_null(b));
	if (a.len > 0)
		assert_memory_equal(a.data, b.data, a.len);
}

static void assert_sealed(const struct sealed *a, const struct sealed *b)
{
	assert_int_equal(a->format, b->format);
	assert_int_equal(a->compression, b->compression);
	assert_int_equal(a->plain_len, b->plain_len);
	assert_string_equal(a->kek_id, b->kek_id);
	assert_int_equal(a->has_key, b->has_key);
	assert_memory_equal(a->wrapped_key, b->wrapped_key, WRAPPED_KEY_LEN);
	assert_memory_equal(a->commit, b->commit, COMMIT_LEN);
}

static void assert_event(const struct checkpoint *a, const struct checkpoint *b)
{
	assert_view(a->id_text, b->id_text);
	assert_view(a->tenant, b->tenant);
	assert_view(a->session_id, b->session_id);
	assert_view(a->gate_id, b->gate_id);
	assert_view(a->agent, b->agent);
	assert_view(a->agent_version, b->agent_version);
	assert_view(a->requested_by, b->requested_by);
	assert_view(a->title, b->title);
	assert_int_equal(a->suspend_seq, b->suspend_seq);
	assert_int_equal(a->suspended_at, b->suspended_at);
	assert_int_equal(a->appended_at, b->appended_at);
	assert_int_equal(a->has_risk, b->has_risk);
	assert_int_equal(a->risk, b->risk);
	assert_int_equal(a->required_approvals, b->required_approvals);
	assert_int_equal(a->approvers_len, b->approvers_len);
	for (size_t i = 0; i < a->approvers_len; i++)
		assert_view(a->approvers[i], b->approvers[i]);
	assert_int_equal(a->labels_len, b->labels_len);
	for (size_t i = 0; i < a->labels_len; i++) {
		assert_view(a->labels[i].key, b->labels[i].key);
		assert_view(a->labels[i].value, b->labels[i].value);
	}
	assert_int_equal(a->expires_at, b->expires_at);
	assert_int_equal(a->on_expiry, b->on_expiry);
	assert_memory_equal(a->digest, b->digest, DIGEST_LEN);
	assert_view(a->traceparent, b->traceparent);
	assert_view(a->tracestate, b->tracestate);
	assert_sealed(&a->sealed, &b->sealed);
	assert_memory_equal(a->sealed.schema_sha256, b->sealed.schema_sha256, 32);
	assert_view(a->resumes_topic, b->resumes_topic);
	assert_int_equal(a->resumes_partition, b->resumes_partition);
}

static void assert_state(const struct checkpoint *a, const struct checkpoint *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->filled, b->filled);
	assert_int_equal(a->published, b->published);
	assert_int_equal(a->held, b->held);
	assert_int_equal(a->from_ledger, b->from_ledger);
	assert_int_equal(a->has_verdict, b->has_verdict);
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->decided_at, b->decided_at);
	assert_int_equal(a->approvals, b->approvals);
	assert_view(a->reason, b->reason);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->changed_at, b->changed_at);
}

static void a_checkpoint_comes_back_whole(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct checkpoint *made = make_checkpoint(arena, 1, 3000);
	insert_checkpoint(store, arena, made);
	struct checkpoint *loaded = load(1);
	assert_event(made, loaded);
	assert_state(made, loaded);
	assert_true(view_is_null(loaded->sealed.body));
	assert_ok(store_payload(store, loaded, arena, &error), error);
	assert_view(loaded->sealed.body, made->sealed.body);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.expiry WHERE sent_at IS NULL"), 1);
	assert_int_equal(world_number("SELECT version FROM fermata.gate_outbox"), made->version);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gates WHERE labels ->> 'team' = 'team-1'"),
	                 1);
}

static void what_is_optional_comes_back_absent(void **state)
{
	(void)state;
	struct checkpoint *made = make_checkpoint(arena, 2, 0);
	made->has_risk = false;
	made->risk = RISK_LOW;
	made->approvers_len = 0;
	made->labels_len = 0;
	made->expires_at = TIME_NONE;
	made->traceparent = VIEW_NULL;
	made->tracestate = VIEW_NULL;
	made->title = VIEW_LITERAL("");
	insert_checkpoint(store, arena, made);
	struct checkpoint *loaded = load(2);
	assert_event(made, loaded);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.expiry"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gates"), 1);
}

static void odd_times_stand_in_the_tables_and_in_the_view(void **state)
{
	(void)state;
	static const int64_t times[] = { INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX };
	for (uint32_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct checkpoint *made = make_checkpoint(arena, 10 + i, 5);
		made->suspended_at = times[i];
		made->appended_at = times[i];
		made->expires_at = times[i]; /* the first of them is "none" */
		insert_checkpoint(store, arena, made);
		assert_event(made, load(10 + i));
	}
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gates WHERE suspended_at IS NOT NULL"), 5);
}

/* Unclaimed first, with a decision that waits; then the suspend event fills the row. */
static void a_row_is_filled_later(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct uuid id = uuid_of(3);
	struct checkpoint unclaimed = {
		.id = id, .state = GATE_UNCLAIMED, .decided_at = TIME_NONE, .changed_at = T0
	};
	struct decision *decision = make_decision(arena, 300, 3);
	const struct decision *inserts[] = { decision };
	struct checkpoint_write row = { .checkpoint = &unclaimed, .insert = true, .unclaimed_add = 1 };
	struct batch_write first = {
		.checkpoints = &row, .checkpoints_len = 1, .inserts = inserts, .inserts_len = 1
	};
	decision->outcome = OUTCOME_WAITING;
	begin_batch(store, arena, NULL, &id, 1, NULL);
	assert_ok(store_batch_write(store, &first, &error), error);
	assert_ok(store_commit(store, &error), error);
	assert_int_equal(world_number("SELECT decisions FROM fermata.unclaimed"), 1);

	struct checkpoint *made = make_checkpoint(arena, 3, 100);
	struct batch_loaded loaded = begin_batch(store, arena, NULL, &id, 1, made);
	assert_false(loaded.checkpoints[0]->filled);
	assert_int_equal(loaded.checkpoints[0]->state, GATE_UNCLAIMED);
	assert_int_equal(loaded.highest[0], 0);
	assert_int_equal(loaded.decisions_len, 1);
	const struct decision *updates[] = { decision };
	decision->outcome = OUTCOME_REFUSED;
	decision->outcome_reason = VIEW_LITERAL("wrong_digest: not the proposal");
	struct checkpoint_write fill = {
		.checkpoint = made, .fill = true, .gate_event = true, .unclaimed_clear = true
	};
	struct batch_write second = {
		.checkpoints = &fill, .checkpoints_len = 1, .updates = updates, .updates_len = 1
	};
	assert_ok(store_batch_write(store, &second, &error), error);
	assert_ok(store_commit(store, &error), error);
	assert_event(made, load(3));
	assert_int_equal(world_number("SELECT count(*) FROM fermata.unclaimed"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE outcome = 'refused'"), 1);
}

static void decisions_come_back_whole_and_in_order(void **state)
{
	(void)state;
	struct error error = { 0 };
	const struct decision *inserts[50];
	for (uint32_t i = 0; i < 50; i++) {
		struct decision *decision = make_decision(arena, 5000 - i, 4); /* ids fall, seq must grow */
		if (i % 7 == 0) {
			decision->has_edits = true;
			decision->edits = make_checkpoint(arena, i, 64)->sealed;
			memset(decision->edits.schema_sha256, 0, sizeof(decision->edits.schema_sha256));
		}
		decision->has_digest = i % 3 != 0;
		if (!decision->has_digest)
			memset(decision->checkpoint_digest, 0, sizeof(decision->checkpoint_digest));
		if (i % 5 == 0) {
			decision->outcome = OUTCOME_REFUSED;
			decision->refusal = REFUSAL_LATE;
			decision->outcome_reason = VIEW_LITERAL("late: it had expired");
		}
		inserts[i] = decision;
	}
	insert_checkpoint(store, arena, make_checkpoint(arena, 4, 10));
	begin_batch(store, arena, NULL, NULL, 0, NULL);
	struct batch_write batch = { .inserts = inserts, .inserts_len = 50 };
	assert_ok(store_batch_write(store, &batch, &error), error);
	assert_ok(store_commit(store, &error), error);

	struct decision **decisions;
	size_t len;
	struct uuid id = uuid_of(4);
	assert_ok(store_decisions(store, &id, arena, &decisions, &len, &error), error);
	assert_int_equal(len, 50);
	for (size_t i = 0; i < len; i++) {
		const struct decision *a = inserts[i];
		const struct decision *b = decisions[i];
		assert_memory_equal(&a->id, &b->id, sizeof(a->id));
		assert_memory_equal(&a->checkpoint_id, &b->checkpoint_id, sizeof(a->id));
		assert_int_equal(a->outcome, b->outcome);
		assert_int_equal(a->refusal, b->refusal);
		assert_view(a->outcome_reason, b->outcome_reason);
		assert_int_equal(a->kind, b->kind);
		assert_view(a->decided_by.issuer, b->decided_by.issuer);
		assert_view(a->decided_by.subject, b->decided_by.subject);
		assert_view(a->decided_by.display, b->decided_by.display);
		assert_int_equal(a->decided_at, b->decided_at);
		assert_view(a->stated_reason, b->stated_reason);
		assert_view(a->stated_session, b->stated_session);
		assert_view(a->source.system, b->source.system);
		assert_view(a->source.ref, b->source.ref);
		assert_view(a->source.delivery_id, b->source.delivery_id);
		assert_int_equal(a->has_digest, b->has_digest);
		assert_memory_equal(a->checkpoint_digest, b->checkpoint_digest, DIGEST_LEN);
		assert_memory_equal(a->record_digest, b->record_digest, DIGEST_LEN);
		assert_view(a->id_text, b->id_text);
		assert_string_equal(a->at.topic, b->at.topic);
		assert_int_equal(a->at.partition, b->at.partition);
		assert_int_equal(a->at.offset, b->at.offset);
		assert_int_equal(a->at.appended_at, b->at.appended_at);
		assert_int_equal(a->has_edits, b->has_edits);
		assert_sealed(&a->edits, &b->edits);
		assert_view(a->edits.body, b->edits.body);
		assert_true(i == 0 || decisions[i - 1]->seq < b->seq);
	}
}

/* In a batch: those with the ids asked for, and what counts or waits of the checkpoints. */
static void a_batch_sees_the_decisions_that_matter(void **state)
{
	(void)state;
	struct error error = { 0 };
	const struct decision *inserts[6];
	for (uint32_t i = 0; i < 6; i++) {
		struct decision *decision = make_decision(arena, 600 + i, i < 3 ? 5 : 6);
		decision->outcome = (enum outcome)(i % 3);
		inserts[i] = decision;
	}
	begin_batch(store, arena, NULL, NULL, 0, NULL);
	struct batch_write batch = { .inserts = inserts, .inserts_len = 6 };
	assert_ok(store_batch_write(store, &batch, &error), error);
	assert_ok(store_commit(store, &error), error);

	struct uuid checkpoint = uuid_of(5);
	struct uuid ids[] = { uuid_of(605), uuid_of(601), uuid_of(999) };
	struct batch_request request = {
		.cluster_id = CLUSTER,
		.checkpoints = &checkpoint,
		.checkpoints_len = 1,
		.decisions = ids,
		.decisions_len = 3,
		.count_unclaimed = true,
	};
	struct batch_loaded loaded;
	assert_ok(store_batch_begin(store, &request, arena, &loaded, &error), error);
	store_rollback(store);
	assert_int_equal(loaded.decisions_len, 3); /* 600 counted, 601 waiting, and 605 by its id */
	assert_memory_equal(&loaded.decisions[0]->id, &inserts[0]->id, sizeof(struct uuid));
	assert_memory_equal(&loaded.decisions[1]->id, &inserts[1]->id, sizeof(struct uuid));
	assert_memory_equal(&loaded.decisions[2]->id, &inserts[5]->id, sizeof(struct uuid));
	assert_int_equal(loaded.unclaimed, 0);
}

static void positions_move_by_compare_and_set(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct move first = move_of(0, POSITION_NEW, 10);
	struct move again = move_of(0, POSITION_NEW, 11);
	struct move stale = move_of(0, 9, 12);
	struct move good = move_of(0, 10, 20);

	assert_false(begin_batch(store, arena, &first, NULL, 0, NULL).stale);
	assert_ok(store_commit(store, &error), error);
	assert_true(begin_batch(store, arena, &again, NULL, 0, NULL).stale);
	store_rollback(store);
	struct batch_loaded loaded = begin_batch(store, arena, &stale, NULL, 0, NULL);
	assert_true(loaded.stale);
	assert_int_equal(loaded.positions[0].next, 10);
	store_rollback(store);
	good.has_last = false; /* over the end of a partition only */
	loaded = begin_batch(store, arena, &good, NULL, 0, NULL);
	assert_false(loaded.stale);
	assert_ok(store_commit(store, &error), error);

	struct position *positions;
	size_t len;
	assert_ok(store_positions(store, CLUSTER, arena, &positions, &len, &error), error);
	assert_int_equal(len, 1);
	assert_view(positions[0].topic, VIEW_LITERAL("in"));
	assert_int_equal(positions[0].next, 20);
	assert_true(positions[0].has_last);
	assert_int_equal(positions[0].last_offset, 9);
	assert_int_equal(positions[0].last_digest[31], 9);
	assert_int_equal(positions[0].waits, WAITS_NO);
	assert_ok(store_position_waits(store, CLUSTER, "in", 0, WAITS_REGISTRY, &error), error);
	assert_ok(store_positions(store, CLUSTER, arena, &positions, &len, &error), error);
	assert_int_equal(positions[0].waits, WAITS_REGISTRY);
	assert_ok(store_position_waits(store, CLUSTER, "in", 0, WAITS_NO, &error), error);
	assert_fate(FATE_RETRY, store_position_waits(store, CLUSTER, "in", 7, WAITS_ALARM, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	assert_ok(store_positions(store, "another", arena, &positions, &len, &error), error);
	assert_int_equal(len, 0);
}

static void a_rolled_back_batch_leaves_nothing(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct move move = move_of(1, POSITION_NEW, 5);
	struct checkpoint *made = make_checkpoint(arena, 7, 100);
	const struct decision *decision = make_decision(arena, 700, 7);
	struct checkpoint_write row = { .checkpoint = made,
		                            .insert = true,
		                            .fill = true,
		                            .outbox = true,
		                            .gate_event = true,
		                            .expiry_set = true,
		                            .unclaimed_add = 1 };
	struct batch_write batch = { .checkpoints = &row,
		                         .checkpoints_len = 1,
		                         .inserts = &decision,
		                         .inserts_len = 1,
		                         .notify = STORE_ALL_SHARDS };
	begin_batch(store, arena, &move, &made->id, 1, made);
	assert_ok(store_batch_write(store, &batch, &error), error);
	store_rollback(store);
	assert_int_equal(world_number("SELECT (SELECT count(*) FROM fermata.checkpoint)"
	                              " + (SELECT count(*) FROM fermata.payload)"
	                              " + (SELECT count(*) FROM fermata.decision)"
	                              " + (SELECT count(*) FROM fermata.outbox)"
	                              " + (SELECT count(*) FROM fermata.gate_outbox)"
	                              " + (SELECT count(*) FROM fermata.expiry)"
	                              " + (SELECT count(*) FROM fermata.unclaimed)"
	                              " + (SELECT count(*) FROM fermata.kafka_offset)"),
	                 0);
}

static void a_row_that_is_there_makes_the_batch_stale(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct checkpoint *made = make_checkpoint(arena, 8, 100);
	const struct decision *decision = make_decision(arena, 800, 8);
	struct checkpoint_write row = { .checkpoint = made, .insert = true, .fill = true };
	struct batch_write rows = { .checkpoints = &row, .checkpoints_len = 1 };
	struct batch_write decisions = { .inserts = &decision, .inserts_len = 1 };

	insert_checkpoint(store, arena, made);
	begin_batch(store, arena, NULL, NULL, 0, NULL);
	assert_fate(FATE_RETRY, store_batch_write(store, &rows, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	store_rollback(store);

	begin_batch(store, arena, NULL, NULL, 0, NULL);
	assert_ok(store_batch_write(store, &decisions, &error), error);
	assert_ok(store_commit(store, &error), error);
	begin_batch(store, arena, NULL, NULL, 0, NULL);
	assert_fate(FATE_RETRY, store_batch_write(store, &decisions, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	store_rollback(store);
	assert_int_equal(store_reconnects(store), 1);
}

static void the_open_rows_of_a_line_are_found(void **state)
{
	(void)state;
	static const enum gate_state states[] = { GATE_PENDING,    GATE_DECIDED,     GATE_RESUMED,
		                                      GATE_SUPERSEDED, GATE_QUARANTINED, GATE_QUARANTINED,
		                                      GATE_IN_DOUBT };
	struct checkpoint *made = NULL;
	for (uint32_t i = 0; i < 7; i++) {
		made = make_checkpoint(arena, 20 + i, 10);
		made->session_id = VIEW_LITERAL("one session");
		made->suspend_seq = 3 + i;
		made->state = states[i];
		made->has_verdict = i == 5;
		insert_checkpoint(store, arena, made);
	}
	struct uuid asked = uuid_of(26);
	struct batch_loaded loaded = begin_batch(store, arena, NULL, &asked, 1, made);
	store_rollback(store);
	assert_int_equal(loaded.checkpoints_len,
	                 3); /* PENDING, QUARANTINED without a verdict, and the one asked for */
	assert_int_equal(loaded.checkpoints[0]->suspend_seq, 3);
	assert_int_equal(loaded.checkpoints[1]->suspend_seq, 7);
	assert_int_equal(loaded.checkpoints[2]->suspend_seq, 9);
	assert_int_equal(loaded.highest[0], 9);

	made->tenant = VIEW_LITERAL("another tenant");
	loaded = begin_batch(store, arena, NULL, NULL, 0, made);
	store_rollback(store);
	assert_int_equal(loaded.checkpoints_len, 0);
	assert_int_equal(loaded.highest[0], 0);
}

static void poison_is_refused_and_the_next_batch_works(void **state)
{
	(void)state;
	struct error error = { 0 };
	static const struct view poisons[] = { { (const uint8_t *)"a\0b", 3 }, { (const uint8_t *)"a\xFF", 2 } };
	for (size_t i = 0; i < 2; i++) {
		struct checkpoint *made = make_checkpoint(arena, 30, 10);
		struct checkpoint_write row = { .checkpoint = made, .insert = true, .fill = true };
		struct batch_write batch = { .checkpoints = &row, .checkpoints_len = 1 };
		made->title = poisons[i];
		begin_batch(store, arena, NULL, &made->id, 1, made);
		assert_fate(FATE_REJECT, store_batch_write(store, &batch, &error), error);
		assert_int_equal(error.code, ERR_POISON);
		store_rollback(store);
	}
	assert_string_equal(error.native, "22021");
	struct checkpoint *half = make_checkpoint(arena, 31, 10);
	struct checkpoint_write row = { .checkpoint = half, .insert = true, .fill = true };
	struct batch_write batch = { .checkpoints = &row, .checkpoints_len = 1 };
	half->gate_id = VIEW_NULL; /* a constraint of the table says no */
	half->session_id = VIEW_LITERAL("the secret of the session");
	begin_batch(store, arena, NULL, &half->id, 1, NULL);
	assert_fate(FATE_REJECT, store_batch_write(store, &batch, &error), error);
	assert_int_equal(error.code, ERR_POISON);
	assert_string_equal(error.native, "23514");
	assert_null(strstr(error.message, "secret"));
	assert_non_null(strstr(error.message, "constraint checkpoint_check"));
	store_rollback(store);
	insert_checkpoint(store, arena, make_checkpoint(arena, 30, 10));
	assert_int_equal(store_reconnects(store), 1);
}

static void large_payloads_pass(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct checkpoint_write rows[40];
	memset(rows, 0, sizeof(rows));
	for (uint32_t i = 0; i < 40; i++) {
		rows[i].checkpoint = make_checkpoint(arena, 100 + i, i == 39 ? 8 * 1024 * 1024 : 200 * 1024);
		rows[i].insert = true;
		rows[i].fill = true;
	}
	struct batch_write batch = { .checkpoints = rows, .checkpoints_len = 40 };
	begin_batch(store, arena, NULL, NULL, 0, NULL);
	assert_ok(store_batch_write(store, &batch, &error), error);
	assert_ok(store_commit(store, &error), error);
	for (uint32_t i = 0; i < 40; i++) {
		struct checkpoint *loaded = load(100 + i);
		assert_ok(store_payload(store, loaded, arena, &error), error);
		assert_view(loaded->sealed.body, rows[i].checkpoint->sealed.body);
	}
	/* Sealed bytes are not compressed again. */
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.payload WHERE pg_column_compression(body) IS NULL"), 40);
}

static void state_updates_stay_hot(void **state)
{
	(void)state;
	enum { ROWS = 200, ROUNDS = 5 };
	struct error error = { 0 };
	struct uuid ids[ROWS];
	world_run("SELECT pg_stat_reset()");
	for (uint32_t i = 0; i < ROWS; i++) {
		ids[i] = uuid_of(2000 + i);
		insert_checkpoint(store, arena, make_checkpoint(arena, 2000 + i, 10));
	}
	for (int round = 0; round < ROUNDS; round++) {
		struct checkpoint_write rows[ROWS];
		struct batch_write batch = { .checkpoints = rows, .checkpoints_len = ROWS };
		memset(rows, 0, sizeof(rows));
		struct batch_loaded loaded = begin_batch(store, arena, NULL, ids, ROWS, NULL);
		for (size_t i = 0; i < ROWS; i++) {
			loaded.checkpoints[i]->state = (enum gate_state)(round % GATE_STATE_COUNT);
			loaded.checkpoints[i]->version++;
			rows[i].checkpoint = loaded.checkpoints[i];
		}
		assert_ok(store_batch_write(store, &batch, &error), error);
		assert_ok(store_commit(store, &error), error);
	}
	store_close(store); /* its figures are told when it ends */
	store = open_store("batch");
	world_wait("SELECT (n_tup_upd >= 1000)::int FROM pg_stat_user_tables WHERE relname = 'checkpoint'");
	int64_t cold = world_number(
		"SELECT n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'checkpoint'");
	print_message("%d updates of 1000 were not HOT\n", (int)cold);
	assert_true(cold <= 20); /* five rounds at once, before anything can be pruned, may fill a page */
}

static void an_unprepared_connection_does_the_same(void **state)
{
	(void)state;
	struct store *plain = open_unprepared("plain");
	struct error error = { 0 };
	insert_checkpoint(plain, arena, make_checkpoint(arena, 50, 100));
	decide_checkpoint(plain, arena, 50);
	assert_ok(store_listen(plain, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 1);
	/* Nothing of it outlives a transaction: another session of a pool would not be what was expected. */
	begin_batch(plain, arena, NULL, NULL, 0, NULL);
	store_rollback(plain);
	store_close(plain);
	assert_int_equal(load(50)->state, GATE_DECIDED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_checkpoint_comes_back_whole),
		TEST(what_is_optional_comes_back_absent),
		TEST(odd_times_stand_in_the_tables_and_in_the_view),
		TEST(a_row_is_filled_later),
		TEST(decisions_come_back_whole_and_in_order),
		TEST(a_batch_sees_the_decisions_that_matter),
		TEST(positions_move_by_compare_and_set),
		TEST(a_rolled_back_batch_leaves_nothing),
		TEST(a_row_that_is_there_makes_the_batch_stale),
		TEST(the_open_rows_of_a_line_are_found),
		TEST(poison_is_refused_and_the_next_batch_works),
		TEST(large_payloads_pass),
		TEST(state_updates_stay_hot),
		TEST(an_unprepared_connection_does_the_same),
	};

	return run_in_world(tests);
}
