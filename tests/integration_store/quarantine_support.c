#include "tests/integration_store/quarantine_support.h"

#include <stdio.h>

static const struct shard shard = { CLUSTER, "resumes", 0 };
static const uint8_t routes[32] = { 1 };

struct arena *arena;
struct store *store;
struct error error;

int begin_quarantine(void **state)
{
	(void)state;
	world_run("TRUNCATE fermata.checkpoint, fermata.payload, fermata.decision, fermata.outbox,"
	          " fermata.gate_outbox, fermata.expiry, fermata.ledger_offset, fermata.resumes_topic");
	world_run("ALTER TABLE fermata.audit DISABLE TRIGGER audit_is_kept; DELETE FROM fermata.audit;"
	          "ALTER TABLE fermata.audit ENABLE TRIGGER audit_is_kept");
	arena = arena_new((size_t)1 << 26);
	store = open_store("operator");
	return 0;
}

int end_quarantine(void **state)
{
	(void)state;
	store_close(store);
	arena_free(arena);
	return 0;
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
	          "INSERT INTO fermata.ledger_offset VALUES ('" CLUSTER "', 'resumes', 0, 10, NULL,"
	          " decode('01' || repeat('00', 31), 'hex'))");
}

struct relay_take take_rows(void)
{
	struct relay_take rows;

	assert_ok(store_relay_take(store, &shard, routes, NULL, 0, 100, 1 << 20, false, arena, &rows, &error),
	          error);
	assert_true(rows.ready);
	return rows;
}
