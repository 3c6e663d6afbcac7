/* store_lows.h - the first offsets that Kafka still has, as parameters of a statement. Private to this room. */
#ifndef FERMATA_STORE_STORE_LOWS_H
#define FERMATA_STORE_STORE_LOWS_H

#include "store/store_param.h"
#include "store/store_retention.h"

/* A table l of them, out of three parameters. */
#define LOWS(topics, partitions, offsets)                                                                    \
	" unnest($" topics "::text[], $" partitions "::integer[], $" offsets                                     \
	"::bigint[]) l (topic, partition, low)"
/* Is the record at those coordinates gone from Kafka? A row of l says so. */
#define GONE(t, p, off) "l.topic = " t " AND l.partition = " p " AND " off " < l.low"

/* The three parameters, one after the other. */
void param_lows(struct params *params, const struct kafka_low *lows, size_t len);

#endif
