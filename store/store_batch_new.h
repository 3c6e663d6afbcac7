/*
 * store_batch_new.h - what is new of a batch, by COPY where there is much of it: checkpoints and what comes with them,
 * decisions, rows of the outbox. For store_batch_write only.
 */
#ifndef FERMATA_STORE_STORE_BATCH_NEW_H
#define FERMATA_STORE_STORE_BATCH_NEW_H

#include "store/store_copy.h"

/* Does it get a row in expiry, in gate_outbox, in the outbox? There is no gate event before the suspend is known. */
bool write_to_expiry(const struct checkpoint_write *write);
bool write_to_gates(const struct checkpoint_write *write);
bool write_to_outbox(const struct checkpoint_write *write);

/* The state, the event and `filled`: all columns of a checkpoint but ledger_decisions. */
void param_write(struct params *params, const struct checkpoint_write *write);
/* The columns of its payload: checkpoint_id, day, body, tail. */
void param_payload(struct params *params, const struct checkpoint *checkpoint);
/* Those of its row in the outbox: checkpoint_id, topic, partition. */
void param_outbox(struct params *params, const struct checkpoint *checkpoint);

/* What was copied, all of it, and needs no statement any more. */
struct batch_copied {
	bool checkpoints; /* that are new, with their payloads, expiry and gate events */
	bool decisions;
	bool outbox;
};

/* Copies what there is enough of, unless the batch is to be written singly. RETRY with ERR_STALE: one of the rows is
 * there already. */
FM_MUSTCHECK enum fate batch_copy_new(struct store *store, const struct batch_write *batch,
                                      struct batch_copied *ret_copied, struct error *error);

#endif
