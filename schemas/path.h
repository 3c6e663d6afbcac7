/* path.h - where in a record we are: a chain on the C stack, printed only when something is wrong. Private
 * to this room. */
#ifndef FERMATA_SCHEMAS_PATH_H
#define FERMATA_SCHEMAS_PATH_H

#include "core/memory.h"

struct path_step {
	const struct path_step *up;
	const char *field; /* or NULL: an item */
	int64_t item;
	bool key; /* the key of a map's entry, and not its value */
};

/* "history[3].content", cut to fit. Returns its length. step may be NULL: "". */
size_t path_print(const struct path_step *step, char *text, size_t cap);

#endif
