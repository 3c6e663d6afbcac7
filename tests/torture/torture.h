/*
 * torture.h - a unit test program, run again for each allocation that our code makes in it, with that one
 * failing. What the two halves (the allocator's face and the runner) know of each other.
 */
#ifndef FERMATA_TESTS_TORTURE_TORTURE_H
#define FERMATA_TESTS_TORTURE_TORTURE_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TORTURE_DEPTH 96     /* frames of a stack that are looked at */
#define TORTURE_MOST  200000 /* allocations of one test: later ones are left alone */

enum torture_mode {
	TORTURE_COUNT, /* none fails */
	TORTURE_ONCE,  /* the one with the number fails */
	TORTURE_ON,    /* that one and every later one */
};

/* Where the children of the runner leave what they saw: shared memory. */
struct torture_seen {
	uint64_t count;    /* allocations of ours so far */
	uint64_t spared;   /* allocations on our behalf in libraries that are spared */
	uint64_t failed;   /* how many were made to fail */
	uint64_t errors;   /* errors that were filled since the first of them */
	uint32_t code;     /* the enum error_code of the last of these */
	char message[256]; /* and its text */
	int frames_len;
	void *frames[TORTURE_DEPTH]; /* the stack of the first that failed */
	uint64_t stacks[TORTURE_MOST];
};

/* Once, before anything else: finds the code of the libraries that are spared. seen is shared memory. */
void torture_prepare(struct torture_seen *seen);
/* From here on allocations of ours are counted, and fail as mode says from number (the first is 0). */
void torture_arm(enum torture_mode mode, uint64_t number);
void torture_disarm(void);

/* The ends of the runner's own code: what is linked before torture_low is the test, what comes after
 * torture_high is ours. */
void torture_low(void);
void torture_high(void);

#endif
