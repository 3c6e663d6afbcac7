/* relay_support.h - a topic of two shards: their ledgers, what is decided in them, and what the relay of one takes. */
#ifndef FERMATA_TESTS_INTEGRATION_STORE_RELAY_SUPPORT_H
#define FERMATA_TESTS_INTEGRATION_STORE_RELAY_SUPPORT_H

#include "tests/integration_store/store_fixture.h"

#define BYTES_MANY ((size_t)64 * 1024 * 1024)

extern const struct shard even;
extern const struct shard odd;
extern const uint8_t today[32]; /* the digest of the routes */

int begin_relay(void **state);

/* R2 on the store of the test, under today's routes. Returns how many resumes were new to it. */
size_t advance(const struct shard *of, int64_t mine, int64_t next, const struct ledger_found *found,
               size_t len);
/* The even one up to 10, the odd one up to 20. */
void both_ledgers_are_read(void);
/* R3 of the even shard. */
struct relay_take take_even(size_t rows, size_t bytes, bool with_action);
/* Inserts filled checkpoints with these numbers (first, first + 2, ...) and decides them; even numbers are in the even
 * shard. */
void decided(uint32_t first, uint32_t count);

#endif
