/*
 * rivals.h - another installation in our group: a second database, the same worker.group, the same cluster. Kafka would
 * share the partitions out between the two, so that each takes in a part of what comes and none can go on.
 */
#ifndef FERMATA_WORKER_RIVALS_H
#define FERMATA_WORKER_RIVALS_H

#include "worker/worker.h"

/* Members of the group are called so, with the mark of their installation behind it. */
#define RIVALS_CLIENT "fermata-shards-"

struct rivals {
	int64_t look_at_ms; /* mono */
	bool there;
};

/* The name of the group that the relays of worker.group share their shards out in. */
void rivals_group(const struct config *config, char *ret_group, size_t cap);
/* RETRY, with words, while there are members of another installation. What cannot be asked is none. */
FM_MUSTCHECK enum fate rivals_look(struct worker *worker, struct error *error);
/* Now and then while the worker runs: the log, readiness, a gauge. */
void rivals_tick(struct rivals *rivals, struct worker *worker);

#endif
