/* nearest.c - edit distance over three rows. */
#include "config/nearest.h"

#include <string.h>

#define LEN_MAX 255

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
	size_t rows[3][LEN_MAX + 1];
	size_t a_all = strlen(a), b_all = strlen(b);
	size_t a_len = least(a_all, LEN_MAX), b_len = least(b_all, LEN_MAX);

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
			row[j] = least(replaced, least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], two_above[j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len] + (a_all - a_len) + (b_all - b_len);
}

void nearest_try(struct nearest *nearest, const char *key, const char *candidate)
{
	size_t distance = nearest_distance(key, candidate);
	if (distance < nearest->distance)
		*nearest = (struct nearest){ candidate, distance };
}
