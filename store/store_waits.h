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

/* A part of fermata.checkpoint, in the order of appended_at. */
struct store_waits_page {
	int64_t after; /* the appended_at that the page before ended with, or TIME_NONE: the first one */
	size_t most;   /* rows; and all that have the last one's appended_at */
	bool goes_on;  /* set: there may be more, behind `after`, which is set, too */
};

/* lows: of every partition of suspends and approvals. The database must be migrated. page: NULL for all rows. Of a
 * page the answer is about its rows; what waits for its suspend is in the first one's, and latest_expiry is always of all. */
FM_MUSTCHECK enum fate store_waits(struct store *store, const struct kafka_low *lows, size_t lows_len,
                                   struct store_waits_page *page, struct store_waits *ret_waits,
                                   struct error *error);

#endif
