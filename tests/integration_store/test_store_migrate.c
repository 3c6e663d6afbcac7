/* Bringing the schema up to date: twice, by many at once, by a role that is no superuser; partitions; the
 * installation. */
#include "tests/integration_store/store_support.h"

#include "store/store_migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4

static void an_empty_database_is_waited_for(void **state)
{
	(void)state;
	struct store *store = open_store("early");
	struct error error = { 0 };

	assert_fate(FATE_RETRY, store_check_version(store, &error), error);
	assert_int_equal(error.code, ERR_SERVICE);
	assert_non_null(strstr(error.message, "fermata migrate"));
	store_close(store);
}

/* Exits 0 and writes what it found and left, or 1. */
static void migrate_in_a_child(int pipe_fd)
{
	struct store_settings settings = { .dsn = world_dsn(), .name = "child", .prepared = true };
	struct store *store;
	struct error error = { 0 };
	int versions[2] = { -1, -1 };

	if (store_open(&store, &settings, &error) != FATE_OK ||
	    store_migrate(store, &versions[0], &versions[1], &error) != FATE_OK) {
		fprintf(stderr, "%s\n", error.message);
		_exit(1);
	}
	store_close(store);
	_exit(write(pipe_fd, versions, sizeof(versions)) == (ssize_t)sizeof(versions) ? 0 : 1);
}

/* Migrates in several processes at once. Returns how many of them found version `wanted`. */
static int migrate_at_once(int wanted)
{
	int fds[2];
	int made = 0;

	assert_int_equal(pipe(fds), 0);
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			migrate_in_a_child(fds[1]);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		int versions[2];
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		assert_int_equal(read(fds[0], versions, sizeof(versions)), sizeof(versions));
		assert_int_equal(versions[1], migrations_len);
		made += versions[0] == wanted ? 1 : 0;
	}
	close(fds[0]);
	close(fds[1]);
	return made;
}

static void many_at_once_migrate_once(void **state)
{
	(void)state;

	assert_int_equal(migrate_at_once(0), 1);
	assert_int_equal(world_number("SELECT count(*) - max(version) FROM fermata.schema_version"), 0);

	struct store *store = open_store("again");
	struct error error = { 0 };
	int from;
	int to;
	assert_ok(store_migrate(store, &from, &to, &error), error);
	assert_int_equal(from, to);
	assert_ok(store_check_version(store, &error), error);
	assert_int_equal(store_reconnects(store), 1);
	store_close(store);
}

static void a_newer_database_is_not_touched(void **state)
{
	(void)state;
	struct store *store = open_store("old");
	struct error error = { 0 };
	int from = -1;
	int to = -1;

	world_run("INSERT INTO fermata.schema_version (version, name) VALUES (9999, 'from the future')");
	assert_fate(FATE_FATAL, store_migrate(store, &from, &to, &error), error);
	assert_int_equal(error.code, ERR_USAGE);
	assert_fate(FATE_FATAL, store_check_version(store, &error), error);
	assert_int_equal(error.code, ERR_USAGE);
	world_run("DELETE FROM fermata.schema_version WHERE version = 9999");
	assert_ok(store_check_version(store, &error), error);
	store_close(store);
}

static struct store *open_role(const char *role)
{
	char *dsn = world_dsn_as(role, "test");
	struct store_settings settings = { .dsn = dsn, .name = role, .prepared = true };
	struct store *store;
	struct error error = { 0 };

	assert_ok(store_open(&store, &settings, &error), error);
	free(dsn);
	return store;
}

/* Who migrates owns the tables and is no superuser; who works does not own them. */
static void roles_without_privilege_suffice(void **state)
{
	(void)state;
	struct arena *arena = arena_new(1 << 22);
	struct error error = { 0 };
	int from;
	int to;
	char migrator[64];
	char worker[64];
	char sql[1024];

	snprintf(migrator, sizeof(migrator), "migrator_%d", (int)getpid());
	snprintf(worker, sizeof(worker), "worker_%d", (int)getpid());
	world_run("DROP SCHEMA fermata CASCADE");
	snprintf(sql, sizeof(sql),
	         "CREATE ROLE %s LOGIN PASSWORD 'test'; CREATE ROLE %s LOGIN PASSWORD 'test';"
	         "CREATE SCHEMA fermata AUTHORIZATION %s",
	         migrator, worker, migrator);
	world_run(sql);
	struct store *store = open_role(migrator);
	assert_ok(store_migrate(store, &from, &to, &error), error);
	assert_int_equal(from, 0);
	store_close(store);

	store = open_role(worker);
	assert_fate(FATE_FATAL, store_check_version(store, &error), error);
	assert_string_equal(error.native, "42501");
	snprintf(sql, sizeof(sql),
	         "GRANT USAGE ON SCHEMA fermata TO %s;"
	         "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA fermata TO %s;"
	         "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fermata TO %s",
	         worker, worker, worker);
	world_run(sql);
	assert_ok(store_check_version(store, &error), error);
	assert_ok(store_payload_days(store, T0, 3, &error), error);
	insert_checkpoint(store, arena, make_checkpoint(arena, 2, 100));
	decide_checkpoint(store, arena, 2);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload_20261130"), 1);
	store_close(store);
	snprintf(sql, sizeof(sql), "DROP OWNED BY %s, %s; DROP ROLE %s, %s", migrator, worker, migrator, worker);
	world_run(sql);
	world_run("DROP SCHEMA IF EXISTS fermata CASCADE");
	store = open_store("restore");
	assert_ok(store_migrate(store, &from, &to, &error), error);
	store_close(store);
	arena_free(arena);
}

/* ---- from version 1 ---- */

static void begin_at_version_1(void)
{
	world_run("DROP SCHEMA IF EXISTS fermata CASCADE; CREATE SCHEMA fermata;"
	          "CREATE TABLE fermata.schema_version (version integer PRIMARY KEY, name text NOT NULL,"
	          " applied_at timestamptz NOT NULL DEFAULT now())");
	world_run(migrations[0].sql);
	world_run("INSERT INTO fermata.schema_version (version, name) VALUES (1, 'tables')");
}

/* A row in every table that a worker of version 1 writes, in its own words: what writes today may know later columns. */
static void fill_tables_of_version_1(void)
{
	world_run(
		"SELECT fermata.payload_day_make('2026-11-30');"
		"INSERT INTO fermata.checkpoint (checkpoint_id, state, filled, verdict, decided_at, version, "
		"changed_at,"
		" tenant, session_id, gate_id, suspend_seq, agent, agent_version, requested_by, title,"
		" required_approvals, suspended_at, appended_at, digest, payload_day, resumes_topic, "
		"resumes_partition)"
		" VALUES ('01930000-0000-7000-8000-000000000001', 'DECIDED', true, 'APPROVED', 6, 6, 6, 'default',"
		" 'SESSION-808', 'deploy', 1, 'migrator', '1', 'usr_99', 'Migrate', 1, 5, 5, '\\x07', '2026-11-30',"
		" 'resumes', 0);"
		"INSERT INTO fermata.payload VALUES ('01930000-0000-7000-8000-000000000001', '2026-11-30', '\\x01');"
		"INSERT INTO fermata.decision (decision_id, checkpoint_id, outcome, decision, issuer, subject, "
		"display,"
		" decided_at, stated_session, source_system, source_ref, source_delivery, record_digest, id_text, "
		"topic,"
		" partition, \"offset\", appended_at) VALUES ('01930000-0000-7000-8000-00000000000d',"
		" '01930000-0000-7000-8000-000000000001', 'counted', 'APPROVE', 'jira', 'ann', 'Ann', 6, '', '', '', "
		"'',"
		" '\\x08', '01930000-0000-7000-8000-00000000000D', 'approvals', 0, 3, 6);"
		"INSERT INTO fermata.outbox VALUES ('01930000-0000-7000-8000-000000000001', 'resumes', 0);"
		"INSERT INTO fermata.gate_outbox VALUES ('01930000-0000-7000-8000-000000000001', 'resumes', 0, 6);"
		"INSERT INTO fermata.expiry VALUES ('01930000-0000-7000-8000-000000000002', 9, 10);"
		"INSERT INTO fermata.unclaimed VALUES ('01930000-0000-7000-8000-000000000003', 1, 1);"
		"INSERT INTO fermata.kafka_offset VALUES ('cluster', 'suspends', 0, 7, 6, 5, '\\x09', NULL);"
		"INSERT INTO fermata.ledger_offset VALUES ('cluster', 'resumes', 0, 5, 4, '\\x00');"
		"INSERT INTO fermata.installation VALUES (true, 'fermata', 'cluster', 1);"
		"INSERT INTO fermata.resumes_topic VALUES ('resumes', 1)");
}

static void fill_version_1(void)
{
	fill_tables_of_version_1();
	world_run("INSERT INTO fermata.schema_text (sha256, fingerprint, registry_id, text, seen_at)"
	          " VALUES (decode(repeat('11', 32), 'hex'), '\\x0102030405060708', 3, '\"string\"', 5)");
}

/* What all the tables of version 1 hold, as a number, without the columns that came later. schema_text changes, and so
 * does the list of versions. */
static uint64_t contents_of_version_1(void)
{
	static const char *const tables[] = { "checkpoint",    "payload",      "decision",     "outbox",
		                                  "gate_outbox",   "expiry",       "unclaimed",    "kafka_offset",
		                                  "ledger_offset", "installation", "resumes_topic" };
	uint64_t contents = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char sql[512];
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM fermata.%s", tables[i]);
		assert_true(world_number(sql) > 0);
		snprintf(
			sql, sizeof(sql),
			"SELECT sum(hashtext((to_jsonb(t) - '{suspend_topic,suspend_partition,suspend_offset,sweep_at,"
			"doubt_below,doubt_settled,let_through,common,tail,own_suspend_topic,resumes_topic,"
			"own_resumes_topic,kek_id,own_kek_id,schema_sha256,own_schema_sha256}'::text[])::text)) FROM "
			"fermata.%s t",
			tables[i]);
		contents = contents * 31 + (uint64_t)world_number(sql);
	}
	return contents;
}

static void version_1_is_brought_up_to_date_with_its_data(void **state)
{
	(void)state;

	begin_at_version_1();
	fill_version_1();
	uint64_t before = contents_of_version_1();
	struct store *store = open_store("worker");
	struct error error = { 0 };
	assert_int_equal(migrate_at_once(1), 1);
	assert_int_equal(contents_of_version_1(), before);
	/* What is read of a ledger is all that there was to doubt. */
	assert_int_equal(world_number("SELECT doubt_below FROM fermata.ledger_offset"), 5);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.schema_text WHERE text = '\"string\"' AND"
	                              " seen_at = 5 AND sha256 = decode(repeat('11', 32), 'hex') AND"
	                              " text_sha256 = sha256('\"string\"')"),
	                 1);
	assert_ok(store_check_version(store, &error), error);
	store_close(store);
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.checkpoint WHERE own_resumes_topic = 'resumes'"
	                 " AND common IS NULL"),
		1);
	/* A worker of a version before 7 that is still at work ends, before it has changed anything. */
	world_run("DO $$ BEGIN PERFORM c.resumes_topic FROM fermata.checkpoint c; RAISE EXCEPTION 'read';"
	          " EXCEPTION WHEN undefined_column THEN NULL; END $$");

	world_run("DROP SCHEMA fermata CASCADE");
	assert_int_equal(migrate_at_once(0), 1);
}

/* Rows of version 5 are read as they are, and none is written anew. */
static void version_5_keeps_its_rows(void **state)
{
	(void)state;
	struct arena *arena = arena_new(1 << 22);
	struct uuid id;
	struct error error = { 0 };

	begin_at_version_1();
	for (int i = 1; i < 5; i++)
		world_run(migrations[i].sql);
	world_run(
		"INSERT INTO fermata.schema_version (version, name) SELECT n, 'more' FROM generate_series(2, 5) n");
	fill_tables_of_version_1();
	world_run("UPDATE fermata.checkpoint SET kek_id = 'k1', wrapped_key = '\\x00',"
	          " schema_sha256 = decode(repeat('12', 32), 'hex'), suspend_topic = 'suspends'");
	int64_t file = world_number("SELECT pg_relation_filenode('fermata.checkpoint')");
	assert_int_equal(migrate_at_once(5), 1);
	assert_int_equal(world_number("SELECT pg_relation_filenode('fermata.checkpoint')"), file);
	struct store *store = open_store("worker");
	assert_true(uuid_parse(VIEW_LITERAL("01930000-0000-7000-8000-000000000001"), &id));
	struct batch_loaded loaded = begin_batch(store, arena, NULL, &id, 1, NULL);
	assert_int_equal(loaded.checkpoints_len, 1);
	const struct checkpoint *row = loaded.checkpoints[0];
	assert_true(view_equal_text(row->resumes_topic, "resumes"));
	assert_string_equal(row->sealed.kek_id, "k1");
	assert_int_equal(row->sealed.schema_sha256[31], 0x12);
	store_rollback(store);
	struct checkpoint *copy = arena_alloc(arena, sizeof(*copy));
	*copy = *row;
	assert_ok(store_payload(store, copy, arena, &error), error);
	assert_int_equal(copy->sealed.body.len, 1);
	store_close(store);
	arena_free(arena);
	world_run("DROP SCHEMA fermata CASCADE");
	assert_int_equal(migrate_at_once(0), 1);
}

static void days_are_made_ahead(void **state)
{
	(void)state;
	struct arena *arena = arena_new(1 << 22);
	struct store *store = open_store("reaper");
	struct store *intake = open_store("intake");
	struct error error = { 0 };
	struct checkpoint *first = make_checkpoint(arena, 1, 10);
	struct checkpoint *other = make_checkpoint(arena, 2, 10);
	struct checkpoint_write row = { .checkpoint = other, .insert = true, .fill = true };
	struct batch_write batch = { .checkpoints = &row, .checkpoints_len = 1 };

	/* This day has rows in the default partition already, so it stays there. */
	insert_checkpoint(store, arena, first);
	assert_ok(store_payload_days(store, T0, 3, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload_default"), 1);
	assert_int_equal(
		world_number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'fermata.payload'::regclass"), 3);
	/* An insert that is under way in one partition does not hold up the making of others. */
	other->appended_at = T0 + INT64_C(86400000000);
	begin_batch(intake, arena, NULL, NULL, 0, NULL);
	assert_ok(store_batch_write(intake, &batch, &error), error);
	assert_ok(store_payload_days(store, T0, 5, &error), error);
	assert_ok(store_commit(intake, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload_20261201"), 1);
	assert_int_equal(
		world_number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'fermata.payload'::regclass"), 5);
	assert_int_equal(
		world_number("SELECT count(*) FROM pg_attribute WHERE attname = 'body' AND attstorage = 'e'"
	                 " AND attrelid IN (SELECT oid FROM pg_class WHERE relname LIKE 'payload%')"),
		6);
	/* Both are found again, wherever they lie. */
	assert_ok(store_payload(store, first, arena, &error), error);
	assert_ok(store_payload(store, other, arena, &error), error);
	assert_int_equal(other->sealed.body.len, 10);
	world_run("DELETE FROM fermata.payload");
	assert_fate(FATE_REJECT, store_payload(store, other, arena, &error), error);
	assert_int_equal(error.code, ERR_NO);
	store_close(store);
	store_close(intake);
	arena_free(arena);
}

static enum fate installation(struct store *store, const char *group, const char *cluster, bool adopt,
                              const struct resumes_topic *topics, size_t len, size_t *ret_known,
                              struct error *error)
{
	struct arena *arena = arena_new(1 << 20);
	struct resumes_topic *known;
	enum fate fate =
		store_installation(store, group, cluster, adopt, topics, len, arena, &known, ret_known, error);

	arena_free(arena);
	return fate;
}

static void an_installation_has_one_group_and_fixed_topics(void **state)
{
	(void)state;
	struct store *store = open_store("worker");
	struct error error = { 0 };
	struct resumes_topic topics[] = { { VIEW_LITERAL("resumes"), 6 }, { VIEW_LITERAL("late"), 3 } };
	struct resumes_topic wider = { VIEW_LITERAL("resumes"), 12 };
	size_t known;

	assert_ok(installation(store, "group", "cluster", false, topics, 1, &known, &error), error);
	assert_int_equal(known, 1);
	assert_ok(installation(store, "group", "cluster", false, topics + 1, 1, &known, &error), error);
	assert_int_equal(known, 2); /* those of earlier configurations too */
	assert_fate(FATE_FATAL, installation(store, "other", "cluster", false, topics, 2, &known, &error), error);
	assert_int_equal(error.code, ERR_USAGE);
	assert_fate(FATE_FATAL, installation(store, "group", "another", true, topics, 2, &known, &error), error);
	assert_int_equal(error.code, ERR_USAGE);
	assert_fate(FATE_FATAL, installation(store, "group", "cluster", false, &wider, 1, &known, &error), error);
	assert_int_equal(error.code, ERR_USAGE);
	assert_int_equal(world_number("SELECT partitions FROM fermata.resumes_topic WHERE topic = 'resumes'"), 6);
	assert_ok(installation(store, "other", "cluster", true, topics, 2, &known, &error), error);
	assert_fate(FATE_FATAL, installation(store, "group", "cluster", false, topics, 2, &known, &error), error);
	store_close(store);
}

static void a_dsn_that_is_none_is_refused_without_being_told(void **state)
{
	(void)state;
	struct store_settings settings = { .dsn = "host=x password='secret nonsense",
		                               .name = "x",
		                               .prepared = true };
	struct store *store = NULL;
	struct error error = { 0 };

	assert_fate(FATE_FATAL, store_open(&store, &settings, &error), error);
	assert_int_equal(error.code, ERR_USAGE);
	assert_null(strstr(error.message, "secret"));
	settings.dsn = "host=127.0.0.1 port=1 user=nobody password=secret";
	assert_ok(store_open(&store, &settings, &error), error);
	assert_fate(FATE_RETRY, store_connect(store, &error), error);
	assert_int_equal(error.code, ERR_SERVICE);
	assert_null(strstr(error.message, "secret"));
	assert_int_equal(store_socket(store), -1);
	assert_int_equal(store_reconnects(store), 0);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_database_is_waited_for),
		cmocka_unit_test(many_at_once_migrate_once),
		cmocka_unit_test(a_newer_database_is_not_touched),
		cmocka_unit_test(roles_without_privilege_suffice),
		cmocka_unit_test(version_1_is_brought_up_to_date_with_its_data),
		cmocka_unit_test(version_5_keeps_its_rows),
		cmocka_unit_test(days_are_made_ahead),
		cmocka_unit_test(an_installation_has_one_group_and_fixed_topics),
		cmocka_unit_test(a_dsn_that_is_none_is_refused_without_being_told),
	};

	if (!world_begin(true))
		return SKIPPED;
	return world_end(cmocka_run_group_tests(tests, NULL, NULL));
}
