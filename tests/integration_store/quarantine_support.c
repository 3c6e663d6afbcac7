#include "tests/integration_store/quarantine_support.h"

#include <stdio.h>

struct error error;

int begin_quarantine(void **state)
{
	(void)state;
	return begin_test(open_store("operator"), (size_t)1 << 26);
}

/* ---- rows in quarantine ---- */

void quarantine(uint32_t number, const char *verdict)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
	         "UPDATE fermata.checkpoint SET state = 'QUARANTINED', reason = '" BROKEN "', verdict = %s"
	         " WHERE session_id = 'session-%u';"
	         "DELETE FROM fermata.outbox WHERE checkpoint_id = (SELECT checkpoint_id FROM fermata.checkpoint"
	         " WHERE session_id = 'session-%u')",
	         verdict, number, number);
	world_run(sql);
}

void make_decided(uint32_t number)
{
	insert_checkpoint(store, arena, make_checkpoint(arena, number, 100));
	decide_checkpoint(store, arena, number);
	quarantine(number, "'APPROVED'");
}

void make_open(uint32_t number)
{
	insert_checkpoint(store, arena, make_checkpoint(arena, number, 100));
	quarantine(number, "NULL");
}

void make_doubted(uint32_t number)
{
	char sql[160];

	make_decided(number);
	snprintf(
		sql, sizeof(sql),
		"UPDATE fermata.checkpoint SET state = 'IN_DOUBT', reason = 'gone' WHERE session_id = 'session-%u'",
		number);
	world_run(sql);
}

int64_t number_of(uint32_t number, const char *what)
{
	char sql[768];

	snprintf(sql, sizeof(sql),
	         "SELECT (%s)::bigint FROM fermata.checkpoint c WHERE session_id = 'session-%u'", what, number);
	return world_number(sql);
}

void assert_row(uint32_t number, const char *what)
{
	char sql[512];

	snprintf(sql, sizeof(sql), "coalesce(%s, false)::int", what);
	if (number_of(number, sql) != 1)
		print_error("of checkpoint %u this is not true: %s\n", number, what);
	assert_int_equal(number_of(number, sql), 1);
}

bool settles_never(void *context, struct view tenant, struct view agent)
{
	(void)context, (void)tenant, (void)agent;
	return false;
}

struct operator_deed deed_of(uint32_t number)
{
	return (struct operator_deed){ uuid_of(number), VIEW_LITERAL("ann@desk"), VIEW_LITERAL("mended"), NOW };
}

void make_ledger(void)
{
	world_run("INSERT INTO fermata.resumes_topic VALUES ('resumes', 1);"
	          "INSERT INTO fermata.installation VALUES (true, 'fermata', '" CLUSTER "', 1);"
	          "INSERT INTO fermata.ledger_offset VALUES ('" CLUSTER "', 'resumes', 0, 10, NULL,"
	          " decode('01' || repeat('00', 31), 'hex'))");
}

struct relay_take take_rows(void)
{
	struct relay_take rows;

	assert_ok(
		store_relay_take(store, &shard,
	                     &(struct relay_want){
							 .routes_digest = routes, .rows = 100, .bytes = 1 << 20, .with_decided = true },
	                     arena, &rows, &error),
		error);
	assert_true(rows.ready);
	return rows;
}

/* ---- at once ---- */

void *act(void *argument)
{
	struct acting *acting = argument;

	acting->fate = acting->way(acting->store, &acting->deed, acting->arena, &acting->result, &acting->error);
	return NULL;
}

void begin_acting(struct acting *acting)
{
	assert_int_equal(pthread_create(&acting->thread, NULL, act, acting), 0);
}

void start_acting(struct acting *acting, uint32_t number, way_to_test *way)
{
	*acting = (struct acting){
		.store = open_store("actor"), .arena = arena_new((size_t)1 << 24), .deed = deed_of(number), .way = way
	};
	begin_acting(acting);
}

void join_acting(struct acting *acting)
{
	assert_int_equal(pthread_join(acting->thread, NULL), 0);
}

void finish_acting(struct acting *acting, bool done)
{
	join_acting(acting);
	assert_fate(FATE_OK, acting->fate, acting->error);
	assert_int_equal(acting->result.done, done);
	store_close(acting->store);
	arena_free(acting->arena);
}

static void *mark(void *argument)
{
	struct marking *marking = argument;
	size_t made;

	marking->fate = store_ledger_advance(marking->store, &shard, 10, 12, NO_DOUBT, routes, &marking->found, 1,
	                                     &made, &marking->error);
	return NULL;
}

void start_marking(struct marking *marking, uint32_t number)
{
	*marking = (struct marking){
		.store = open_store("relay"),
		.found = { .checkpoint_id = uuid_of(number), .verdict = VERDICT_APPROVED, .appended_at = NOW },
	};
	assert_int_equal(pthread_create(&marking->thread, NULL, mark, marking), 0);
}

void finish_marking(struct marking *marking)
{
	assert_int_equal(pthread_join(marking->thread, NULL), 0);
	assert_fate(FATE_OK, marking->fate, marking->error);
	store_close(marking->store);
}

/* (Inside of a transaction the view of the sessions stays as it was first seen.) */
void wait_for_lock(const char *name)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "SELECT pg_stat_clear_snapshot(); SELECT count(*) FROM pg_stat_activity WHERE datname = "
	         "current_database()"
	         " AND application_name = '%s' AND wait_event_type = 'Lock'",
	         name);
	world_wait(sql);
}

void race_with_the_ledger(uint32_t first, uint32_t second, way_to_test *way)
{
	struct acting acting;
	struct marking marking;

	/* R2 is first: it has marked the row, and is held up at its last statement. */
	world_run("UPDATE fermata.ledger_offset SET next = 10");
	world_run("BEGIN; SELECT 1 FROM fermata.ledger_offset FOR UPDATE");
	start_marking(&marking, first);
	wait_for_lock("relay");
	start_acting(&acting, first, way);
	wait_for_lock("actor");
	world_run("COMMIT");
	finish_marking(&marking);
	finish_acting(&acting, false);
	assert_row(first, "state = 'RESUMED' AND from_ledger AND NOT " IN_OUTBOX);
	assert_int_equal(number_of(first, AUDIT_ROWS), 0);

	/* The operator is first: it has changed the row, and is held up at the gate event. */
	world_run("UPDATE fermata.ledger_offset SET next = 10");
	world_run("BEGIN; SELECT 1 FROM fermata.gate_outbox FOR UPDATE");
	start_acting(&acting, second, way);
	wait_for_lock("actor");
	start_marking(&marking, second);
	wait_for_lock("relay");
	world_run("COMMIT");
	finish_acting(&acting, true);
	finish_marking(&marking);
	assert_row(second, "state = 'RESUMED' AND published AND NOT " IN_OUTBOX);
	assert_int_equal(take_rows().rows_len, 0);
}
