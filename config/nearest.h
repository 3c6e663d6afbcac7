/* nearest.h - which known key did somebody mean? */
#ifndef FERMATA_CONFIG_NEAREST_H
#define FERMATA_CONFIG_NEAREST_H

#include <stddef.h>

/* How many insertions, deletions, replacements of a character and swaps of two neighbours lead from one to
 * the other (optimal string alignment: Damerau 1964, Wagner and Fischer 1974). What is beyond the first 255
 * bytes of a text counts one each. */
size_t nearest_distance(const char *a, const char *b);

/* A key as the nearest one is looked for: start with .distance = SIZE_MAX. */
struct nearest {
	const char *key;
	size_t distance;
};

/* Keeps candidate when it is nearer to key than what was kept before. Borrows. */
void nearest_try(struct nearest *nearest, const char *key, const char *candidate);

#endif
