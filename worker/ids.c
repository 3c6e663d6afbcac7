#include "worker/ids.h"

#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 64

static bool is_zero(const struct uuid *id)
{
	static const struct uuid zero;
	return uuid_compare(id, &zero) == 0;
}

/* The last bytes of a UUID are random in every version that is made; others only make it slow. */
static struct uuid *place(const struct ids *ids, const struct uuid *id)
{
	uint64_t high, low;
	memcpy(&high, id->bytes, sizeof(high));
	memcpy(&low, id->bytes + 8, sizeof(low));
	size_t at = (size_t)((low ^ high) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (ids->cap - 1);
	while (!is_zero(&ids->places[at]) && uuid_compare(&ids->places[at], id) != 0)
		at = (at + 1) & (ids->cap - 1);
	return &ids->places[at];
}

static enum fate make_room(struct ids *ids, struct error *error)
{
	struct ids old = *ids;
	if (2 * (ids->len + 1) <= ids->cap)
		return FATE_OK;
	ids->cap = old.cap == 0 ? CAP_FIRST : 2 * old.cap;
	ids->places = calloc(ids->cap, sizeof(*ids->places));
	if (ids->places == NULL) {
		*ids = old;
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %zu ids", old.len + 1);
	}
	for (size_t i = 0; i < old.cap; i++)
		if (!is_zero(&old.places[i]))
			*place(ids, &old.places[i]) = old.places[i];
	free(old.places);
	return FATE_OK;
}

enum fate ids_add(struct ids *ids, const struct uuid *id, bool *ret_new, struct error *error)
{
	bool fresh = !ids_has(ids, id);
	if (fresh && is_zero(id)) {
		ids->has_zero = true;
	} else if (fresh) {
		enum fate fate = make_room(ids, error);
		if (fate != FATE_OK)
			return fate;
		*place(ids, id) = *id;
		ids->len++;
	}
	if (ret_new != NULL)
		*ret_new = fresh;
	return FATE_OK;
}

bool ids_has(const struct ids *ids, const struct uuid *id)
{
	if (is_zero(id))
		return ids->has_zero;
	return ids->cap > 0 && !is_zero(place(ids, id));
}

size_t ids_count(const struct ids *ids)
{
	return ids->len + (ids->has_zero ? 1 : 0);
}

void ids_done(struct ids *ids)
{
	free(ids->places);
	*ids = (struct ids){ 0 };
}
