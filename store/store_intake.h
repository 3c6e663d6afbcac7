/* store_intake.h - what operators say to intake about a partition. */
#ifndef FERMATA_STORE_STORE_INTAKE_H
#define FERMATA_STORE_STORE_INTAKE_H

#include "store/store.h"

struct let_through {
	const char *topic;
	int32_t partition;
	int64_t count; /* so many offsets from where it stands; 0: until */
	int64_t until; /* offset */
	struct view who;
	struct view reason; /* may be null */
	int64_t now;        /* us */
};

struct let_through_result {
	bool known;   /* there is a position of that partition, of the installation's cluster */
	bool done;    /* false: it is not stopped, or until is not behind its position; nothing was changed */
	int64_t next; /* its position */
	int64_t until;
};

/* What becomes a dead letter below that offset is let through: the worker that has the partition goes on with it. One
 * transaction with its row in fermata.audit, committed. RETRY: whether it was done may be unknown; doing it again is no
 * harm with `until`. */
FM_MUSTCHECK enum fate store_let_through(struct store *store, const struct let_through *what,
                                         struct let_through_result *ret_result, struct error *error);

#endif
