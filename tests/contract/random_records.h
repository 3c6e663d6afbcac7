/*
 * random_records.h - records with anything in them that the contract allows: U+0000 where it is legal,
 * empty maps, long texts, extreme numbers, NaN. For tests: the same seed gives the same records.
 */
#ifndef FERMATA_TESTS_CONTRACT_RANDOM_RECORDS_H
#define FERMATA_TESTS_CONTRACT_RANDOM_RECORDS_H

#include "core/records.h"

struct dice {
	uint64_t state;
	struct arena *arena;
};

/* 0 to below - 1. */
uint64_t roll_below(struct dice *dice, uint64_t below);

void random_suspend(struct dice *dice, struct suspend_event *ret_event);
void random_approval(struct dice *dice, struct approval_event *ret_event);
void random_resume(struct dice *dice, struct resume_event *ret_event);
void random_gate(struct dice *dice, struct gate_event *ret_event);
void random_edits(struct dice *dice, struct edits *ret_edits);

#endif
