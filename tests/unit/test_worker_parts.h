/* test_worker_parts.h - what a worker's parts say of themselves, for tests that have no worker. */
#ifndef FERMATA_TESTS_UNIT_TEST_WORKER_PARTS_H
#define FERMATA_TESTS_UNIT_TEST_WORKER_PARTS_H

#include "worker/worker.h"

void worker_part_ok(struct worker *worker, enum worker_part part, bool ok)
{
	(void)worker;
	(void)part;
	(void)ok;
}

void worker_part_waits(struct worker *worker, enum worker_part part, const struct error *error)
{
	(void)worker;
	(void)part;
	(void)error;
}

#endif
