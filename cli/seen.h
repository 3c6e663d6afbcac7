/* seen.h - the newest version seen of each checkpoint (readers of the gates topic ignore older ones). */
#ifndef FERMATA_CLI_SEEN_H
#define FERMATA_CLI_SEEN_H

#include "core/uuid.h"

struct seen_entry {
	struct uuid id;
	int64_t version; /* 0: the place is free */
};

struct seen {
	struct seen_entry *entries; /* open addressing; a power of two */
	size_t cap;
	size_t len;
};

/* Is the version above the one seen? Then it is the one seen from now on. When the table is full (four
 * million checkpoints) it is forgotten, and an old version may be shown once. */
bool seen_raise(struct seen *seen, const struct uuid *id, int64_t version);
void seen_done(struct seen *seen);

#endif
