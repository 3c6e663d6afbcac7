/* store_fixture.h - what a test of one store has: the store, an arena, and tables that nobody has filled yet. */
#ifndef FERMATA_TESTS_INTEGRATION_STORE_STORE_FIXTURE_H
#define FERMATA_TESTS_INTEGRATION_STORE_STORE_FIXTURE_H

#include "tests/integration_store/store_support.h"

extern struct store *store;
extern struct arena *arena;
extern const struct shard shard; /* 0 of "resumes" */
extern const uint8_t routes[32]; /* a digest of routes */

/* A set-up's: keeps the store that was opened for the test, and makes the arena. Returns 0. */
int begin_test(struct store *opened, size_t arena_max);
/* A teardown, or what one ends with: closes both, and empties every table that tests fill. */
int end_test(void **state);

/* The checkpoint as a batch loads it. */
struct checkpoint *load(uint32_t number);

#endif
