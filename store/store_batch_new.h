/*
 * store_batch_new.h - the new checkpoints of a batch, and what comes with them, by COPY. For store_batch_write only.
 */
#ifndef FERMATA_STORE_STORE_BATCH_NEW_H
#define FERMATA_STORE_STORE_BATCH_NEW_H

#include "store/store_copy.h"

/* Does it get a row in expiry, in gate_outbox? There is no gate event before the suspend is known. */
bool write_to_expiry(const struct checkpoint_write *write);
bool write_to_gates(const struct checkpoint_write *write);

/* The state, the event and `filled`: all columns of a checkpoint but ledger_decisions. */
void param_write(struct params *params, const struct checkpoint_write *write);
/* The columns of its payload: checkpoint_id, day, body. */
void param_payload(struct params *params, const struct checkpoint *checkpoint);

/*
 * Copies the rows of every write that inserts into checkpoint, payload, expiry and gate_outbox, when there are enough
 * of them and the batch is not to be written singly; *ret_copied says so. RETRY with ERR_STALE: one of the rows is there already.
 */
FM_MUSTCHECK enum fate batch_copy_new(struct store *store, const struct batch_write *batch, bool *ret_copied,
                                      struct error *error);

#endif
