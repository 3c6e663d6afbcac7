/* Keys of wants, and maps from them to schemas. */
#include "schemas/catalog_inner.h"
#include "schemas/fingerprint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64

struct binding {
	struct binding *next;
	struct key key;
	struct known_schema *known;
};

static_assert(sizeof(struct binding) <= BINDING_BYTES, "what a binding takes");

struct key key_named(int kind, const char *name, uint64_t fingerprint)
{
	struct key key = { .kind = (uint8_t)kind };
	uint8_t text[8 + CATALOG_NAME_MAX];
	size_t len = strnlen(name, CATALOG_NAME_MAX);

	fingerprint_bytes(fingerprint, text);
	memcpy(text + 8, name, len);
	fingerprint_sha256((struct view){ text, 8 + len }, key.bytes);
	return key;
}

struct key key_sha256(const uint8_t sha256[32])
{
	struct key key = { .kind = WANT_SHA256 };

	memcpy(key.bytes, sha256, 32);
	return key;
}

struct key key_of(const struct schema_want *want)
{
	struct key key = { .kind = (uint8_t)want->kind };

	switch (want->kind) {
	case WANT_ID:
		memcpy(key.bytes, &want->id, sizeof(want->id));
		return key;
	case WANT_GUID:
		memcpy(key.bytes, want->guid, sizeof(want->guid));
		return key;
	case WANT_SHA256:
		return key_sha256(want->sha256);
	case WANT_READER:
		return key_named(WANT_READER, want->name, 0);
	case WANT_FINGERPRINT:
	case WANT_STATE:
		return key_named((int)want->kind, want->name, want->fingerprint);
	case WANT_NOTHING:
		break;
	}
	return key;
}

/* SHA-256 of: 0 or 1 for the origin, SHA-256 of the text, name. */
struct key key_text(const struct known_schema *known)
{
	struct key key = { .kind = KEY_TEXT };
	uint8_t text[1 + 32 + CATALOG_NAME_MAX];
	size_t len = strnlen(known->name, CATALOG_NAME_MAX);

	text[0] = known->elsewhere;
	memcpy(text + 1, known->text.sha256, 32);
	memcpy(text + 33, known->name, len);
	fingerprint_sha256((struct view){ text, 33 + len }, key.bytes);
	return key;
}

bool key_equal(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Words of the key, each stirred in by a multiplication (Knuth's, with the constant of the golden ratio). */
uint64_t key_hash(const struct key *key, uint64_t seed)
{
	uint64_t hash = seed ^ key->kind, word;

	for (size_t i = 0; i < sizeof(key->bytes); i += sizeof(word)) {
		memcpy(&word, key->bytes + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

static struct binding **link_of(const struct map *map, uint64_t seed, const struct key *key)
{
	struct binding **link = &map->buckets[key_hash(key, seed) & (map->cap - 1)];

	while (*link && !key_equal(&(*link)->key, key))
		link = &(*link)->next;
	return link;
}

struct known_schema *map_get(const struct map *map, uint64_t seed, const struct key *key)
{
	if (map->cap == 0)
		return NULL;
	const struct binding *binding = *link_of(map, seed, key);
	return binding ? binding->known : NULL;
}

static bool grow(struct map *map, uint64_t seed)
{
	struct map larger = { .cap = map->cap ? 2 * map->cap : FIRST_CAP, .len = map->len };

	larger.buckets = calloc(larger.cap, sizeof(struct binding *));
	if (!larger.buckets)
		return false;
	for (size_t i = 0; i < map->cap; i++) {
		for (struct binding *binding = map->buckets[i], *next; binding; binding = next) {
			struct binding **bucket = &larger.buckets[key_hash(&binding->key, seed) & (larger.cap - 1)];
			next = binding->next;
			binding->next = *bucket;
			*bucket = binding;
		}
	}
	free(map->buckets);
	*map = larger;
	return true;
}

bool map_set(struct map *map, uint64_t seed, const struct key *key, struct known_schema *known)
{
	if (map->len == map->cap && !grow(map, seed))
		return false;
	struct binding **link = link_of(map, seed, key);
	if (!*link) {
		struct binding *binding = malloc(sizeof(*binding));
		if (!binding)
			return false;
		*binding = (struct binding){ .key = *key };
		*link = binding;
		map->len++;
	}
	(*link)->known = known;
	return true;
}

void map_done(struct map *map)
{
	for (size_t i = 0; i < map->cap; i++) {
		for (struct binding *binding = map->buckets[i], *next; binding; binding = next) {
			next = binding->next;
			free(binding);
		}
	}
	free(map->buckets);
	*map = (struct map){ 0 };
}
