/* Plans are made once, while the tables are empty and were analysed so; what they read must not grow with the
 * tables all the same. */
#include "tests/integration_store/store_support.h"

#include <stdio.h>
#include <string.h>

#include "store/store_retention.h"

#define ROWS       20000
#define BATCH      200
#define WARM       12 /* PostgreSQL settles for a generic plan after five runs */
#define FETCH_MAX  INT64_C(40000)
#define BYTES_MANY ((size_t)64 * 1024 * 1024)

static struct store *store;
static struct arena *arena;
static const struct shard shard = { CLUSTER, "resumes", 0 };
static const uint8_t digest[32] = { 1 };
static int64_t ledger;

/* One round of everything that a worker does, on ids that are there or not. */
static void batch_round(uint32_t first)
{
	struct uuid ids[BATCH];
	struct line lines[BATCH];
	struct batch_request request = { .cluster_id = CLUSTER,
		                             .lines = lines,
		                             .lines_len = BATCH,
		                             .checkpoints = ids,
		                             .checkpoints_len = BATCH,
		                             .decisions = ids,
		                             .decisions_len = BATCH,
		                             .count_unclaimed = true };
	struct checkpoint_write rows[BATCH];
	struct batch_write write = { .checkpoints = rows };
	struct batch_loaded loaded;
	struct error error = { 0 };

	memset(rows, 0, sizeof(rows));
	for (uint32_t i = 0; i < BATCH; i++) {
		const struct checkpoint *made = make_checkpoint(arena, first + i, 1);
		ids[i] = made->id;
		lines[i] = (struct line){ made->tenant, made->session_id, made->gate_id };
	}
	assert_ok(store_batch_begin(store, &request, arena, &loaded, &error), error);
	for (size_t i = 0; i < loaded.checkpoints_len; i++) {
		rows[i] = (struct checkpoint_write){ .checkpoint = loaded.checkpoints[i],
			                                 .expiry_clear = true,
			                                 .unclaimed_clear = true };
		write.checkpoints_len++;
	}
	assert_ok(store_batch_write(store, &write, &error), error);
	assert_ok(store_commit(store, &error), error);
}

static void relay_round(void)
{
	struct relay_take take;
	struct error error = { 0 };
	struct gate_sent sent[BATCH];
	struct ledger_found found[BATCH];
	size_t fresh;

	assert_ok(store_relay_take(
				  store, &shard,
				  &(struct relay_want){
					  .routes_digest = digest, .rows = BATCH, .bytes = BYTES_MANY, .with_action = true },
				  arena, &take, &error),
	          error);
	for (size_t i = 0; i < take.rows_len; i++) {
		sent[i] = (struct gate_sent){ take.rows[i].checkpoint->id, T0, WAITING_GOES };
		found[i] = (struct ledger_found){ sent[i].checkpoint_id, VERDICT_APPROVED, NULL, 0, T0, 0 };
	}
	assert_ok(
		store_relay_mark(store, &shard, ledger, ledger, sent, take.rows_len, sent, take.rows_len, T0, &error),
		error);
	assert_ok(store_ledger_advance(store, &shard, ledger, ledger, NO_DOUBT, digest, found, take.rows_len,
	                               &fresh, &error),
	          error);
}

static void reaper_round(void)
{
	struct error error = { 0 };
	struct due *due;
	size_t len;

	assert_ok(store_expiry_claim(store, T0, 0, 1, BATCH, arena, &due, &len, &error), error);
	assert_ok(store_commit(store, &error), error);
	assert_ok(store_unclaimed_sweep(store, 1, BATCH, &len, &error), error);
}

/* A page of each of the two sweeps of what is settled. */
static void retention_round(void)
{
	struct kafka_low low = { "suspends", 0, INT64_MAX };
	struct payload_page payloads = {
		.day_us = T0, .settled_before = T0 * 2, .now = T0 * 2, .rows = BATCH, .bytes = BYTES_MANY
	};
	struct purge_page rows = { .cluster_id = CLUSTER,
		                       .lows = &low,
		                       .lows_len = 1,
		                       .settled_before = T0 * 2,
		                       .from_at = INT64_MIN,
		                       .until_at = INT64_MAX,
		                       .rows = BATCH,
		                       .now = T0 * 2 };
	struct payload_swept swept;
	struct purge_swept purged;
	struct error error = { 0 };

	assert_ok(store_payload_sweep(store, &payloads, arena, &swept, &error), error);
	payloads.move = true;
	assert_ok(store_payload_sweep(store, &payloads, arena, &swept, &error), error);
	assert_ok(store_rows_purge(store, &rows, arena, &purged, &error), error);
}

static void one_round(uint32_t first)
{
	batch_round(first);
	relay_round();
	reaper_round();
	retention_round();
	arena_reset(arena);
}

static void fill_tables(void)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
	         "INSERT INTO fermata.checkpoint (checkpoint_id, state, filled, changed_at, tenant, session_id, "
	         "gate_id,"
	         " suspend_seq, agent, suspended_at, appended_at, digest, payload_day, own_resumes_topic, "
	         "resumes_partition)"
	         " SELECT ('01930000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'DECIDED', true, 1, "
	         "'default',"
	         " 'session-' || n, 'deploy', 1, 'agent', n, n, '\\x00', '2026-11-30', 'resumes', 0"
	         " FROM generate_series(0, %d) n",
	         ROWS - 1);
	world_run(sql);
	world_run(
		"INSERT INTO fermata.payload SELECT checkpoint_id, payload_day, '\\x00' FROM fermata.checkpoint");
	world_run("INSERT INTO fermata.outbox SELECT checkpoint_id, 'resumes', 0 FROM fermata.checkpoint");
	world_run(
		"INSERT INTO fermata.gate_outbox SELECT checkpoint_id, 'resumes', 0, 1 FROM fermata.checkpoint");
	world_run("INSERT INTO fermata.expiry SELECT checkpoint_id, 5, NULL FROM fermata.checkpoint");
	world_run("INSERT INTO fermata.decision (decision_id, checkpoint_id, outcome, decision, issuer, subject, "
	          "display,"
	          " decided_at, stated_session, source_system, source_ref, source_delivery, record_digest, "
	          "id_text, topic,"
	          " partition, \"offset\", appended_at) SELECT gen_random_uuid(), checkpoint_id, 'counted',"
	          " 'APPROVE', '', '', '', 0, '', '', '', '', '', '', '', 0, 0, 0 FROM fermata.checkpoint");
}

static void what_is_read_does_not_grow_with_the_tables(void **state)
{
	(void)state;
	struct error error = { 0 };
	size_t fresh;

	arena = arena_new((size_t)64 * 1024 * 1024);
	store = open_store("plan");
	world_run("INSERT INTO fermata.resumes_topic VALUES ('resumes', 1)");
	assert_ok(
		store_ledger_advance(store, &shard, LEDGER_NONE, ledger, NO_DOUBT, digest, NULL, 0, &fresh, &error),
		error);
	world_run("VACUUM ANALYZE");
	for (int i = 0; i < WARM; i++)
		one_round(1);
	fill_tables();
	world_run("SELECT pg_stat_force_next_flush()");
	world_run("SELECT pg_stat_reset()");
	for (uint32_t i = 0; i < 3; i++)
		one_round(1000 * i);
	store_close(store); /* its figures are told when it ends */
	arena_free(arena);
	world_wait("SELECT (count(*) = 0)::int FROM pg_stat_activity WHERE application_name = 'plan'");
	int64_t fetched = world_number("SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))"
	                               " FROM pg_stat_user_tables");
	print_message("3 rounds of %d beside tables of %d rows read %d rows\n", BATCH, ROWS, (int)fetched);
	assert_true(fetched > 0);
	assert_true(fetched < FETCH_MAX);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint WHERE state = 'RESUMED'"),
	                 3 * BATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_does_not_grow_with_the_tables),
	};

	return run_in_world(tests);
}
