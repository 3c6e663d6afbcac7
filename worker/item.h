/*
 * item.h - one record of a batch on its way through intake: read, understood (or not), sealed. What an
 * item points to lives in the arena of its batch; only record.value borrows from the Kafka message.
 */
#ifndef FERMATA_WORKER_ITEM_H
#define FERMATA_WORKER_ITEM_H

#include "core/kafka.h"
#include "core/policy.h"

struct item {
	struct record record;
	size_t part;  /* index of its partition in the assignment */
	bool suspend; /* of the suspends topic, else of the approvals topic */
	bool dead;    /* it leaves as a dead letter, and why says the reason */
	bool
		judged_dead; /* dead by the judge (conflict, unclaimed_full): asked anew when the batch is tried again */
	bool lettered; /* dead, and its letter is there already: none is sent */
	struct error why;
	struct checkpoint *fresh; /* a suspend: the row as the event alone would make it, state PENDING, sealed */
	struct action action;     /* of it, when its gate event is to tell it and may be handed over */
	struct decision *decision; /* an approval: the row as it would be, outcome not set */
};

#endif
