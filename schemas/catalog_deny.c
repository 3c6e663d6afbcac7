/* What is not there, for a while: a ring, so that the oldest goes first, with an index over it. */
#include "schemas/catalog_inner.h"

#include "core/clock.h"

#include <string.h>

static uint16_t *bucket_of(struct denials *denials, uint64_t seed, const struct key *key)
{
	return &denials->buckets[key_hash(key, seed) % DENIALS_MAX];
}

const struct denial *denials_find(const struct denials *denials, uint64_t seed, const struct key *key,
                                  int64_t now_ms)
{
	for (uint16_t place = denials->buckets[key_hash(key, seed) % DENIALS_MAX]; place > 0;) {
		const struct denial *denial = &denials->slots[place - 1];
		if (key_equal(&denial->key, key))
			return denial->until_ms > now_ms ? denial : NULL;
		place = denial->next;
	}
	return NULL;
}

void denials_remove(struct denials *denials, uint64_t seed, const struct key *key)
{
	for (uint16_t *link = bucket_of(denials, seed, key); *link > 0;) {
		struct denial *denial = &denials->slots[*link - 1];
		if (key_equal(&denial->key, key)) {
			*link = denial->next;
			denial->used = false;
			return;
		}
		link = &denial->next;
	}
}

/* Cut to fit, and at no half of a character. */
static void copy_why(char to[DENIED_WHY_MAX + 1], const char *why)
{
	size_t len = strnlen(why, DENIED_WHY_MAX);

	for (int i = 0; i < 3 && len > 0 && !view_is_utf8((struct view){ (const uint8_t *)why, len }); i++)
		len--;
	memcpy(to, why, len);
	to[len] = '\0';
}

void denials_add(struct denials *denials, uint64_t seed, const struct key *key, int64_t until_ms,
                 const char *why)
{
	size_t place = denials->next;
	struct denial *denial = &denials->slots[place];

	denials_remove(denials, seed, key);
	if (denial->used) {
		const struct key oldest = denial->key;
		denials_remove(denials, seed, &oldest);
	}
	denials->next = (place + 1) % DENIALS_MAX;
	*denial = (struct denial){ .key = *key, .until_ms = until_ms, .used = true };
	copy_why(denial->why, why ? why : "");
	uint16_t *bucket = bucket_of(denials, seed, key);
	denial->next = *bucket;
	*bucket = (uint16_t)(place + 1);
}

void denials_clear(struct denials *denials)
{
	memset(denials, 0, sizeof(*denials));
}

void catalog_deny(struct catalog *catalog, const struct schema_want *want, int64_t ms, const char *why)
{
	const struct key key = key_of(want);
	int64_t now = clock_mono_ms(), until = ms > INT64_MAX - now ? INT64_MAX : now + ms;

	pthread_rwlock_wrlock(&catalog->lock);
	denials_add(catalog->denials, catalog->seed, &key, until, why);
	pthread_rwlock_unlock(&catalog->lock);
}

bool catalog_is_denied(struct catalog *catalog, const struct schema_want *want)
{
	const struct key key = key_of(want);

	pthread_rwlock_rdlock(&catalog->lock);
	bool denied = denials_find(catalog->denials, catalog->seed, &key, clock_mono_ms()) != NULL;
	pthread_rwlock_unlock(&catalog->lock);
	return denied;
}
