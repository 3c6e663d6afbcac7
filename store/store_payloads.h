/* store_payloads.h - sealed bodies, many at a time. Private to this room. */
#ifndef FERMATA_STORE_STORE_PAYLOADS_H
#define FERMATA_STORE_STORE_PAYLOADS_H

#include "store/store_connection.h"

/* The checkpoints whose bodies are asked for; must live until the transaction is finished. */
struct payloads {
	struct arena *arena;
	struct checkpoint **items;
	size_t len;
	const int32_t *days; /* payload_day of each as it was read in this snapshot (SQL_DAY) */
};

/* The day of a table called c as a number, 0 for none. */
#define SQL_DAY "coalesce(c.payload_day - '2000-01-01'::date, 0)"

/* In the transaction that is open: fills sealed.body of each that has one, and leaves the others as they are. A statement a day. REJECT with ERR_MEMORY: nothing was sent. */
FM_MUSTCHECK enum fate payloads_send(struct store *store, struct payloads *payloads, struct error *error);

/* The decisions whose edits are asked for; the same. */
struct edits_wanted {
	struct arena *arena;
	struct decision **items;
	size_t len;
};

/* In the transaction that is open: fills edits.body of each. */
void edits_send(struct store *store, struct edits_wanted *wanted);

#endif
