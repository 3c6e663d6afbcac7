/* What a relay reads and writes: R2, R3, R5 and what is set aside. */
#include "tests/integration_store/relay_support.h"

#include <poll.h>
#include <string.h>

static const uint8_t yesterday[32] = { 9 };

static void nothing_is_taken_before_every_ledger_is_read(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct ledger ledger;
	struct relay_take take;
	size_t fresh;

	decided(2, 3);
	assert_ok(store_ledger(store, &even, &ledger, &error), error);
	assert_int_equal(ledger.next, LEDGER_NONE);
	take = take_even(10, BYTES_MANY, true);
	assert_int_equal(take.ledger.next, LEDGER_NONE);
	assert_false(take.ready);
	assert_int_equal(take.rows_len, 0);
	advance(&even, LEDGER_NONE, 10, NULL, 0);
	take = take_even(10, BYTES_MANY, true);
	assert_int_equal(take.ledger.next, 10);
	assert_false(take.ready); /* the odd one is not */
	assert_int_equal(take.rows_len, 0);
	assert_int_equal(take.gates_len, 3); /* gate events do not have to wait */
	assert_ok(store_ledger_advance(store, &odd, LEDGER_NONE, 5, (struct doubt){ T0, 5 }, yesterday, NULL, 0,
	                               &fresh, &error),
	          error);
	assert_false(take_even(10, BYTES_MANY, true).ready); /* under other routes */
	advance(&odd, 5, 5, NULL, 0);
	take = take_even(10, BYTES_MANY, true);
	assert_true(take.ready);
	assert_int_equal(take.rows_len, 3);
	assert_ok(store_ledger(store, &odd, &ledger, &error), error);
	assert_int_equal(ledger.next, 5);
	assert_int_equal(ledger.doubt.before, TIME_NONE);
}

static void rows_come_whole_from_the_lowest(void **state)
{
	(void)state;
	both_ledgers_are_read();
	decided(2, 4);
	decided(3, 2); /* the other shard's */
	world_run("UPDATE fermata.checkpoint SET state = 'PENDING' WHERE checkpoint_id::text LIKE '%00000006'");
	struct relay_take take = take_even(10, BYTES_MANY, true);
	assert_int_equal(take.rows_len, 3);
	static const uint32_t numbers[] = { 2, 4, 8 };
	for (size_t i = 0; i < 3; i++) {
		const struct checkpoint *made = make_checkpoint(arena, numbers[i], 1000);
		const struct outbox_row *row = &take.rows[i];
		assert_memory_equal(&row->checkpoint->id, &made->id, sizeof(made->id));
		assert_int_equal(row->checkpoint->sealed.body.len, 1000);
		assert_memory_equal(row->checkpoint->sealed.body.data, made->sealed.body.data, 1000);
		assert_int_equal(row->decisions_len, 1);
		struct uuid decision = uuid_of(1000000 + numbers[i]);
		assert_memory_equal(&row->decisions[0]->id, &decision, sizeof(decision));
		assert_true(i == 0 || take.rows[i - 1].seq < row->seq);
	}
	/* Those that are resumed now have no gate event of their own any more; the PENDING one has. */
	assert_int_equal(take.gates_len, 1);
	assert_int_equal(take.gates[0].checkpoint->sealed.body.len, 1000);
	assert_false(take.gates[0].gone);
}

static void limits_and_what_must_wait(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct relay_take take;
	struct uuid skip[] = { uuid_of(2), uuid_of(4) };

	both_ledgers_are_read();
	decided(2, 5);
	assert_int_equal(take_even(2, BYTES_MANY, true).rows_len, 2);
	assert_int_equal(take_even(10, 0, true).rows_len, 1); /* one at least */
	assert_int_equal(take_even(10, 2500, true).rows_len, 2);
	assert_int_equal(take_even(10, 3000, true).rows_len, 3);
	assert_ok(store_relay_take(store, &even,
	                           &(struct relay_want){ .routes_digest = today,
	                                                 .skip = skip,
	                                                 .skip_len = 2,
	                                                 .rows = 10,
	                                                 .bytes = BYTES_MANY,
	                                                 .with_decided = true },
	                           arena, &take, &error),
	          error);
	assert_int_equal(take.rows_len, 3);
	struct uuid third = uuid_of(6);
	assert_memory_equal(&take.rows[0].checkpoint->id, &third, sizeof(third));
	int64_t count;
	assert_ok(store_outbox_count(store, "resumes", 0, &count, &error), error);
	assert_int_equal(count, 5);
}

static void what_is_erased_or_purged_or_tampered_with(void **state)
{
	(void)state;
	both_ledgers_are_read();
	for (uint32_t i = 2; i <= 8; i += 2)
		insert_checkpoint(store, arena, make_checkpoint(arena, i, 100));
	world_run("UPDATE fermata.checkpoint SET wrapped_key = NULL WHERE checkpoint_id::text LIKE '%02'");
	world_run("DELETE FROM fermata.payload WHERE checkpoint_id::text LIKE '%04'");
	world_run("UPDATE fermata.checkpoint SET wrapped_key = '\\x0011', digest = '\\x', seal_commit = NULL,"
	          " common = NULL, own_kek_id = repeat('k', 200), own_resumes_topic = 'resumes', plain_len = -5, "
	          "seal_format = -1, labels = '{a}',"
	          " approvers = '{NULL}' WHERE checkpoint_id::text LIKE '%06'");
	struct relay_take take = take_even(10, BYTES_MANY, true);
	assert_int_equal(take.rows_len, 0);
	assert_int_equal(take.gates_len, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct checkpoint *row = take.gates[i].checkpoint;
		uint8_t number = row->id.bytes[15];
		assert_int_equal(take.gates[i].gone, number == 2);
		assert_int_equal(view_is_null(row->sealed.body), number == 2 || number == 4);
		if (number != 6)
			continue;
		assert_true(row->sealed.has_key);
		assert_int_equal(row->sealed.wrapped_key[0], 0);
		assert_int_equal(row->sealed.kek_id[0], 0);
		assert_int_equal(row->sealed.plain_len, 0);
		assert_int_equal(row->sealed.format, 0);
		assert_int_equal(row->labels_len, 0);
		assert_int_equal(row->approvers_len, 1);
		assert_int_equal(row->approvers[0].len, 0);
	}
	assert_true(view_is_null(take_even(10, BYTES_MANY, false).gates[3].checkpoint->sealed.body));
}

static struct relay_take take_without_decided(size_t rows)
{
	struct relay_take take;
	struct error error = { 0 };

	assert_ok(
		store_relay_take(store, &even,
	                     &(struct relay_want){
							 .routes_digest = today, .rows = rows, .bytes = BYTES_MANY, .with_action = true },
	                     arena, &take, &error),
		error);
	return take;
}

/* Its gate event goes with its resume, and is not told before. */
static void what_is_decided_is_left_to_its_resume(void **state)
{
	(void)state;
	both_ledgers_are_read();
	decided(2, 3); /* 2, 4, 6 */
	insert_checkpoint(store, arena, make_checkpoint(arena, 8, 10));
	struct relay_take take = take_without_decided(10);
	assert_int_equal(take.rows_len, 3);
	assert_int_equal(take.gates_len, 1);
	assert_int_equal(take.gates[0].checkpoint->id.bytes[15], 8);
	assert_false(view_is_null(take.gates[0].checkpoint->sealed.body));
	assert_false(take.more);
	assert_true(take_without_decided(4).more); /* 8 may lie beyond the fourth */
	assert_true(take_without_decided(3).more);
	assert_int_equal(take_without_decided(3).rows_len, 3);
	assert_int_equal(take_even(10, BYTES_MANY, true).gates_len, 1); /* what is taken out of the outbox */
	assert_true(take_even(10, 1, true).more);                       /* bytes end it */
	world_run("DELETE FROM fermata.outbox");
	assert_int_equal(take_even(10, BYTES_MANY, true).gates_len, 4);
}

/* What of gate events the caller has, and what it was asked for. */
struct hand {
	struct uuid id; /* it has that one */
	size_t asked;
	int64_t version; /* that it was asked for of it */
};

static const void *find_in_hand(void *context, const struct uuid *id, int64_t version, size_t *ret_bytes)
{
	struct hand *hand = context;

	hand->asked++;
	if (uuid_compare(id, &hand->id) != 0)
		return NULL;
	hand->version = version;
	*ret_bytes = 5000;
	return hand;
}

static struct relay_take take_with_hand(struct hand *hand, size_t bytes)
{
	struct handed handed = { .find = find_in_hand, .context = hand };
	struct relay_take take;
	struct error error = { 0 };

	assert_ok(
		store_relay_take(
			store, &even,
			&(struct relay_want){
				.routes_digest = today, .rows = 10, .bytes = bytes, .with_action = true, .handed = &handed },
			arena, &take, &error),
		error);
	return take;
}

/* What the caller has of them it need not read, and nobody asks it for what goes with a resume. */
static void what_was_handed_over_is_not_read(void **state)
{
	struct hand hand = { .id = uuid_of(8) };

	(void)state;
	both_ledgers_are_read();
	decided(2, 1);
	for (uint32_t i = 8; i <= 12; i += 2)
		insert_checkpoint(store, arena, make_checkpoint(arena, i, 1000));
	struct relay_take take = take_with_hand(&hand, BYTES_MANY);
	assert_int_equal(take.rows_len, 1);
	assert_int_equal(take.gates_len, 3);
	assert_int_equal(hand.asked, 3);
	assert_int_equal(hand.version, load(8)->version);
	assert_false(take.more);
	for (size_t i = 0; i < 3; i++) {
		const struct gate_row *gate = &take.gates[i];
		uint8_t number = gate->checkpoint->id.bytes[15];
		assert_ptr_equal(gate->handed, number == 8 ? &hand : NULL);
		assert_false(gate->gone);
		assert_int_equal(view_is_null(gate->checkpoint->sealed.body), number == 8);
		assert_int_equal(gate->version, load(number)->version);
	}
	take = take_with_hand(&hand, 6000); /* it counts: there is no room for more than one of the others */
	assert_int_equal(take.gates_len, 2);
	assert_true(take.more);
	world_run("DELETE FROM fermata.gate_outbox WHERE checkpoint_id::text NOT LIKE '%08'");
	take = take_with_hand(&hand, BYTES_MANY);
	assert_int_equal(take.gates_len, 1);
	assert_ptr_equal(take.gates[0].handed, &hand);
}

/* What intake has left to resumes that do not come. */
static void what_waits_in_the_outbox_is_told(void **state)
{
	(void)state;
	struct error error = { 0 };

	both_ledgers_are_read();
	decided(2, 3); /* 2, 4, 6 */
	decided(3, 2); /* the other shard's */
	insert_checkpoint(store, arena, make_checkpoint(arena, 8, 10));
	world_run("DELETE FROM fermata.gate_outbox WHERE checkpoint_id::text NOT LIKE '%06'");
	world_run("UPDATE fermata.gate_outbox SET version = version - 1"); /* of its suspend */
	world_run(
		"UPDATE fermata.checkpoint SET state = 'QUARANTINED' WHERE checkpoint_id::text LIKE '%00000004'");
	assert_ok(store_relay_tell(store, &even, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 2);
	assert_int_equal(
		world_number(
			"SELECT count(*) FROM fermata.gate_outbox g JOIN fermata.checkpoint c USING (checkpoint_id,"
			" version) WHERE c.state = 'DECIDED' AND g.partition = 0"),
		2);
}

static void a_mark_is_whole(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct gate_sent resumed[] = { { uuid_of(4), T0 * 3, WAITING_GOES },
		                           { uuid_of(2), T0 * 3 + 1, WAITING_GOES } };
	struct gate_sent gates[] = { { uuid_of(8), T0 * 3, WAITING_GOES }, { uuid_of(10), 1, WAITING_GOES } };

	both_ledgers_are_read();
	decided(2, 3);
	insert_checkpoint(store, arena, make_checkpoint(arena, 8, 10));
	insert_checkpoint(store, arena, make_checkpoint(arena, 10, 10));
	assert_ok(store_relay_mark(store, &even, 10, 13, resumed, 2, gates, 2, T0 + 77, &error), error);
	const struct checkpoint *row = load(2);
	assert_int_equal(row->state, GATE_RESUMED);
	assert_true(row->published);
	assert_int_equal(row->version, T0 * 3 + 1);
	assert_int_equal(row->changed_at, T0 + 77);
	assert_false(row->from_ledger);
	assert_int_equal(load(4)->state, GATE_RESUMED);
	assert_int_equal(load(6)->state, GATE_DECIDED);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 1);
	/* 6 was not sent, and of 10 an older version was. */
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 2);
	assert_int_equal(world_number("SELECT next FROM fermata.ledger_offset WHERE partition = 0"), 13);
}

static void a_stale_mark_changes_nothing(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct gate_sent resumed = { uuid_of(2), T0 * 3, WAITING_GOES };
	struct ledger_found found = { uuid_of(2), VERDICT_APPROVED, NULL, 0, T0, 0 };
	struct uuid id = uuid_of(2);
	size_t fresh;

	both_ledgers_are_read();
	decided(2, 1);
	assert_fate(FATE_RETRY, store_relay_mark(store, &even, 9, 13, &resumed, 1, &resumed, 1, T0, &error),
	            error);
	assert_int_equal(error.code, ERR_STALE);
	assert_fate(FATE_RETRY, store_relay_mark(store, &even, LEDGER_NONE, 13, &resumed, 1, NULL, 0, T0, &error),
	            error);
	assert_int_equal(error.code, ERR_STALE);
	assert_fate(FATE_RETRY,
	            store_ledger_advance(store, &even, 11, 12, (struct doubt){ T0, 12 }, today, &found, 1, &fresh,
	                                 &error),
	            error);
	assert_int_equal(error.code, ERR_STALE);
	assert_fate(FATE_RETRY,
	            store_ledger_advance(store, &even, LEDGER_NONE, 12, (struct doubt){ T0, 12 }, today, &found,
	                                 1, &fresh, &error),
	            error);
	assert_int_equal(error.code, ERR_STALE);
	assert_fate(FATE_RETRY, store_relay_set_aside(store, &even, 9, &id, GATE_IN_DOUBT, "why", T0, &error),
	            error);
	assert_int_equal(error.code, ERR_STALE);
	assert_int_equal(load(2)->state, GATE_DECIDED);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 1);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 1);
	assert_int_equal(world_number("SELECT next FROM fermata.ledger_offset WHERE partition = 0"), 10);
	assert_int_equal(store_reconnects(store), 1);
}

/* The database went back under a relay: what it published is not DECIDED there. The ledger must not move past
 * a resume that is marked nowhere, or it would be published again. */
static void a_mark_that_finds_less_changes_nothing(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct gate_sent resumed[] = { { uuid_of(2), T0 * 3, WAITING_GOES },
		                           { uuid_of(4), T0 * 3, WAITING_GOES },
		                           { uuid_of(6), T0 * 3, WAITING_GOES } };

	both_ledgers_are_read();
	decided(2, 1);                                                  /* DECIDED */
	insert_checkpoint(store, arena, make_checkpoint(arena, 4, 10)); /* PENDING; 6 is not there */
	for (size_t len = 2; len <= 3; len++) {
		assert_fate(FATE_RETRY, store_relay_mark(store, &even, 10, 13, resumed, len, NULL, 0, T0, &error),
		            error);
		assert_int_equal(error.code, ERR_STALE);
	}
	assert_int_equal(load(2)->state, GATE_DECIDED);
	assert_int_equal(load(4)->state, GATE_PENDING);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 1);
	assert_int_equal(world_number("SELECT next FROM fermata.ledger_offset WHERE partition = 0"), 10);
}

/* Decisions that were judged in another order than when the resume was published agree with it afterwards. */
static void the_ledger_settles_outcomes(void **state)
{
	(void)state;
	struct uuid named[] = { uuid_of(71) };
	struct ledger_found found = { uuid_of(2), VERDICT_APPROVED, named, 1, T0 * 2, 0 };
	const char *insert =
		"INSERT INTO fermata.decision (decision_id, checkpoint_id, outcome, reason, decision, issuer,"
		" subject, display, decided_at, stated_session, source_system, source_ref, source_delivery,"
		" record_digest, id_text, topic, partition, \"offset\", appended_at) SELECT id::uuid,"
		" '01930000-0000-7000-8000-000000000002', outcome::fermata.outcome, reason, 'APPROVE', '', id,"
		" '', 0, '', '', '', '', '', id, '', 0, 0, 0 FROM (VALUES"
		" ('01930000-0000-7000-8000-000000000047', 'refused', 'superseded: x'),"
		" ('01930000-0000-7000-8000-000000000048', 'counted', NULL),"
		" ('01930000-0000-7000-8000-000000000049', 'refused', 'late: x')) v (id, outcome, reason)";

	both_ledgers_are_read();
	insert_checkpoint(store, arena, make_checkpoint(arena, 2, 10));
	world_run(insert);
	assert_int_equal(advance(&even, 10, 30, &found, 1), 1);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE subject LIKE '%47'"
	                              " AND outcome = 'counted' AND reason IS NULL"),
	                 1);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE subject LIKE '%48'"
	                              " AND outcome = 'refused' AND reason LIKE 'already_decided%'"),
	                 1);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE reason = 'late: x'"), 1);
}

/* R2 finds a resume of what is not there, unclaimed, pending, decided, quarantined and resumed. */
static void the_ledger_is_right_whatever_the_rows_say(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct uuid decisions[] = { uuid_of(71), uuid_of(72), uuid_of(73) };
	struct ledger_found found[] = {
		{ uuid_of(12), VERDICT_REJECTED, decisions, 2, T0 * 2, 0 },     /* not there */
		{ uuid_of(10), VERDICT_APPROVED, decisions + 2, 1, T0 * 2, 0 }, /* unclaimed */
		{ uuid_of(8), VERDICT_APPROVED, NULL, 0, T0 * 2, 0 },           /* resumed already */
		{ uuid_of(6), VERDICT_EXPIRED, decisions, 1, T0 * 2, 0 },       /* quarantined without a verdict */
		{ uuid_of(4), VERDICT_APPROVED, decisions, 3, T0 * 2, 0 },      /* decided by its own decisions */
		{ uuid_of(2), VERDICT_CANCELLED, decisions, 1, 5, 0 },          /* pending */
		{ uuid_of(2), VERDICT_CANCELLED, decisions, 1, 5, 0 }, /* a double must not stop the relay for ever */
	};
	both_ledgers_are_read();
	for (uint32_t i = 2; i <= 6; i += 2)
		insert_checkpoint(store, arena, make_checkpoint(arena, i, 10));
	decide_checkpoint(store, arena, 4);
	decided(8, 1);
	struct gate_sent resumed = { uuid_of(8), T0 * 3, WAITING_GOES };
	assert_ok(store_relay_mark(store, &even, 10, 11, &resumed, 1, NULL, 0, T0, &error), error);
	world_run("UPDATE fermata.checkpoint SET state = 'QUARANTINED', reason = 'r' WHERE checkpoint_id::text "
	          "LIKE '%06'");
	world_run("INSERT INTO fermata.checkpoint (checkpoint_id, state, filled, changed_at)"
	          " VALUES ('01930000-0000-7000-8000-00000000000a', 'UNCLAIMED', false, 1)");
	world_run("INSERT INTO fermata.unclaimed VALUES ('01930000-0000-7000-8000-00000000000a', 1, 1)");
	world_run("DELETE FROM fermata.gate_outbox");

	assert_int_equal(advance(&even, 11, 30, found, 7), 5);
	for (uint32_t i = 2; i <= 12; i += 2) {
		const struct checkpoint *row = load(i);
		assert_int_equal(row->state, GATE_RESUMED);
		assert_true(row->published);
		assert_int_equal(row->from_ledger, i != 8);
		assert_true(row->has_verdict);
		assert_int_equal(row->filled, i < 10);
		assert_int_equal(row->version, i >= 10 ? 0 : i == 2 ? T0 + 1003 : i == 8 ? T0 * 3 : T0 * 2);
		assert_true(view_is_null(row->reason));
	}
	assert_int_equal(load(12)->verdict, VERDICT_REJECTED);
	assert_int_equal(load(12)->ledger_decisions_len, 2);
	assert_memory_equal(load(12)->ledger_decisions, decisions, 2 * sizeof(struct uuid));
	assert_memory_equal(load(10)->ledger_decisions, decisions + 2, sizeof(struct uuid));
	assert_int_equal(load(4)->ledger_decisions_len, 3);
	assert_int_equal(load(4)->decided_at, T0 + 2000);
	assert_int_equal(load(2)->decided_at, 5);
	assert_int_equal(load(2)->verdict, VERDICT_CANCELLED);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.unclaimed"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.expiry"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 3); /* 2, 4, 6 */
	/* Read again, it changes nothing. */
	int64_t versions = world_number("SELECT sum(xmin::text::bigint) FROM fermata.checkpoint");
	assert_int_equal(advance(&even, 30, 30, found, 7), 0);
	assert_int_equal(world_number("SELECT sum(xmin::text::bigint) FROM fermata.checkpoint"), versions);
}

static void what_cannot_be_published_is_set_aside(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct uuid two = uuid_of(2);
	struct uuid four = uuid_of(4);
	struct uuid six = uuid_of(6);

	both_ledgers_are_read();
	decided(2, 2);
	insert_checkpoint(store, arena, make_checkpoint(arena, 6, 10));
	assert_ok(store_relay_set_aside(store, &even, 10, &two, GATE_QUARANTINED, "its tag does not verify",
	                                T0 * 2, &error),
	          error);
	assert_ok(
		store_relay_set_aside(store, &even, 10, &four, GATE_IN_DOUBT, "the ledger is cut", T0 * 2, &error),
		error);
	assert_ok(store_relay_set_aside(store, &even, 10, &six, GATE_QUARANTINED, "no such key", T0 * 2, &error),
	          error);
	assert_int_equal(load(2)->state, GATE_QUARANTINED);
	assert_true(view_equal_text(load(2)->reason, "its tag does not verify"));
	assert_true(load(2)->has_verdict);
	assert_int_equal(load(4)->state, GATE_IN_DOUBT);
	assert_int_equal(load(4)->version, T0 * 2);
	assert_int_equal(load(6)->state, GATE_QUARANTINED);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 0);
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.gate_outbox WHERE version = 3592051200000000"), 3);
	/* What is settled is not set aside any more. */
	assert_fate(FATE_RETRY,
	            store_relay_set_aside(store, &even, 10, &two, GATE_QUARANTINED, "again", T0, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	assert_true(view_equal_text(load(2)->reason, "its tag does not verify"));
}

static uint64_t await_notification(void)
{
	struct pollfd pollfd = { store_socket(store), POLLIN, 0 };
	uint64_t shards;

	while ((shards = store_notified(store)) == 0)
		assert_int_equal(poll(&pollfd, 1, 10000), 1);
	return shards;
}

static void a_relay_is_told_of_new_rows(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct store *intake = open_store("intake");

	assert_ok(store_listen(store, &error), error);
	assert_false(store_notified(store));
	insert_checkpoint(intake, arena, make_checkpoint(arena, 2, 10));
	assert_false(store_notified(store));
	decide_checkpoint(intake, arena, 2);
	assert_true(await_notification() == STORE_ALL_SHARDS);
	assert_false(store_notified(store));
	world_run("NOTIFY fermata_outbox, '8000000000000001'");
	assert_true(await_notification() == UINT64_C(0x8000000000000001));
	world_run("NOTIFY fermata_outbox"); /* as older releases say it */
	assert_true(await_notification() == STORE_ALL_SHARDS);
	world_kill("relay");
	while (store_socket(store) >= 0)
		if (store_notified(store) == 0)
			poll(NULL, 0, 1);
	assert_ok(store_connect(store, &error), error);
	assert_true(store_notified(store)); /* what came meanwhile is not known */
	assert_int_equal(world_number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'relay'"),
	                 1);
	insert_checkpoint(intake, arena, make_checkpoint(arena, 4, 10));
	decide_checkpoint(intake, arena, 4); /* it listens again on the new connection */
	await_notification();
	store_close(intake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_relay, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_taken_before_every_ledger_is_read),
		TEST(rows_come_whole_from_the_lowest),
		TEST(limits_and_what_must_wait),
		TEST(what_is_erased_or_purged_or_tampered_with),
		TEST(what_is_decided_is_left_to_its_resume),
		TEST(what_was_handed_over_is_not_read),
		TEST(what_waits_in_the_outbox_is_told),
		TEST(a_mark_is_whole),
		TEST(a_stale_mark_changes_nothing),
		TEST(a_mark_that_finds_less_changes_nothing),
		TEST(the_ledger_settles_outcomes),
		TEST(the_ledger_is_right_whatever_the_rows_say),
		TEST(what_cannot_be_published_is_set_aside),
		TEST(a_relay_is_told_of_new_rows),
	};

	return run_in_world(tests);
}
