/* store_payloads.h - sealed bodies, many at a time. Private to this room. */
#ifndef FERMATA_STORE_STORE_PAYLOADS_H
#define FERMATA_STORE_STORE_PAYLOADS_H

#include "store/store_connection.h"

/* The checkpoints whose bodies are asked for; must live until the transaction is finished. */
struct payloads {
	struct arena *arena;
	struct checkpoint **items;
	size_t len;
};

/* In the transaction that is open: fills sealed.body of each that has one, and leaves the others as they are. */
void payloads_send(struct store *store, struct payloads *payloads);

#endif
