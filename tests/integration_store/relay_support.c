#include "tests/integration_store/relay_support.h"

const struct shard even = { CLUSTER, "resumes", 0 };
const struct shard odd = { CLUSTER, "resumes", 1 };
const uint8_t today[32] = { 1, 2, 3 };

int begin_relay(void **state)
{
	(void)state;
	world_run("INSERT INTO fermata.resumes_topic VALUES ('resumes', 2)");
	return begin_test(open_store("relay"), (size_t)128 * 1024 * 1024);
}

size_t advance(const struct shard *of, int64_t mine, int64_t next, const struct ledger_found *found,
               size_t len)
{
	struct error error = { 0 };
	size_t fresh = 99;

	assert_ok(store_ledger_advance(store, of, mine, next, NO_DOUBT, today, found, len, &fresh, &error),
	          error);
	return fresh;
}

void both_ledgers_are_read(void)
{
	advance(&even, LEDGER_NONE, 10, NULL, 0);
	advance(&odd, LEDGER_NONE, 20, NULL, 0);
}

struct relay_take take_even(size_t rows, size_t bytes, bool with_action)
{
	struct relay_take take;
	struct error error = { 0 };

	assert_ok(store_relay_take(store, &even,
	                           &(struct relay_want){ .routes_digest = today,
	                                                 .rows = rows,
	                                                 .bytes = bytes,
	                                                 .with_action = with_action,
	                                                 .with_decided = true },
	                           arena, &take, &error),
	          error);
	return take;
}

void decided(uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		insert_checkpoint(store, arena, make_checkpoint(arena, first + 2 * i, 1000));
		decide_checkpoint(store, arena, first + 2 * i);
	}
}
