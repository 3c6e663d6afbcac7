#include "worker/letters_known.h"

#include <stdlib.h>

struct letter_place {
	bool suspend;
	int32_t partition;
	int64_t offset;
};

#define PLACES_MAX ((size_t)16 << 20)

static int by_place(const void *a, const void *b)
{
	const struct letter_place *x = a, *y = b;
	if (x->suspend != y->suspend)
		return x->suspend ? 1 : -1;
	int order = (x->partition > y->partition) - (x->partition < y->partition);
	return order != 0 ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

enum fate letters_known_add(struct letters_known *letters, bool suspend, int32_t partition, int64_t offset,
                            struct error *error)
{
	if (letters->len == letters->cap) {
		size_t cap = letters->cap == 0 ? 1024 : 2 * letters->cap;
		if (letters->cap >= PLACES_MAX)
			return FATE_OK;
		struct letter_place *grown = reallocarray(letters->places, cap, sizeof(*grown));
		if (grown == NULL)
			return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the places of dead letters");
		letters->places = grown;
		letters->cap = cap;
	}
	letters->places[letters->len++] = (struct letter_place){ suspend, partition, offset };
	return FATE_OK;
}

void letters_known_sort(struct letters_known *letters)
{
	if (letters->len > 0)
		qsort(letters->places, letters->len, sizeof(*letters->places), by_place);
}

bool letters_known_has(const struct letters_known *letters, bool suspend, int32_t partition, int64_t offset)
{
	struct letter_place place = { suspend, partition, offset };
	return letters->len > 0 &&
	       bsearch(&place, letters->places, letters->len, sizeof(place), by_place) != NULL;
}

void letters_known_mark(const struct letters_known *letters, struct item **items, size_t len)
{
	if (letters == NULL)
		return;
	for (size_t i = 0; i < len; i++) {
		const struct coordinates *at = &items[i]->record.at;
		items[i]->lettered =
			items[i]->dead && letters_known_has(letters, items[i]->suspend, at->partition, at->offset);
	}
}

void letters_known_note(struct letters_known *letters, const struct item *item)
{
	if (letters != NULL)
		atomic_fetch_add(item->lettered ? &letters->found : &letters->sent, 1);
}

void letters_known_done(struct letters_known *letters)
{
	free(letters->places);
	letters->places = NULL;
	letters->len = letters->cap = 0;
}
