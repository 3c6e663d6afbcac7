/* ids.h - a set of ids. */
#ifndef FERMATA_WORKER_IDS_H
#define FERMATA_WORKER_IDS_H

#include "core/error.h"
#include "core/uuid.h"

#include <stdbool.h>
#include <stddef.h>

/* Zeros are the empty set. Sixteen to sixty-four bytes of memory an id. */
struct ids {
	struct uuid *places; /* open addressing; a power of two; an id of zeros is a free place */
	size_t cap;
	size_t len;    /* without the id of zeros */
	bool has_zero; /* which is an id as well */
};

/* *ret_new (or NULL): it was not there. RETRY, ERR_MEMORY. */
FM_MUSTCHECK enum fate ids_add(struct ids *ids, const struct uuid *id, bool *ret_new, struct error *error);
bool ids_has(const struct ids *ids, const struct uuid *id);
size_t ids_count(const struct ids *ids);
void ids_done(struct ids *ids);

#endif
