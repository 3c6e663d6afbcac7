#include "tests/integration_store/store_fixture.h"

struct store *store;
struct arena *arena;
const struct shard shard = { CLUSTER, "resumes", 0 };
const uint8_t routes[32] = { 1 };

int begin_test(struct store *opened, size_t arena_max)
{
	store = opened;
	arena = arena_new(arena_max);
	assert_non_null(arena);
	return 0;
}

int end_test(void **state)
{
	(void)state;
	store_close(store);
	arena_free(arena);
	world_run("TRUNCATE fermata.checkpoint, fermata.payload, fermata.decision, fermata.outbox,"
	          " fermata.gate_outbox, fermata.expiry, fermata.unclaimed, fermata.kafka_offset,"
	          " fermata.ledger_offset, fermata.resumes_topic, fermata.installation, fermata.horizon,"
	          " fermata.schema_text, fermata.registry_schema");
	world_run("ALTER TABLE fermata.audit DISABLE TRIGGER audit_is_kept; DELETE FROM fermata.audit;"
	          "ALTER TABLE fermata.audit ENABLE TRIGGER audit_is_kept");
	return 0;
}

struct checkpoint *load(uint32_t number)
{
	struct uuid id = uuid_of(number);
	struct batch_loaded loaded = begin_batch(store, arena, NULL, &id, 1, NULL);

	store_rollback(store);
	assert_int_equal(loaded.checkpoints_len, 1);
	return loaded.checkpoints[0];
}
