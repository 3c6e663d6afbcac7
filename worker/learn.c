/* Looking for a schema in the folder and in PostgreSQL, and keeping every one there. */
#include "worker/learn_inner.h"

#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 8   /* a record may want more than one schema, one after the other */
#define NOWHERE_MS 200 /* so long "it is nowhere" is believed: the call that follows is meant */

/* ---- keeping ---- */

const char *learn_registry(const struct worker *worker)
{
	return worker->learner->registry == NULL ? NULL : registry_name(worker->learner->registry);
}

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for schemas");
}

static enum fate keep_texts(struct store *store, const struct view *texts, size_t len, struct error *error)
{
	struct schema_row *rows = calloc(len + 1, sizeof(*rows));
	if (rows == NULL)
		return no_memory(error);
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = shelf_identify(texts[i], &rows[i], error);
	if (fate == FATE_OK && len > 0)
		fate = store_schemas_keep(store, rows, len, clock_real_us(), error);
	free(rows);
	return fate;
}

struct folder_texts {
	struct view *texts;
	size_t len, cap;
	bool failed;
};

static bool note_folder_text(void *context, const struct catalog_entry *entry)
{
	struct folder_texts *list = context;
	if (entry->from != FROM_FOLDER)
		return true;
	if (list->len == list->cap) {
		size_t cap = list->cap > 0 ? 2 * list->cap : 64;
		struct view *texts = realloc(list->texts, cap * sizeof(*texts));
		if (texts == NULL) {
			list->failed = true;
			return false;
		}
		list->texts = texts;
		list->cap = cap;
	}
	list->texts[list->len++] = entry->text;
	return true;
}

enum fate learn_keep_folder(struct worker *worker, struct store *store, struct error *error)
{
	struct folder_texts list = { 0 };
	catalog_each(worker->catalog, note_folder_text, &list);
	enum fate fate = list.failed ? no_memory(error) : keep_texts(store, list.texts, list.len, error);
	free(list.texts);
	return fate;
}

enum fate learn_keep_own(struct worker *worker, struct store *store, struct error *error)
{
	struct view own[] = { codec_schema_text(RECORD_SUSPEND), codec_schema_text(RECORD_APPROVAL),
		                  codec_schema_text(RECORD_RESUME), codec_schema_text(RECORD_GATE) };
	enum fate fate = keep_texts(store, own, sizeof(own) / sizeof(own[0]), error);
	return fate == FATE_OK ? learn_keep_folder(worker, store, error) : fate;
}

bool learn_is_kept(const struct worker *worker, const uint8_t sha256[32])
{
	struct learner *learner = worker->learner;
	uint8_t own[32];
	codec_schema_sha256(RECORD_SUSPEND, own);
	bool found = memcmp(own, sha256, sizeof(own)) == 0;
	if (found)
		return true;
	pthread_mutex_lock(&learner->mutex);
	for (size_t i = 0; i < learner->kept_len && !found; i++)
		found = memcmp(learner->kept[i], sha256, 32) == 0;
	pthread_mutex_unlock(&learner->mutex);
	return found;
}

/* Where it cannot be remembered it is kept once more, next time. */
static void note_kept(struct learner *learner, const uint8_t sha256[32])
{
	pthread_mutex_lock(&learner->mutex);
	if (learner->kept_len == learner->kept_cap) {
		size_t cap = learner->kept_cap > 0 ? 2 * learner->kept_cap : 16;
		uint8_t(*kept)[32] = realloc(learner->kept, cap * sizeof(*kept));
		if (kept != NULL) {
			learner->kept = kept;
			learner->kept_cap = cap;
		}
	}
	if (learner->kept_len < learner->kept_cap)
		memcpy(learner->kept[learner->kept_len++], sha256, 32);
	pthread_mutex_unlock(&learner->mutex);
}

enum fate learn_keep_sealed(struct worker *worker, struct store *store, const uint8_t sha256[32],
                            struct error *error)
{
	struct view text;
	if (learn_is_kept(worker, sha256))
		return FATE_OK;
	if (!catalog_text(worker->catalog, sha256, &text))
		return error_set(error, FATE_FATAL, ERR_BUG,
		                 "a schema that a record was read with is not in the catalog");
	enum fate fate = keep_texts(store, &text, 1, error);
	if (fate == FATE_OK)
		note_kept(worker->learner, sha256);
	return fate;
}

/* ---- what a codec wants ---- */

/* What does not go in any more is wanted again later. */
static void enqueue(struct learner *learner, const struct schema_want *want)
{
	bool queued = false;
	pthread_mutex_lock(&learner->mutex);
	for (size_t i = 0; i < learner->queue_len && !queued; i++)
		queued = want_equal(&learner->queue[i], want);
	if (!queued && learner->queue_len < LEARN_QUEUE)
		learner->queue[learner->queue_len++] = *want;
	pthread_mutex_unlock(&learner->mutex);
}

/* OK: the catalog has it, or refuses it from now on. RETRY ERR_UNKNOWN_SCHEMA: the registry is asked. What it
 * said there was not is asked for again, and believed while it is away. */
static enum fate look(struct worker *worker, struct store *store, const struct schema_want *want,
                      struct error *error)
{
	struct learner *learner = worker->learner;
	char text[CATALOG_NAME_MAX + 64], why[BROKEN_WHY_SIZE];
	enum looked looked = LOOKED_NONE;
	enum fate fate = FATE_OK;
	if (learn_folder_changed(worker))
		return FATE_OK;
	bool broken = catalog_is_broken(worker->catalog, want, why, sizeof(why));
	/* Whatever others have of a reader, the folder's stands before it. */
	if (!broken || want->kind != WANT_READER)
		fate = shelf_look(store, worker->catalog, learn_registry(worker), want, &looked, error);
	if (fate != FATE_OK || looked == LOOKED_LEARNT)
		return fate;
	/* The registry has just been asked: its "there is none" is news, and whoever waits comes at once. */
	bool asked = broken && catalog_is_denied(worker->catalog, want);
	if (broken && (learner->registry == NULL || looked == LOOKED_NONE || asked))
		return error_set(error, FATE_RETRY, ERR_UNKNOWN_SCHEMA,
		                 "%s may be in a file of schemas.path, and waits until that is mended: %s",
		                 want_text(want, text, sizeof(text)), why);
	if (learner->registry == NULL || (looked == LOOKED_NONE && atomic_load(&learner->away))) {
		catalog_deny(worker->catalog, want, NOWHERE_MS, NULL);
		return FATE_OK;
	}
	enqueue(learner, want);
	return error_set(error, FATE_RETRY, ERR_UNKNOWN_SCHEMA, "the registry is asked for %.150s",
	                 want_text(want, text, sizeof(text)));
}

bool learn_more(struct worker *worker, struct store *store, const struct schema_want *want, unsigned *tries,
                enum fate *fate, struct error *error)
{
	if (*fate != FATE_RETRY || error->code != ERR_UNKNOWN_SCHEMA)
		return false;
	if (++*tries > ROUNDS_MAX) {
		*fate = error_set(error, FATE_RETRY, ERR_STALE, "schemas come and go faster than they can be read");
		return false;
	}
	*fate = look(worker, store, want, error);
	return *fate == FATE_OK;
}

static void say_broken(void *context, const struct catalog_broken *file)
{
	(void)context;
	log_warn("schemas",
	         "%s of schemas.path cannot be used: %s; what may need it waits, all else goes on: mend it, or "
	         "take it away",
	         file->file, file->why);
}

void learn_say_broken(struct worker *worker)
{
	int broken = (int)catalog_broken(worker->catalog);
	int before = atomic_exchange(&worker->broken_schemas, broken);
	metrics_set(METRIC_SCHEMAS_BROKEN, broken);
	catalog_each_broken(worker->catalog, say_broken, NULL);
	if (broken == 0 && before > 0)
		log_info("schemas", "all files of schemas.path can be used again");
}

enum fate learn_folder(struct worker *worker, bool *ret_changed, struct error *error)
{
	enum fate fate = catalog_folder(worker->catalog, ret_changed, error);
	if (fate == FATE_OK && *ret_changed) {
		atomic_fetch_add(&worker->learner->folder_reads, 1);
		learn_say_broken(worker);
		learn_tell(worker);
	}
	return fate;
}

bool learn_folder_changed(struct worker *worker)
{
	struct error error;
	bool changed = false;
	return learn_folder(worker, &changed, &error) == FATE_OK && changed; /* the thread says what fails */
}

uint64_t learn_count(const struct worker *worker)
{
	return atomic_load(&worker->learner->count);
}

void learn_tell(struct worker *worker)
{
	atomic_fetch_add(&worker->learner->count, 1);
	shards_wake(worker, NULL);
}

/* ---- ahead of time ---- */

/* FNV-1a: who clashes is asked for once more. */
static uint64_t hash(const struct app_state *state)
{
	uint64_t value = UINT64_C(14695981039346656037);
	for (size_t i = 0; i < state->schema.len; i++)
		value = (value ^ state->schema.data[i]) * UINT64_C(1099511628211);
	for (size_t i = 0; i < state->fingerprint.len; i++)
		value = (value ^ state->fingerprint.data[i]) * UINT64_C(1099511628211);
	return value;
}

static bool is_new(struct learner *learner, uint64_t key)
{
	uint64_t *slot = &learner->ahead[key % LEARN_AHEAD];
	pthread_mutex_lock(&learner->mutex);
	bool new = *slot != key;
	*slot = key;
	pthread_mutex_unlock(&learner->mutex);
	return new;
}

void learn_ahead(struct worker *worker, const struct app_state *state)
{
	struct schema_want want = { .kind = WANT_READER };
	if (worker->learner->registry == NULL || !state->present || state->encoding != ENCODING_AVRO ||
	    state->fingerprint.len != 8 || state->schema.len == 0 || state->schema.len > CATALOG_NAME_MAX ||
	    !is_new(worker->learner, hash(state)))
		return;
	memcpy(want.name, state->schema.data, state->schema.len);
	enqueue(worker->learner, &want);
	want.kind = WANT_STATE;
	for (size_t i = 0; i < 8; i++)
		want.fingerprint |= (uint64_t)state->fingerprint.data[i] << (8 * i);
	enqueue(worker->learner, &want);
}
