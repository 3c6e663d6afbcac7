/*
 * store_redrive.h - which dead letters were redriven: each has a row in fermata.audit, written in the transaction in
 * which nobody else redrives.
 */
#ifndef FERMATA_STORE_STORE_REDRIVE_H
#define FERMATA_STORE_STORE_REDRIVE_H

#include "store/store.h"

#define AUDIT_REDRIVE "dead-letters.redrive"

/* The origin of a letter that was redriven ("TOPIC:PARTITION:OFFSET@TIMESTAMP", without blanks); gone when this
 * returns. A failure ends the reading. */
typedef enum fate store_each_redriven(void *context, struct view origin, struct error *error);

/* Calls each for every row with a number above *seq, which then is the highest number. */
FM_MUSTCHECK enum fate store_redriven(struct store *store, int64_t *seq, store_each_redriven *each,
                                      void *context, struct error *error);

/* Begins a transaction in which nobody else redrives (it waits for who does), and then as store_redriven: what came
 * since. It stays open until store_commit or store_rollback, and the server ends it after 30 s. After a failure it is
 * rolled back. */
FM_MUSTCHECK enum fate store_redrive_begin(struct store *store, int64_t *seq, store_each_redriven *each,
                                           void *context, struct error *error);

struct redriven {
	struct view origin;
	struct view topic; /* where to */
};

/* Adds a row for each to the transaction of store_redrive_begin. who: for the record. */
FM_MUSTCHECK enum fate store_redrive_mark(struct store *store, struct view who, int64_t now,
                                          const struct redriven *letters, size_t len, struct error *error);

#endif
