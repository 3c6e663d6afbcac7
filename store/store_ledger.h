/* store_ledger.h - what moves the position of a ledger, for all that writes beside it. Inside of the store only. */
#ifndef FERMATA_STORE_STORE_LEDGER_H
#define FERMATA_STORE_STORE_LEDGER_H

#include "core/failpoint.h"
#include "store/store_connection.h"

extern const struct statement ledger_outbox_delete; /* $1: ids of checkpoints */

/* Sends the compare-and-set from mine to next; *add_count is 1 more where it found what it should. */
void ledger_move_send(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                      int64_t *add_count);
/* After a flush, which ended as `fate` says: RETRY (ERR_STALE) unless moved is 1, else commits; place lies before that. What
 * fails is rolled back. */
FM_MUSTCHECK enum fate ledger_commit_moved(struct store *store, enum fate fate, int64_t moved,
                                           enum failpoint place, struct error *error);

#endif
