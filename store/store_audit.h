/*
 * store_audit.h - what operators did to checkpoints (fermata.audit): in clear, without any content of a session. Rows
 * are only ever added, in the transaction of the deed itself.
 */
#ifndef FERMATA_STORE_STORE_AUDIT_H
#define FERMATA_STORE_STORE_AUDIT_H

#include "store/store.h"

#define AUDIT_QUARANTINE_RETRY "quarantine.retry"
#define AUDIT_QUARANTINE_DROP  "quarantine.drop"
#define AUDIT_DOUBT_RESUME     "in_doubt.resume"
#define AUDIT_DOUBT_DROP       "in_doubt.drop"
#define AUDIT_ERASE            "erase"
#define AUDIT_LET_THROUGH      "intake.let_through"

struct audit_entry {
	int64_t seq; /* given by the database */
	int64_t at;  /* us */
	struct view who;
	struct view what; /* AUDIT_... */
	bool has_checkpoint;
	struct uuid checkpoint_id;
	struct view reason;  /* as the operator gave it, or null */
	struct view details; /* what it was before and is now, or null */
};

/* Queues a row in the transaction that is open; its fault is that of the next call that flushes. */
void store_audit_add(struct store *store, const struct audit_entry *entry);

/* All rows about a checkpoint, oldest first; they live in the arena. */
FM_MUSTCHECK enum fate store_audits(struct store *store, const struct uuid *checkpoint_id,
                                    struct arena *arena, struct audit_entry **ret_entries, size_t *ret_len,
                                    struct error *error);

#endif
