/*
 * Plans of pairs of texts. An entry is found by the SHA-256 of both, owns the two schemas and the plan, and
 * stays as long as somebody holds it; of those that nobody holds the one that was used longest ago makes room.
 * A plan is made outside of the lock: two threads may make the same one, and the second is thrown away.
 */
#include "schemas/fingerprint.h"
#include "schemas/plan.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEY_LEN 64

struct entry {
	struct entry *next; /* the last used first */
	uint8_t key[KEY_LEN];
	size_t holders;
	struct schema *writer;
	struct schema *reader;
	struct plan *plan;  /* NULL: it can never work */
	struct error error; /* why */
};

struct migrate_cache {
	pthread_mutex_t lock;
	struct entry *entries;
	size_t plans;
};

enum fate migrate_cache_new(struct migrate_cache **ret_cache, size_t plans, struct error *error)
{
	struct migrate_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a cache of migrations");
	pthread_mutex_init(&cache->lock, NULL);
	cache->plans = plans > 0 ? plans : 1;
	*ret_cache = cache;
	return FATE_OK;
}

static void entry_free(struct entry *entry)
{
	if (!entry)
		return;
	migrate_plan_free(entry->plan);
	schema_free(entry->writer);
	schema_free(entry->reader);
	free(entry);
}

void migrate_cache_free(struct migrate_cache *cache)
{
	if (!cache)
		return;
	while (cache->entries) {
		struct entry *entry = cache->entries;
		assert(entry->holders == 0);
		cache->entries = entry->next;
		entry_free(entry);
	}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* Moves the entry to the front and holds it; NULL when there is none. */
static struct entry *find(struct migrate_cache *cache, const uint8_t key[KEY_LEN])
{
	for (struct entry **link = &cache->entries; *link; link = &(*link)->next) {
		struct entry *entry = *link;
		if (memcmp(entry->key, key, KEY_LEN) != 0)
			continue;
		*link = entry->next;
		entry->next = cache->entries;
		cache->entries = entry;
		entry->holders++;
		return entry;
	}
	return NULL;
}

/* Entries beyond the number that is kept, and that nobody holds. */
static void trim(struct migrate_cache *cache)
{
	size_t kept = 0;

	for (struct entry **link = &cache->entries; *link;) {
		struct entry *entry = *link;
		if (++kept <= cache->plans || entry->holders > 0) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		entry_free(entry);
	}
}

/* What is no schema never will be. */
static enum fate no_schema(struct error *error, const char *whose)
{
	(void)error_wrap(error, "the %s's schema", whose);
	if (error->fate == FATE_REJECT)
		plan_say_when(error, " (always)");
	return error->fate;
}

static enum fate fill(struct entry *entry, struct view writer, struct view reader)
{
	struct error *error = &entry->error;

	if (schema_parse(&entry->writer, writer, error) != FATE_OK)
		return no_schema(error, "writer");
	if (schema_parse(&entry->reader, reader, error) != FATE_OK)
		return no_schema(error, "reader");
	return migrate_plan_new(&entry->plan, entry->writer, entry->reader, error);
}

/* A pair that was refused keeps the reason and lets go of the schemas. */
static enum fate make(struct entry **ret_entry, const uint8_t key[KEY_LEN], struct view writer,
                      struct view reader, struct error *error)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to plan a migration");
	memcpy(entry->key, key, KEY_LEN);
	entry->holders = 1;
	enum fate fate = fill(entry, writer, reader);
	if (fate != FATE_OK) {
		schema_free(entry->writer);
		schema_free(entry->reader);
		entry->writer = entry->reader = NULL;
	}
	if (fate != FATE_OK && fate != FATE_REJECT) {
		if (error)
			*error = entry->error;
		entry_free(entry);
		return fate;
	}
	*ret_entry = entry;
	return FATE_OK;
}

static struct entry *keep(struct migrate_cache *cache, struct entry *made)
{
	pthread_mutex_lock(&cache->lock);
	struct entry *entry = find(cache, made->key);
	if (!entry) {
		made->next = cache->entries;
		cache->entries = entry = made;
		trim(cache);
	} else {
		entry_free(made);
	}
	pthread_mutex_unlock(&cache->lock);
	return entry;
}

static void release(struct migrate_cache *cache, struct entry *entry)
{
	pthread_mutex_lock(&cache->lock);
	assert(entry->holders > 0);
	entry->holders--;
	trim(cache);
	pthread_mutex_unlock(&cache->lock);
}

enum fate migrate_cache_hold(struct migrate_cache *cache, struct view writer, struct view reader,
                             const struct plan **ret_plan, struct error *error)
{
	struct migrate_text texts[2] = { { .text = writer }, { .text = reader } };

	fingerprint_sha256(writer, texts[0].sha256);
	fingerprint_sha256(reader, texts[1].sha256);
	return migrate_cache_hold_digested(cache, &texts[0], &texts[1], ret_plan, error);
}

enum fate migrate_cache_hold_digested(struct migrate_cache *cache, const struct migrate_text *writer,
                                      const struct migrate_text *reader, const struct plan **ret_plan,
                                      struct error *error)
{
	uint8_t key[KEY_LEN];
	struct entry *entry;

	memcpy(key, writer->sha256, KEY_LEN / 2);
	memcpy(key + KEY_LEN / 2, reader->sha256, KEY_LEN / 2);
	pthread_mutex_lock(&cache->lock);
	entry = find(cache, key);
	pthread_mutex_unlock(&cache->lock);
	if (!entry) {
		enum fate fate = make(&entry, key, writer->text, reader->text, error);
		if (fate != FATE_OK)
			return fate;
		entry = keep(cache, entry);
	}
	*ret_plan = entry->plan;
	if (entry->plan)
		return FATE_OK;
	if (error)
		*error = entry->error;
	release(cache, entry);
	return FATE_REJECT;
}

void migrate_cache_release(struct migrate_cache *cache, const struct plan *plan)
{
	struct entry *entry;

	pthread_mutex_lock(&cache->lock);
	for (entry = cache->entries; entry && entry->plan != plan;)
		entry = entry->next;
	pthread_mutex_unlock(&cache->lock);
	assert(entry);
	release(cache, entry);
}
