/* The catalog as a whole: its life, and what is found in it. */
#include "schemas/catalog.h"

#include "core/clock.h"
#include "schemas/catalog_inner.h"
#include "schemas/codec_inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLANS_KEPT 64

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a catalog of schemas");
}

static enum fate fill(struct catalog *catalog, const struct catalog_settings *settings, struct error *error)
{
	bool folder = settings->folder && settings->folder[0];
	enum fate fate = classes_ready(error);

	if (fate != FATE_OK)
		return fate;

	catalog->registry = settings->registry;
	catalog->asks = settings->asks;
	if (getentropy(&catalog->seed, sizeof(catalog->seed)) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "could not get random bytes for a catalog");
	catalog->denials = calloc(1, sizeof(*catalog->denials));
	if (folder)
		catalog->folder = strdup(settings->folder);
	if (!catalog->denials || (folder && !catalog->folder) || !known_reserve(catalog))
		return no_memory(error);
	fate = migrate_cache_new(&catalog->cache, PLANS_KEPT, error);
	return fate == FATE_OK ? catalog_folder(catalog, NULL, error) : fate;
}

enum fate catalog_new(struct catalog **ret_catalog, const struct catalog_settings *settings,
                      struct error *error)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (!catalog)
		return no_memory(error);
	pthread_mutex_init(&catalog->reload, NULL);
	pthread_mutex_init(&catalog->listing, NULL);
	pthread_rwlock_init(&catalog->lock, NULL);
	enum fate fate = fill(catalog, settings, error);
	if (fate != FATE_OK) {
		catalog_free(catalog);
		return fate;
	}
	*ret_catalog = catalog;
	return FATE_OK;
}

void catalog_free(struct catalog *catalog)
{
	if (!catalog)
		return;
	migrate_cache_free(catalog->cache);
	map_done(&catalog->texts);
	map_done(&catalog->readers);
	map_done(&catalog->written);
	map_done(&catalog->learnt);
	broken_done(&catalog->broken);
	for (size_t i = 0; i < catalog->len; i++)
		known_free(catalog->known[i]);
	free(catalog->known);
	free(catalog->list);
	free(catalog->denials);
	free(catalog->folder);
	pthread_rwlock_destroy(&catalog->lock);
	pthread_mutex_destroy(&catalog->listing);
	pthread_mutex_destroy(&catalog->reload);
	free(catalog);
}

/* The keys of a want, made before the lock is taken. */
struct keys {
	struct key want, first, any; /* first and any: of what is in the folder */
};

static void keys_of(const struct schema_want *want, const char *folder, struct keys *keys)
{
	keys->want = key_of(want);
	keys->first = keys->any = keys->want;
	if (want->kind != WANT_STATE)
		return;
	keys->first = key_named(WANT_FINGERPRINT, folder, want->fingerprint);
	keys->any = key_named(WANT_STATE, "", want->fingerprint);
}

static const struct known_schema *look_in_folder(const struct catalog *catalog,
                                                 const struct schema_want *want, const struct keys *keys)
{
	const struct map *folder = want->kind == WANT_READER ? &catalog->readers : &catalog->written;
	const struct known_schema *known = map_get(folder, catalog->seed, &keys->first);

	if (!known && want->kind == WANT_STATE)
		known = map_get(folder, catalog->seed, &keys->any);
	return known;
}

/* A reader of the folder stands before one that was learnt, and so does one that is broken: it is not passed over. */
static const struct known_schema *look(const struct catalog *catalog, const struct schema_want *want,
                                       const struct keys *keys, const char *folder,
                                       const struct broken_file **ret_broken)
{
	bool reader = want->kind == WANT_READER;
	const struct known_schema *known = NULL;

	*ret_broken = reader ? broken_reader(&catalog->broken, want->name) : NULL;
	if (!*ret_broken)
		known = look_in_folder(catalog, want, keys);
	if (!*ret_broken && !known && reader)
		*ret_broken = broken_claim(&catalog->broken, want->name);
	if (!*ret_broken && !known)
		known = map_get(&catalog->learnt, catalog->seed, &keys->want);
	if (!*ret_broken && !known && !reader)
		*ret_broken = broken_written(&catalog->broken, want, folder);
	return known;
}

static enum answer why_not(const struct catalog *catalog, const struct keys *keys,
                           const struct broken_file *broken, char ret_why[DENIED_WHY_MAX + 1])
{
	const struct denial *denial;

	if (broken) {
		snprintf(ret_why, DENIED_WHY_MAX + 1, "%.60s cannot be used: %s", broken->file, broken->why);
		return ANSWER_BROKEN;
	}
	denial = denials_find(catalog->denials, catalog->seed, &keys->want, clock_mono_ms());
	if (denial)
		memcpy(ret_why, denial->why, sizeof(denial->why));
	return denial ? ANSWER_DENIED : ANSWER_MISSING;
}

enum answer catalog_find(struct catalog *catalog, const struct schema_want *want, const char *folder,
                         const struct known_schema **ret_known, char ret_why[DENIED_WHY_MAX + 1])
{
	const struct broken_file *broken;
	struct keys keys;

	ret_why[0] = '\0';
	keys_of(want, folder, &keys);
	pthread_rwlock_rdlock(&catalog->lock);
	*ret_known = look(catalog, want, &keys, folder, &broken);
	enum answer answer = *ret_known ? ANSWER_KNOWN : why_not(catalog, &keys, broken, ret_why);
	pthread_rwlock_unlock(&catalog->lock);
	return answer;
}

enum fate catalog_resolve(struct catalog *catalog, const struct known_schema *writer,
                          const struct migrate_text *reader, struct view body, struct buffer *out,
                          struct error *error)
{
	const struct plan *plan;
	enum fate fate = migrate_cache_hold_digested(catalog->cache, &writer->text, reader, &plan, error);

	if (fate != FATE_OK)
		return fate;
	fate = migrate_run(plan, body, out, error);
	migrate_cache_release(catalog->cache, plan);
	return fate;
}

bool catalog_text(struct catalog *catalog, const uint8_t sha256[32], struct view *ret_text)
{
	struct schema_want want = { .kind = WANT_SHA256 };
	const struct known_schema *known;
	char why[DENIED_WHY_MAX + 1];

	memcpy(want.sha256, sha256, sizeof(want.sha256));
	if (!catalog || catalog_find(catalog, &want, "", &known, why) != ANSWER_KNOWN)
		return false;
	*ret_text = known->text.text;
	return true;
}

size_t catalog_readers(struct catalog *catalog)
{
	size_t readers = 0;

	if (!catalog)
		return 0;
	pthread_rwlock_rdlock(&catalog->lock);
	for (size_t i = 0; i < catalog->len; i++)
		readers += catalog->known[i]->reads > 0;
	pthread_rwlock_unlock(&catalog->lock);
	return readers;
}

size_t catalog_schemas(struct catalog *catalog)
{
	if (!catalog)
		return 0;
	pthread_rwlock_rdlock(&catalog->lock);
	size_t len = catalog->len;
	pthread_rwlock_unlock(&catalog->lock);
	return len;
}
