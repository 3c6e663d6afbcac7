/* quarantine_support.h - checkpoints in quarantine and in doubt, what is to be said of their rows, and deeds beside relays. */
#ifndef FERMATA_TESTS_INTEGRATION_STORE_QUARANTINE_SUPPORT_H
#define FERMATA_TESTS_INTEGRATION_STORE_QUARANTINE_SUPPORT_H

#include <pthread.h>

#include "store/store_way_out.h"
#include "tests/integration_store/store_fixture.h"

#define NOW    (T0 + 7200000000)
#define BROKEN "its tag does not fit its bytes"

extern struct error error;

int begin_quarantine(void **state);

/* Even numbers are of shard 0. One is decided, the other open; BROKEN is why both are QUARANTINED. */
void make_decided(uint32_t number);
void make_open(uint32_t number);
void quarantine(uint32_t number, const char *verdict);
/* The same, IN_DOUBT. */
void make_doubted(uint32_t number);

/* An expression about the row of a checkpoint, c: as a number; is it true? */
int64_t number_of(uint32_t number, const char *what);
void assert_row(uint32_t number, const char *what);
#define IN_OUTBOX "EXISTS (SELECT FROM fermata.outbox o WHERE o.checkpoint_id = c.checkpoint_id)"
#define IN_EXPIRY "EXISTS (SELECT FROM fermata.expiry e WHERE e.checkpoint_id = c.checkpoint_id)"
#define TOLD                                                                                                 \
	"EXISTS (SELECT FROM fermata.gate_outbox g WHERE g.checkpoint_id = c.checkpoint_id AND"                  \
	" g.version = c.version)"
#define AUDIT_ROWS "(SELECT count(*) FROM fermata.audit a WHERE a.checkpoint_id = c.checkpoint_id)"

bool settles_never(void *context, struct view tenant, struct view agent);
struct operator_deed deed_of(uint32_t number);

/* The ledger of shard 0, at 10, and what a relay would take of it. */
void make_ledger(void);
struct relay_take take_rows(void);

/* ---- at once ---- */

typedef enum fate way_to_test(struct store *from, const struct operator_deed *deed, struct arena *into,
                              struct deed_result *ret_result, struct error *ret_error);

/* A deed on a thread and a connection of its own, whose application_name is "actor". */
struct acting {
	pthread_t thread;
	struct store *store;
	struct arena *arena;
	struct operator_deed deed;
	way_to_test *way;
	struct deed_result result;
	enum fate fate;
	struct error error;
};

void *act(void *acting);
void begin_acting(struct acting *acting);
void start_acting(struct acting *acting, uint32_t number, way_to_test *way);
void join_acting(struct acting *acting);
void finish_acting(struct acting *acting, bool done);

/* R2 as a relay makes it, from 10 to 12, on a thread and a connection of its own: "relay". */
struct marking {
	pthread_t thread;
	struct store *store;
	struct ledger_found found;
	enum fate fate;
	struct error error;
};

void start_marking(struct marking *marking, uint32_t number);
void finish_marking(struct marking *marking);

/* Waits until the session of that name waits for a lock of another one. */
void wait_for_lock(const char *name);

/* A way out against R2 that finds the resume: either may be first, and nothing is published again. first and second are
 * rows to lead out; the state in which they stay where R2 was first is RESUMED. */
void race_with_the_ledger(uint32_t first, uint32_t second, way_to_test *way);

#endif
