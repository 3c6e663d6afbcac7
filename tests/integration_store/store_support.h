/* store_support.h - a database of its own for each test program, and rows to put into it. */
#ifndef FERMATA_TESTS_INTEGRATION_STORE_STORE_SUPPORT_H
#define FERMATA_TESTS_INTEGRATION_STORE_STORE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store.h"

#define CLUSTER "cluster-1"
#define SKIPPED 77                        /* the exit code that CTest takes for "skipped" */
#define T0      INT64_C(1796025600000000) /* 2026-11-30, us */

/* Makes a database and migrates it, unless `empty`. Returns false, having said so, when there is no server. */
bool world_begin(bool empty);
/* Takes it away. Returns what it is given: how many tests failed, for main to end with. */
int world_end(int failed);
/* The end of a main: runs the tests beside a database that is migrated, or says that there is no server. */
#define run_in_world(tests)                                                                                  \
	(world_begin(false) ? world_end(cmocka_run_group_tests(tests, NULL, NULL)) : SKIPPED)
/* The connection string of the database (or of the one that another role sees). */
const char *world_dsn(void);
char *world_dsn_as(const char *role, const char *password); /* to be freed */

/* Runs statements, or asks for one number or text, on a connection of the test's own. A failure fails the test. */
void world_run(const char *sql);
int64_t world_number(const char *sql);
/* The session that the store of that application_name has; 0 when there is none. */
int64_t world_backend(const char *name);
/* Ends the session of that application_name, and waits until it is gone. */
void world_kill(const char *name);
/* Waits at most 10 s until the statement gives another number than 0. */
void world_wait(const char *sql);

struct store *open_store(const char *name);
struct store *open_unprepared(const char *name);
/* As the commands have it: not steady. */
struct store *open_asking(const char *name);

/* An id that is made of a number. */
struct uuid uuid_of(uint32_t number);
/* A filled checkpoint, PENDING, with every field set, as intake makes it; all out of the arena. */
struct checkpoint *make_checkpoint(struct arena *arena, uint32_t number, size_t body_len);
/* A decision on it, counted, with every field set but edits. */
struct decision *make_decision(struct arena *arena, uint32_t number, uint32_t checkpoint);

/* The moves of a test: partition `partition` of "in" from lo to hi. */
struct move move_of(int32_t partition, int64_t lo, int64_t hi);

/* Begins a batch on those ids (and the line of `line`, when it is not NULL). Fails the test unless it works. */
struct batch_loaded begin_batch(struct store *store, struct arena *arena, const struct move *move,
                                const struct uuid *ids, size_t len, const struct checkpoint *line);
/* Inserts one filled checkpoint in a batch of its own, with all its work lists, and commits. */
void insert_checkpoint(struct store *store, struct arena *arena, const struct checkpoint *checkpoint);
/* Makes it DECIDED, APPROVED, by one decision, with an outbox row, and commits. */
void decide_checkpoint(struct store *store, struct arena *arena, uint32_t number);

#define assert_fate(wanted, expression, error)                                                               \
	do {                                                                                                     \
		enum fate fate_now = (expression);                                                                   \
		if (fate_now != (wanted))                                                                            \
			print_error("fate %d, code %s, native %s: %s\n", (int)fate_now, error_code_name((error).code),   \
			            (error).native, (error).message);                                                    \
		assert_int_equal(fate_now, wanted);                                                                  \
	} while (0)

#define assert_ok(expression, error) assert_fate(FATE_OK, expression, error)

#endif
