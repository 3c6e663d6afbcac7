/* quarantine_support.h - checkpoints in quarantine, and what is to be said of their rows. */
#ifndef FERMATA_TESTS_INTEGRATION_STORE_QUARANTINE_SUPPORT_H
#define FERMATA_TESTS_INTEGRATION_STORE_QUARANTINE_SUPPORT_H

#include "store/store_quarantine.h"
#include "tests/integration_store/store_support.h"

#define NOW    (T0 + 7200000000)
#define BROKEN "its tag does not fit its bytes"

/* Of one test: begin_quarantine empties the tables and makes them. */
extern struct arena *arena;
extern struct store *store;
extern struct error error;

int begin_quarantine(void **state);
int end_quarantine(void **state);

/* Even numbers are of shard 0. One is decided, the other open; BROKEN is why both are QUARANTINED. */
void make_decided(uint32_t number);
void make_open(uint32_t number);
void quarantine(uint32_t number, const char *verdict);

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

#endif
