/* store_waits.h - what waits, beside what Kafka still has of it. */
#ifndef FERMATA_STORE_STORE_WAITS_H
#define FERMATA_STORE_STORE_WAITS_H

#include "store/store_retention.h"

struct store_waits {
	int64_t waiting;        /* checkpoints that are not settled and whose suspend is known */
	int64_t oldest;         /* us: when Kafka got the oldest of their suspends; TIME_NONE: none waits */
	int64_t gone;           /* of how many Kafka has the suspend record no more */
	int64_t decisions;      /* that came before their suspend, or count towards a quorum */
	int64_t decisions_gone; /* of how many Kafka has the record no more */
	int64_t latest_expiry;  /* us: of all open gates; TIME_NONE: none expires */
};

/* All rows of fermata.checkpoint are looked at; or, where that is too much, the `most` with the lowest appended_at. */
#define STORE_WAITS_ALL 0

/* lows: of every partition of suspends and approvals. The database must be migrated. */
FM_MUSTCHECK enum fate store_waits(struct store *store, const struct kafka_low *lows, size_t lows_len,
                                   size_t most, struct store_waits *ret_waits, struct error *error);

#endif
