/* Do two Edits say the same? Maps have no order. */
#include "schemas/codec.h"

#include <stdlib.h>
#include <string.h>

static bool strings_equal(const struct config_entry *a, const struct config_entry *b)
{
	if (a->value.strings.len != b->value.strings.len)
		return false;
	for (size_t i = 0; i < a->value.strings.len; i++) {
		if (!view_equal(a->value.strings.items[i], b->value.strings.items[i]))
			return false;
	}
	return true;
}

/* Doubles bit by bit: one NaN is as good as another only when it is the same NaN, and 0.0 is not -0.0. */
static bool entries_equal(const struct config_entry *a, const struct config_entry *b)
{
	if (a->kind != b->kind || !view_equal(a->key, b->key))
		return false;
	switch (a->kind) {
	case CONFIG_NULL:
		return true;
	case CONFIG_BOOLEAN:
		return a->value.boolean == b->value.boolean;
	case CONFIG_LONG:
		return a->value.number == b->value.number;
	case CONFIG_DOUBLE:
		return memcmp(&a->value.real, &b->value.real, sizeof(double)) == 0;
	case CONFIG_STRING:
		return view_equal(a->value.string, b->value.string);
	case CONFIG_STRINGS:
		return strings_equal(a, b);
	}
	return false;
}

static int compare_entries(const void *a, const void *b)
{
	return view_compare((*(const struct config_entry *const *)a)->key,
	                    (*(const struct config_entry *const *)b)->key);
}

static const struct config_entry **sorted(const struct edits *edits)
{
	const struct config_entry **entries = calloc(edits->config_len + 1, sizeof(*entries));

	if (!entries)
		return NULL;
	for (size_t i = 0; i < edits->config_len; i++)
		entries[i] = &edits->config[i];
	qsort(entries, edits->config_len, sizeof(*entries), compare_entries);
	return entries;
}

bool edits_equal(const struct edits *a, const struct edits *b)
{
	if (!a->present || !b->present)
		return a->present == b->present;
	if (a->config_len != b->config_len || !view_equal(a->action_arguments, b->action_arguments))
		return false;
	const struct config_entry **x = sorted(a), **y = sorted(b);
	bool equal = x && y; /* without memory: not known to be equal */
	for (size_t i = 0; equal && i < a->config_len; i++)
		equal = entries_equal(x[i], y[i]);
	free(x);
	free(y);
	return equal;
}
