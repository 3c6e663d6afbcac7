/* test_learn_none.h - a worker that has nothing to learn: every record is in a schema of today. */
#ifndef FERMATA_TESTS_UNIT_TEST_LEARN_NONE_H
#define FERMATA_TESTS_UNIT_TEST_LEARN_NONE_H

#include "schemas/catalog.h"
#include "worker/learn.h"

bool learn_more(struct worker *worker, struct store *store, const struct schema_want *want, unsigned *tries,
                enum fate *fate, struct error *error)
{
	(void)worker;
	(void)store;
	(void)want;
	(void)tries;
	(void)fate;
	(void)error;
	return false;
}

bool learn_is_kept(const struct worker *worker, const uint8_t sha256[32])
{
	(void)worker;
	(void)sha256;
	return false;
}

void learn_ahead(struct worker *worker, const struct app_state *state)
{
	(void)worker;
	(void)state;
}

static uint64_t news; /* grows when there is some */

uint64_t learn_count(const struct worker *worker)
{
	(void)worker;
	return news;
}

#endif
