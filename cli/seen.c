#include "cli/seen.h"

#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 1024
#define CAP_MOST  ((size_t)8 << 20)

/* The last bytes of a UUID are random in every version that is made. */
static size_t place(const struct seen *seen, const struct uuid *id)
{
	uint64_t bits;

	memcpy(&bits, id->bytes + 8, sizeof(bits));
	size_t at = (size_t)(bits * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (seen->cap - 1);
	while (seen->entries[at].version != 0 && uuid_compare(&seen->entries[at].id, id) != 0)
		at = (at + 1) & (seen->cap - 1);
	return at;
}

static void forget(struct seen *seen)
{
	memset(seen->entries, 0, seen->cap * sizeof(*seen->entries));
	seen->len = 0;
}

/* Room for one more, with half of the places free. */
static bool make_room(struct seen *seen)
{
	struct seen old = *seen;
	size_t cap = old.cap > 0 ? 2 * old.cap : CAP_FIRST;

	if (2 * (seen->len + 1) <= seen->cap)
		return true;
	struct seen_entry *entries = cap <= CAP_MOST ? calloc(cap, sizeof(*entries)) : NULL;
	if (entries == NULL) {
		if (seen->cap > 0)
			forget(seen);
		return seen->cap > 0;
	}
	*seen = (struct seen){ entries, cap, old.len };
	for (size_t i = 0; i < old.cap; i++)
		if (old.entries[i].version != 0)
			seen->entries[place(seen, &old.entries[i].id)] = old.entries[i];
	free(old.entries);
	return true;
}

bool seen_raise(struct seen *seen, const struct uuid *id, int64_t version)
{
	if (version == 0 || !make_room(seen))
		return true;
	struct seen_entry *entry = &seen->entries[place(seen, id)];
	if (entry->version != 0 && entry->version >= version)
		return false;
	seen->len += entry->version == 0 ? 1 : 0;
	*entry = (struct seen_entry){ *id, version };
	return true;
}

void seen_done(struct seen *seen)
{
	free(seen->entries);
	*seen = (struct seen){ 0 };
}
