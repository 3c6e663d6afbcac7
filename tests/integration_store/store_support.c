#include "tests/integration_store/store_support.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

#define ARENA_MAX ((size_t)256 * 1024 * 1024)

static char *admin_dsn;
static char *dsn;
static char database[64];
static PGconn *own;

static char *with_settings(const char *base, const char *settings)
{
	size_t size = strlen(base) + strlen(settings) + 2;
	char *text = malloc(size);

	assert_non_null(text);
	snprintf(text, size, "%s %s", base, settings);
	return text;
}

static PGconn *dial(const char *where)
{
	PGconn *pg = PQconnectdb(where);

	if (PQstatus(pg) != CONNECTION_OK)
		print_error("%s", PQerrorMessage(pg));
	assert_int_equal(PQstatus(pg), CONNECTION_OK);
	return pg;
}

static void run_on(PGconn *pg, const char *sql)
{
	PGresult *result = PQexec(pg, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		print_error("%s: %s", sql, PQerrorMessage(pg));
	assert_true(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
	PQclear(result);
}

static void run_as_admin(const char *verb, const char *options)
{
	char sql[256];
	PGconn *pg = dial(admin_dsn);

	run_on(pg, "SET client_min_messages = warning");
	snprintf(sql, sizeof(sql), "%s DATABASE %s %s", verb, database, options);
	run_on(pg, sql);
	PQfinish(pg);
}

bool world_begin(bool empty)
{
	const char *given = getenv("FERMATA_TEST_DSN");
	struct error error = { 0 };
	int from = 0;
	int to = 0;
	char settings[96];

	if (given == NULL || given[0] == '\0') {
		puts("left out: FERMATA_TEST_DSN is not set, so there is no PostgreSQL to test against");
		return false;
	}
	admin_dsn = strdup(given);
	snprintf(database, sizeof(database), "store_%ld_%d", (long)time(NULL), (int)getpid());
	run_as_admin("CREATE", "");
	snprintf(settings, sizeof(settings), "dbname=%s", database);
	dsn = with_settings(given, settings);
	own = dial(dsn);
	run_on(own, "SET client_min_messages = warning");
	if (empty)
		return true;
	struct store *store = open_store("migrate");
	assert_ok(store_migrate(store, &from, &to, &error), error);
	store_close(store);
	return true;
}

int world_end(int failed)
{
	PQfinish(own);
	run_as_admin("DROP", "WITH (FORCE)");
	free(dsn);
	free(admin_dsn);
	return failed;
}

const char *world_dsn(void)
{
	return dsn;
}

char *world_dsn_as(const char *role, const char *password)
{
	char settings[128];

	snprintf(settings, sizeof(settings), "user=%s password=%s", role, password);
	return with_settings(dsn, settings);
}

void world_run(const char *sql)
{
	run_on(own, sql);
}

int64_t world_number(const char *sql)
{
	PGresult *result = PQexec(own, sql);

	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
		print_error("%s: %s", sql, PQerrorMessage(own));
	assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
	assert_int_equal(PQntuples(result), 1);
	int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return number;
}

int64_t world_backend(const char *name)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = current_database()"
	         " AND application_name = '%s'",
	         name);
	return world_number(sql);
}

void world_wait(const char *sql)
{
	int64_t deadline_ms = clock_mono_ms() + 10000;

	while (world_number(sql) == 0) {
		assert_true(clock_mono_ms() < deadline_ms);
		usleep(2000);
	}
}

void world_kill(const char *name)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
	         " WHERE datname = current_database() AND application_name = '%s'",
	         name);
	world_number(sql);
	snprintf(sql, sizeof(sql),
	         "SELECT (count(*) = 0)::int FROM pg_stat_activity"
	         " WHERE datname = current_database() AND application_name = '%s'",
	         name);
	world_wait(sql);
}

static struct store *open_as(const char *name, bool prepared, bool steady)
{
	struct store_settings settings = { .dsn = dsn, .name = name, .prepared = prepared, .steady = steady };
	struct store *store = NULL;
	struct error error = { 0 };

	assert_ok(store_open(&store, &settings, &error), error);
	return store;
}

struct store *open_store(const char *name)
{
	return open_as(name, true, true);
}

struct store *open_asking(const char *name)
{
	return open_as(name, true, false);
}

struct store *open_unprepared(const char *name)
{
	return open_as(name, false, true);
}

/* ---- rows ---- */

struct uuid uuid_of(uint32_t number)
{
	struct uuid uuid = { { 0x01, 0x93, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0 } };

	for (int i = 0; i < 4; i++)
		uuid.bytes[12 + i] = (uint8_t)(number >> (24 - 8 * i));
	return uuid;
}

static struct view text_of(struct arena *arena, const char *what, uint32_t number)
{
	char *text = arena_printf(arena, "%s-%u", what, number);

	assert_non_null(text);
	return view_of(text);
}

static struct sealed make_sealed(struct arena *arena, uint32_t number, size_t body_len)
{
	struct sealed sealed = { .format = 1, .compression = 1, .plain_len = 1234, .has_key = true };
	uint8_t *body = arena_alloc(arena, body_len + 1);
	uint32_t noise = number * 2654435761u + 1;

	assert_non_null(body);
	for (size_t i = 0; i < body_len; i++) {
		noise = noise * 1664525u + 1013904223u;
		body[i] = (uint8_t)(noise >> 24);
	}
	snprintf(sealed.kek_id, sizeof(sealed.kek_id), "kek-%u", number % 7);
	memset(sealed.wrapped_key, (int)(number % 251), sizeof(sealed.wrapped_key));
	memset(sealed.commit, (int)(number % 241), sizeof(sealed.commit));
	memset(sealed.schema_sha256, (int)(number % 239), sizeof(sealed.schema_sha256));
	sealed.body = (struct view){ body, body_len };
	return sealed;
}

static void make_lists(struct arena *arena, struct checkpoint *checkpoint, uint32_t number)
{
	checkpoint->approvers_len = 2;
	checkpoint->approvers = arena_array(arena, 2, sizeof(*checkpoint->approvers));
	checkpoint->labels_len = 2;
	checkpoint->labels = arena_array(arena, 2, sizeof(*checkpoint->labels));
	assert_true(checkpoint->approvers != NULL && checkpoint->labels != NULL);
	checkpoint->approvers[0] = text_of(arena, "approver", number);
	checkpoint->approvers[1] = VIEW_LITERAL("{\"quoted\", \\ and \xC3\xA9}");
	checkpoint->labels[0] = (struct label){ VIEW_LITERAL("team"), text_of(arena, "team", number) };
	checkpoint->labels[1] = (struct label){ VIEW_LITERAL(""), VIEW_LITERAL("") };
}

struct checkpoint *make_checkpoint(struct arena *arena, uint32_t number, size_t body_len)
{
	struct checkpoint *checkpoint = arena_alloc(arena, sizeof(*checkpoint));

	assert_non_null(checkpoint);
	checkpoint->id = uuid_of(number);
	checkpoint->state = GATE_PENDING;
	checkpoint->filled = true;
	if (number % 2 == 1)
		checkpoint->id_text = VIEW_LITERAL("01930000-0000-7000-8000-0000000000AB");
	checkpoint->tenant = VIEW_LITERAL("default");
	checkpoint->session_id = text_of(arena, "session", number);
	checkpoint->gate_id = VIEW_LITERAL("deploy");
	checkpoint->agent = VIEW_LITERAL("migrator");
	checkpoint->agent_version = VIEW_LITERAL("1.2.3");
	checkpoint->requested_by = VIEW_LITERAL("usr_99");
	checkpoint->title = text_of(arena, "Title", number);
	checkpoint->suspend_seq = 1;
	checkpoint->suspended_at = T0 + number;
	checkpoint->appended_at = T0 + number + 1000;
	checkpoint->has_risk = true;
	checkpoint->risk = RISK_HIGH;
	checkpoint->required_approvals = 1;
	make_lists(arena, checkpoint, number);
	checkpoint->expires_at = T0 + 3600000000;
	checkpoint->on_expiry = ON_EXPIRY_APPROVE;
	memset(checkpoint->digest, (int)(number % 233), sizeof(checkpoint->digest));
	checkpoint->traceparent = VIEW_LITERAL("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
	checkpoint->tracestate = VIEW_LITERAL("vendor=1");
	checkpoint->sealed = make_sealed(arena, number, body_len);
	checkpoint->decided_at = TIME_NONE;
	checkpoint->version = checkpoint->appended_at;
	checkpoint->changed_at = checkpoint->appended_at;
	checkpoint->resumes_topic = VIEW_LITERAL("resumes");
	checkpoint->resumes_partition = (int32_t)(number % 2);
	return checkpoint;
}

struct decision *make_decision(struct arena *arena, uint32_t number, uint32_t checkpoint)
{
	struct decision *decision = arena_alloc(arena, sizeof(*decision));

	assert_non_null(decision);
	decision->id = uuid_of(number);
	decision->checkpoint_id = uuid_of(checkpoint);
	decision->outcome = OUTCOME_COUNTED;
	decision->kind = DECISION_APPROVE;
	decision->decided_by.issuer = VIEW_LITERAL("jira");
	decision->decided_by.subject = text_of(arena, "subject", number);
	decision->decided_by.display = VIEW_LITERAL("Ren\xC3\xA9");
	decision->decided_at = T0 + 5;
	decision->stated_reason = VIEW_LITERAL("fine");
	decision->stated_session = VIEW_LITERAL("");
	decision->source = (struct source){ VIEW_LITERAL("jira"), VIEW_LITERAL("OPS-1"), VIEW_LITERAL("d-1") };
	decision->has_digest = true;
	memset(decision->checkpoint_digest, 7, sizeof(decision->checkpoint_digest));
	memset(decision->record_digest, (int)(number % 199), sizeof(decision->record_digest));
	decision->id_text = VIEW_LITERAL("01930000-0000-7000-8000-00000000ABCD");
	decision->at = (struct coordinates){ "approvals", 3, 40 + (int64_t)number, T0 + 6 };
	return decision;
}

/* ---- batches ---- */

struct move move_of(int32_t partition, int64_t lo, int64_t hi)
{
	struct move move = {
		.topic = "in",
		.partition = partition,
		.lo = lo,
		.hi = hi,
		.has_last = true,
		.last_offset = hi - 1,
		.last_timestamp = T0,
	};

	memset(move.last_digest, 9, sizeof(move.last_digest));
	return move;
}

struct batch_loaded begin_batch(struct store *store, struct arena *arena, const struct move *move,
                                const struct uuid *ids, size_t len, const struct checkpoint *line)
{
	struct line lines[1];
	struct batch_request request = {
		.cluster_id = CLUSTER,
		.moves = move,
		.moves_len = move != NULL ? 1 : 0,
		.lines = lines,
		.lines_len = line != NULL ? 1 : 0,
		.checkpoints = ids,
		.checkpoints_len = len,
	};
	struct batch_loaded loaded;
	struct error error = { 0 };

	if (line != NULL)
		lines[0] = (struct line){ line->tenant, line->session_id, line->gate_id };
	assert_ok(store_batch_begin(store, &request, arena, &loaded, &error), error);
	return loaded;
}

void insert_checkpoint(struct store *store, struct arena *arena, const struct checkpoint *checkpoint)
{
	struct checkpoint_write row = {
		.checkpoint = checkpoint, .insert = true, .fill = true, .gate_event = true, .expiry_set = true
	};
	struct batch_write batch = { .checkpoints = &row, .checkpoints_len = 1 };
	struct error error = { 0 };

	begin_batch(store, arena, NULL, &checkpoint->id, 1, checkpoint);
	assert_ok(store_batch_write(store, &batch, &error), error);
	assert_ok(store_commit(store, &error), error);
}

void decide_checkpoint(struct store *store, struct arena *arena, uint32_t number)
{
	struct uuid id = uuid_of(number);
	struct error error = { 0 };
	struct batch_loaded loaded = begin_batch(store, arena, NULL, &id, 1, NULL);
	const struct decision *decision = make_decision(arena, 1000000 + number, number);

	assert_int_equal(loaded.checkpoints_len, 1);
	struct checkpoint *checkpoint = loaded.checkpoints[0];
	assert_int_equal(checkpoint_apply(checkpoint, EVENT_VERDICT), TRANSITION_CHANGED);
	checkpoint->has_verdict = true;
	checkpoint->verdict = VERDICT_APPROVED;
	checkpoint->decided_at = T0 + 2000;
	checkpoint->approvals = 1;
	checkpoint->version++;
	struct checkpoint_write row = {
		.checkpoint = checkpoint, .outbox = true, .gate_event = true, .expiry_clear = true
	};
	struct batch_write batch = { .checkpoints = &row,
		                         .checkpoints_len = 1,
		                         .inserts = &decision,
		                         .inserts_len = 1,
		                         .notify = STORE_ALL_SHARDS };
	assert_ok(store_batch_write(store, &batch, &error), error);
	assert_ok(store_commit(store, &error), error);
}
