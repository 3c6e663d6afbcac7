/*
 * How fast rows go in and come out, beside a binary COPY of the same rows into tables of the same shape. Not a
 * test: run it by hand, FERMATA_TEST_DSN=... build/tests/bench_store [rows] [bytes of a payload] [fillfactor of checkpoint].
 */
#include "tests/integration_store/store_support.h"

#include "core/clock.h"
#include "store/store_param.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH      250
#define BATCH_MAX  ((size_t)8 * 1024 * 1024)
#define BYTES_MANY ((size_t)16 * 1024 * 1024)

static struct store *store;
static struct arena *arena;
static const struct shard shards[] = { { CLUSTER, "resumes", 0 }, { CLUSTER, "resumes", 1 } };
static const uint8_t digest[32] = { 1 };

/* CPU time of the server's process, in ms, where it runs on this machine: less noisy than the clock. */
static int64_t server_cpu_ms;

static int64_t server_cpu(const char *name)
{
	char path[64];
	unsigned long user = 0;
	unsigned long kernel = 0;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)world_backend(name));
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
		user = kernel = 0;
	fclose(file);
	return (int64_t)(user + kernel) * 1000 / sysconf(_SC_CLK_TCK);
}

static int64_t wal_bytes;

static int64_t wal_now(void)
{
	return world_number("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint");
}

static void tell(const char *what, int64_t rows, int64_t began_us)
{
	double seconds = (double)(clock_real_us() - began_us) / 1e6;
	int64_t cpu = server_cpu("bench");

	int64_t wal = wal_now();

	printf("%-28s %8.0f rows/s  (%lld in %.3f s, server %lld ms, WAL %.0f bytes a row)\n", what,
	       (double)rows / seconds, (long long)rows, seconds, (long long)(cpu - server_cpu_ms),
	       (double)(wal - wal_bytes) / (double)rows);
	server_cpu_ms = cpu;
	wal_bytes = wal;
}

/* ---- COPY of what a suspend leaves behind ---- */

static void put_params(struct buffer *out, struct params *params)
{
	uint8_t be[4];

	params_seal(params);
	be[0] = (uint8_t)(params->len >> 8);
	be[1] = (uint8_t)params->len;
	buffer_append(out, be, 2);
	for (size_t i = 0; i < params->len; i++) {
		uint32_t len = params->values[i] != NULL ? (uint32_t)params->lengths[i] : UINT32_MAX;
		for (int j = 0; j < 4; j++)
			be[j] = (uint8_t)(len >> (24 - 8 * j));
		buffer_append(out, be, 4);
		if (params->values[i] != NULL)
			buffer_append(out, params->values[i], len);
	}
}

typedef void put_row(struct params *params, const struct checkpoint *checkpoint);

static void put_checkpoint(struct params *params, const struct checkpoint *checkpoint)
{
	static const struct view fixed[] = { VIEW_LITERAL("default"), VIEW_LITERAL("deploy"),
		                                 VIEW_LITERAL("migrator") };

	param_uuid(params, &checkpoint->id);
	param_name(params, "PENDING");
	param_bool(params, true);
	param_int8(params, checkpoint->changed_at);
	param_text(params, fixed[0]);
	param_text(params, checkpoint->session_id);
	param_text(params, fixed[1]);
	param_int8(params, 1);
	param_text(params, fixed[2]);
	param_text(params, checkpoint->title);
	param_int8(params, checkpoint->suspended_at);
	param_int8(params, checkpoint->appended_at);
	param_bytes(params, (struct view){ checkpoint->digest, DIGEST_LEN });
	param_bytes(params, (struct view){ checkpoint->sealed.wrapped_key, WRAPPED_KEY_LEN });
	param_bytes(params, (struct view){ checkpoint->sealed.commit, COMMIT_LEN });
	param_day(params, checkpoint->appended_at);
	param_text(params, checkpoint->resumes_topic);
	param_int4(params, checkpoint->resumes_partition);
}

static void put_payload(struct params *params, const struct checkpoint *checkpoint)
{
	param_uuid(params, &checkpoint->id);
	param_day(params, checkpoint->appended_at);
	param_bytes(params, checkpoint->sealed.body);
}

static void copy_rows(PGconn *pg, const char *sql, put_row *put, uint32_t first, uint32_t rows, size_t body)
{
	static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
	struct params params;
	struct buffer out;
	PGresult *result = PQexec(pg, sql);

	assert_int_equal(PQresultStatus(result), PGRES_COPY_IN);
	PQclear(result);
	params_init(&params);
	buffer_init(&out, (size_t)1 << 30);
	buffer_append(&out, header, 19);
	for (uint32_t i = 0; i < rows; i++) {
		params_reset(&params);
		put(&params, make_checkpoint(arena, first + i, body));
		put_params(&out, &params);
	}
	buffer_append(&out, "\377\377", 2);
	assert_int_equal(PQputCopyData(pg, (const char *)out.data, (int)out.len), 1);
	assert_int_equal(PQputCopyEnd(pg, NULL), 1);
	result = PQgetResult(pg);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		print_error("%s", PQerrorMessage(pg));
	assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
	assert_null(PQgetResult(pg));
	buffer_done(&out);
	params_done(&params);
}

static void bench_copy(uint32_t rows, size_t body)
{
	PGconn *pg = PQconnectdb(world_dsn());
	PQclear(PQexec(pg, "SET application_name = 'bench'"));
	uint32_t batch = body * BATCH > BATCH_MAX ? (uint32_t)(BATCH_MAX / body) : BATCH;
	int64_t spent_us = 0;

	world_run("CREATE SCHEMA copy; CREATE TABLE copy.checkpoint (LIKE fermata.checkpoint INCLUDING ALL);"
	          "CREATE TABLE copy.payload (LIKE fermata.payload INCLUDING ALL)");
	for (uint32_t at = 0; at < rows; at += batch) {
		uint32_t len = rows - at < batch ? rows - at : batch;
		int64_t began_us = clock_real_us();
		PQclear(PQexec(pg, "BEGIN"));
		copy_rows(
			pg,
			"COPY copy.checkpoint (checkpoint_id, state, filled, changed_at, tenant, session_id, gate_id,"
			" suspend_seq, agent, title, suspended_at, appended_at, digest, wrapped_key, seal_commit,"
			" payload_day, own_resumes_topic, resumes_partition) FROM STDIN (FORMAT binary)",
			put_checkpoint, at, len, body);
		copy_rows(pg, "COPY copy.payload (checkpoint_id, day, body) FROM STDIN (FORMAT binary)", put_payload,
		          at, len, body);
		PQclear(PQexec(pg, "COMMIT"));
		spent_us += clock_real_us() - began_us;
		arena_reset(arena);
	}
	tell("binary COPY, same batches", rows, clock_real_us() - spent_us);
	PQfinish(pg);
}

/* ---- what the store does ---- */

static void bench_suspends(uint32_t rows, size_t body)
{
	uint32_t batch = body * BATCH > BATCH_MAX ? (uint32_t)(BATCH_MAX / body) : BATCH;
	struct checkpoint_write writes[BATCH];
	struct uuid ids[BATCH];
	struct line lines[BATCH];
	int64_t spent_us = 0;
	int64_t at_write_us = 0;
	struct error error = { 0 };

	for (uint32_t at = 0; at < rows; at += batch) {
		struct move move = move_of(0, at == 0 ? POSITION_NEW : (int64_t)at, (int64_t)at + batch);
		struct batch_request request = {
			.cluster_id = CLUSTER, .moves = &move, .moves_len = 1, .lines = lines, .checkpoints = ids
		};
		struct batch_write write = { .checkpoints = writes };
		struct batch_loaded loaded;
		memset(writes, 0, sizeof(writes));
		for (uint32_t i = 0; i < batch && at + i < rows; i++) {
			struct checkpoint *made = make_checkpoint(arena, at + i, body);
			snprintf(made->sealed.kek_id, sizeof(made->sealed.kek_id), "k1-20261130-d849d82c");
			memset(made->sealed.schema_sha256, 1, sizeof(made->sealed.schema_sha256));
			writes[i] = (struct checkpoint_write){
				.checkpoint = made, .insert = true, .fill = true, .gate_event = true, .expiry_set = true
			};
			ids[i] = made->id;
			lines[i] = (struct line){ made->tenant, made->session_id, made->gate_id };
			request.lines_len = request.checkpoints_len = write.checkpoints_len = i + 1;
		}
		int64_t began_us = clock_real_us();
		assert_ok(store_batch_begin(store, &request, arena, &loaded, &error), error);
		int64_t write_us = clock_real_us();
		assert_ok(store_batch_write(store, &write, &error), error);
		at_write_us += clock_real_us() - write_us;
		assert_ok(store_commit(store, &error), error);
		spent_us += clock_real_us() - began_us;
		arena_reset(arena);
	}
	tell("suspends, whole batches", rows, clock_real_us() - spent_us);
	tell("  of which: writing", rows, clock_real_us() - at_write_us);
}

static void bench_decisions(uint32_t rows)
{
	struct checkpoint_write writes[BATCH];
	const struct decision *inserts[BATCH];
	struct uuid ids[BATCH];
	int64_t began_us = clock_real_us();
	struct error error = { 0 };

	for (uint32_t at = 0; at < rows; at += BATCH) {
		struct move move = move_of(1, at == 0 ? POSITION_NEW : (int64_t)at, (int64_t)at + BATCH);
		struct batch_request request = {
			.cluster_id = CLUSTER, .moves = &move, .moves_len = 1, .checkpoints = ids
		};
		struct batch_write write = { .checkpoints = writes, .inserts = inserts, .notify = STORE_ALL_SHARDS };
		struct batch_loaded loaded;
		for (uint32_t i = 0; i < BATCH && at + i < rows; i++) {
			inserts[i] = make_decision(arena, 10000000 + at + i, at + i);
			ids[i] = uuid_of(at + i);
			request.checkpoints_len = write.inserts_len = i + 1;
		}
		assert_ok(store_batch_begin(store, &request, arena, &loaded, &error), error);
		for (size_t i = 0; i < loaded.checkpoints_len; i++) {
			loaded.checkpoints[i]->state = GATE_DECIDED;
			loaded.checkpoints[i]->version++;
			writes[i] = (struct checkpoint_write){
				.checkpoint = loaded.checkpoints[i], .outbox = true, .gate_event = true, .expiry_clear = true
			};
		}
		write.checkpoints_len = loaded.checkpoints_len;
		assert_ok(store_batch_write(store, &write, &error), error);
		assert_ok(store_commit(store, &error), error);
		arena_reset(arena);
	}
	tell("decisions, whole batches", rows, began_us);
}

static void bench_relay(uint32_t rows)
{
	static struct gate_sent sent[500];
	int64_t take_us = 0;
	int64_t mark_us = 0;
	uint32_t done = 0;
	struct error error = { 0 };

	for (int64_t next = 0; done < rows;) {
		for (size_t i = 0; i < 2; i++) {
			struct relay_take take;
			int64_t began_us = clock_real_us();
			assert_ok(store_relay_take(store, &shards[i],
			                           &(struct relay_want){ .routes_digest = digest,
			                                                 .rows = 500,
			                                                 .bytes = BYTES_MANY,
			                                                 .with_action = true,
			                                                 .with_decided = true },
			                           arena, &take, &error),
			          error);
			take_us += clock_real_us() - began_us;
			for (size_t j = 0; j < take.rows_len; j++)
				sent[j] = (struct gate_sent){ take.rows[j].checkpoint->id, T0 * 2,
					                          take.rows[j].untold ? WAITING_NONE : WAITING_GOES };
			began_us = clock_real_us();
			assert_ok(
				store_relay_mark(store, &shards[i], next, next + 1, sent, take.rows_len, NULL, 0, T0, &error),
				error);
			mark_us += clock_real_us() - began_us;
			done += (uint32_t)take.rows_len;
			arena_reset(arena);
		}
		next++;
	}
	tell("relay, taking", rows, clock_real_us() - take_us);
	tell("relay, marking", rows, clock_real_us() - mark_us);
}

/* One decision and its resume at a time, as on an idle system. */
static void bench_alone(uint32_t first)
{
	int64_t began_us = clock_real_us();
	enum { TIMES = 200 };

	for (uint32_t i = 0; i < TIMES; i++)
		insert_checkpoint(store, arena, make_checkpoint(arena, first + i, 2048));
	tell("a suspend alone", TIMES, began_us);
	began_us = clock_real_us();
	for (uint32_t i = 0; i < TIMES; i++)
		decide_checkpoint(store, arena, first + i);
	tell("a decision alone", TIMES, began_us);
}

int main(int argc, char **argv)
{
	uint32_t rows = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
	size_t body = argc > 2 ? strtoul(argv[2], NULL, 10) : 2048;
	struct error error = { 0 };
	size_t fresh;

	if (!world_begin(false))
		return SKIPPED;
	printf("%u rows, payloads of %zu bytes, batches of at most %d rows or 8 MB\n", rows, body, BATCH);
	arena = arena_new((size_t)256 * 1024 * 1024);
	store = open_store("bench");
	bench_copy(rows, body);
	server_cpu_ms = 0;
	if (argc > 3) {
		char sql[96];
		snprintf(sql, sizeof(sql), "ALTER TABLE fermata.checkpoint SET (fillfactor = %ld)",
		         strtol(argv[3], NULL, 10));
		world_run(sql);
	}
	world_run("CHECKPOINT");
	wal_bytes = wal_now();
	world_run("INSERT INTO fermata.resumes_topic VALUES ('resumes', 2)");
	for (size_t i = 0; i < 2; i++)
		assert_ok(store_ledger_advance(store, &shards[i], LEDGER_NONE, 0, NO_DOUBT, digest, NULL, 0, &fresh,
		                               &error),
		          error);
	assert_ok(store_payload_days(store, T0, 2, &error), error);
	bench_suspends(rows, body);
	bench_decisions(rows);
	bench_relay(rows);
	bench_alone(rows + 1000000);
	store_close(store);
	world_wait("SELECT (count(*) = 0)::int FROM pg_stat_activity WHERE application_name = 'bench'");
	printf("updates of checkpoints that were HOT: %lld of %lld; table %lld kB, its indexes %lld kB\n",
	       (long long)world_number(
			   "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'fermata.checkpoint'::regclass"),
	       (long long)world_number(
			   "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'fermata.checkpoint'::regclass"),
	       (long long)world_number("SELECT pg_table_size('fermata.checkpoint') / 1024"),
	       (long long)world_number("SELECT pg_indexes_size('fermata.checkpoint') / 1024"));
	arena_free(arena);
	return world_end(0);
}
