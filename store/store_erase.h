/*
 * store_erase.h - what is sealed of a session is made unreadable for good: the wrapped keys of its checkpoints and of
 * the edits in its decisions go, and what they sealed goes with them.
 *
 * What stands in clear stays (ids, title, labels, who decided and why), so that a suspend record that is read
 * again is known and brings nothing back. What was not published is settled and never will be. Backups, the
 * write-ahead log and Kafka's topics have copies until they age out.
 */
#ifndef FERMATA_STORE_STORE_ERASE_H
#define FERMATA_STORE_STORE_ERASE_H

#include "store/store.h"

/* The tenants that have checkpoints of that session, by name; they live in the arena. */
FM_MUSTCHECK enum fate store_session_tenants(struct store *store, struct view session_id, struct arena *arena,
                                             struct view **ret_tenants, size_t *ret_len, struct error *error);

/* A page of the checkpoints of a session, in the order of their ids. */
struct erase_page {
	struct view tenant;
	struct view session_id;
	struct uuid from; /* begins with this id */
	size_t rows;
	bool dry_run;       /* only tells what would be erased */
	struct view who;    /* for the record */
	struct view reason; /* the same; may be null */
	int64_t now;        /* us */
};

struct erased {
	struct checkpoint *checkpoint; /* as it is now; with dry_run as it would be */
	enum gate_state was;
	bool was_erased; /* before: there was nothing left to erase */
};

struct erase_result {
	struct erased *items; /* in the arena */
	size_t len;
	bool end;         /* of the session; else */
	struct uuid next; /* the next page begins here */
};

/*
 * One transaction, committed. The rows are locked first, in the order in which intake locks and writes, so that a relay,
 * intake and a sweep may be at work. A relay that holds one of them opened at this moment publishes it all the
 * same, once; nothing of that comes back into the database. With each goes a row in fermata.audit, a tombstone for
 * the gates topic, and a NOTIFY for the relays. RETRY: whether it was done may be unknown; doing it again is no
 * harm.
 */
FM_MUSTCHECK enum fate store_erase(struct store *store, const struct erase_page *page, struct arena *arena,
                                   struct erase_result *ret_result, struct error *error);

#endif
