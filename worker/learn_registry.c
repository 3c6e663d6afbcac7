/* The thread that follows the folder and asks the registry, and the ids that what we write is framed with. */
#include "worker/learn_inner.h"

#include "core/log.h"
#include "schemas/ask.h"
#include "worker/registry_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES ((size_t)256 << 20) /* all versions of a subject, of up to 1 MiB each */
#define TICK_MS      20                  /* who waits for an answer waits that much longer */
#define FOLDER_MS    1000
#define SAY_MS       30000

/* ---- opening ---- */

static bool has_registry(const struct config *config)
{
	return config_text(config, PARAM_REGISTRY_URL) != NULL;
}

static enum fate open_registry(struct learner *learner, const struct config *config, struct error *error)
{
	if (!has_registry(config))
		return FATE_OK;
	struct registry_settings settings;
	registry_settings_of(config, &settings);
	enum fate fate = registry_open(&learner->registry, &settings, error);
	return fate == FATE_OK || fate == FATE_FATAL ? fate : (error->fate = FATE_FATAL);
}

static void note_broken(void *context, const struct catalog_broken *file)
{
	struct error *error = context;
	if (error->fate == FATE_OK)
		(void)error_set(error, FATE_FATAL, ERR_USAGE,
		                "%.80s of schemas.path cannot be used: %.80s; mend it, or take it away", file->file,
		                file->why);
}

enum fate learn_refuse_broken(struct catalog *catalog, struct error *error)
{
	error->fate = FATE_OK;
	catalog_each_broken(catalog, note_broken, error);
	return error->fate;
}

enum fate learn_open(struct worker *worker, struct error *error)
{
	struct learner *learner = calloc(1, sizeof(*learner));
	if (learner == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory");
	worker->learner = learner;
	pthread_mutex_init(&learner->mutex, NULL);
	learner->arena = arena_new(ANSWER_BYTES);
	if (learner->arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory");
	struct catalog_settings settings = {
		.folder = config_text(worker->config, PARAM_SCHEMAS_PATH),
		.registry = has_registry(worker->config),
		.asks = true,
	};
	enum fate fate = catalog_new(&worker->catalog, &settings, error);
	if (fate == FATE_RETRY)
		fate = error->fate = FATE_FATAL;
	if (fate == FATE_OK && worker->quiet)
		fate = learn_refuse_broken(worker->catalog, error);
	else if (fate == FATE_OK)
		learn_say_broken(worker);
	return fate == FATE_OK ? open_registry(learner, worker->config, error) : fate;
}

void learn_close(struct worker *worker)
{
	struct learner *learner = worker->learner;
	catalog_free(worker->catalog);
	worker->catalog = NULL;
	if (learner == NULL)
		return;
	registry_close(learner->registry);
	arena_free(learner->arena);
	pthread_mutex_destroy(&learner->mutex);
	free(learner->kept);
	free(learner->ids);
	free(learner);
	worker->learner = NULL;
}

/* ---- the ids of what we write ---- */

static enum fate find_id(struct worker *worker, struct store *store, const char *subject, struct view text,
                         int32_t *ret_id, struct error *error)
{
	bool look_only = !config_flag(worker->config, PARAM_REGISTRY_AUTO_REGISTER), found = false;
	enum fate fate = shelf_own(store, learn_registry(worker), subject, text, ret_id, &found, error);
	if (fate != FATE_OK || found)
		return fate;
	fate = ask_own_id(worker->learner->registry, subject, text, look_only, ret_id, error);
	if (fate == FATE_OK)
		fate = shelf_keep_own(store, learn_registry(worker), subject, text, *ret_id, error);
	if (fate == FATE_OK)
		log_info("worker", "registry: our schema has id %" PRId32 " under subject %s", *ret_id, subject);
	return fate;
}

static enum fate own_id(struct worker *worker, struct store *store, enum record_type type, const char *topic,
                        struct error *error)
{
	struct learner *learner = worker->learner;
	struct view text = codec_schema_text(type);
	struct schema_want want = { .kind = WANT_ID };
	char subject[REGISTRY_SUBJECT_MAX];
	enum fate fate = registry_subject_of(worker->config, type, topic, subject, error);
	if (fate == FATE_OK)
		fate = find_id(worker, store, subject, text, &want.id, error);
	if (fate == FATE_OK)
		fate = catalog_learn(worker->catalog, &want, text, error);
	if (fate == FATE_OK)
		learner->ids[learner->ids_len++] = (struct written_id){ topic, type, want.id };
	return fate;
}

enum fate learn_own_ids(struct worker *worker, struct store *store, struct error *error)
{
	const struct config *config = worker->config;
	struct learner *learner = worker->learner;
	size_t resumes;
	const char *const *topics = config_resumes_topics(config, &resumes);
	if (learner->registry == NULL)
		return FATE_OK;
	free(learner->ids);
	learner->ids_len = 0;
	learner->ids = calloc(resumes + 2, sizeof(*learner->ids));
	if (learner->ids == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory");
	arena_reset(learner->arena);
	enum fate fate = own_id(worker, store, RECORD_GATE, registry_topic_of(config, RECORD_GATE), error);
	if (fate == FATE_OK)
		fate = own_id(worker, store, RECORD_APPROVAL, registry_topic_of(config, RECORD_APPROVAL), error);
	for (size_t i = 0; i < resumes && fate == FATE_OK; i++)
		fate = own_id(worker, store, RECORD_RESUME, topics[i], error);
	return fate;
}

void learn_write_ids(const struct worker *worker, struct codec *codec, const char *topic)
{
	for (size_t i = 0; i < worker->learner->ids_len; i++)
		if (strcmp(worker->learner->ids[i].topic, topic) == 0)
			codec_write_id(codec, worker->learner->ids[i].type, worker->learner->ids[i].id);
}

/* ---- the thread ---- */

struct learning {
	struct worker *worker;
	struct learner *learner;
	struct store *store;
	struct backoff backoff;
	int64_t ask_at_ms;
	int64_t folder_at_ms;
	uint64_t reads_said; /* of learner->folder_reads */
	uint64_t reads_kept;
	int64_t refresh_at_ms;
	int64_t say_at_ms;
};

static void say(struct learning *learning, const struct error *error)
{
	if (clock_mono_ms() < learning->say_at_ms)
		return;
	learning->say_at_ms = clock_mono_ms() + SAY_MS;
	log_error(LOG_LEVEL_WARN, "schemas", error);
}

/* A relay that misses a schema looks at the folder itself, and then it is that look which sees the change: what is to be
 * said and kept goes by how often the folder was read, not by who has read it. */
static void follow_folder(struct learning *learning)
{
	struct worker *worker = learning->worker;
	struct error error = { 0 };
	bool changed = false;
	if (clock_mono_ms() < learning->folder_at_ms)
		return;
	learning->folder_at_ms = clock_mono_ms() + FOLDER_MS;
	enum fate fate = learn_folder(worker, &changed, &error);
	if (fate != FATE_OK) {
		say(learning, &error);
		return;
	}
	uint64_t reads = atomic_load(&learning->learner->folder_reads);
	if (reads != learning->reads_said)
		log_info("schemas", "schemas.path was read again: %zu schemas, %zu of them readers of states",
		         catalog_schemas(worker->catalog), catalog_readers(worker->catalog));
	learning->reads_said = reads;
	if (reads == learning->reads_kept)
		return;
	if (learn_keep_folder(worker, learning->store, &error) == FATE_OK)
		learning->reads_kept = reads;
	else /* it is tried again */
		say(learning, &error);
}

/* What the registry gave is kept: the texts, their ids, and which one is the reader now, if there is one. */
static enum fate keep(struct learning *learning, const struct schema_want *want, struct view answer,
                      const struct ask_found *found, size_t len, struct error *error)
{
	struct arena *arena = learning->learner->arena;
	struct registry_fact *facts = arena_array(arena, len + 1, sizeof(*facts));
	struct schema_row *rows = arena_array(arena, len + 1, sizeof(*rows));
	char ref[SHELF_REF_MAX];
	size_t n = 0, texts = 0;
	enum fate fate = FATE_OK;
	if (facts == NULL || rows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for what the registry said");
	for (size_t i = 0; i < len && fate == FATE_OK; i++) {
		fate = shelf_identify(found[i].text, &rows[texts++], error);
		if (found[i].id > 0)
			facts[n++] =
				(struct registry_fact){ FACT_ID, view_of(arena_printf(arena, "%" PRId32, found[i].id)),
				                        found[i].id, rows[texts - 1] };
	}
	bool reader = want->kind == WANT_READER;
	shelf_ref(want, ref);
	if (reader || (want->kind == WANT_GUID && !view_is_null(answer)))
		facts[n++] = (struct registry_fact){ .kind = reader ? FACT_READER : FACT_GUID, .ref = view_of(ref) };
	if (fate == FATE_OK && n > 0 && facts[n - 1].kind != FACT_ID && !view_is_null(answer))
		fate = shelf_identify(answer, &facts[n - 1].schema, error);
	if (fate == FATE_OK && texts > 0)
		fate = store_schemas_keep(learning->store, rows, texts, clock_real_us(), error);
	return fate == FATE_OK && n > 0 ? store_registry_keep(learning->store, learn_registry(learning->worker),
	                                                      facts, n, clock_real_us(), error)
	                                : fate;
}

static enum fate answer(struct learning *learning, const struct schema_want *want, struct error *error)
{
	struct learner *learner = learning->learner;
	struct ask_found *found = NULL;
	struct view text = VIEW_NULL;
	size_t len = 0;
	arena_reset(learner->arena);
	enum fate fate = registry_ask(learner->registry, learning->worker->catalog, want,
	                              config_text(learning->worker->config, PARAM_REGISTRY_STATE_SUBJECT),
	                              registry_record_subject(learning->worker->config, want, learner->arena),
	                              learner->arena, &text, &found, &len, error);
	if (fate != FATE_OK)
		return fate;
	struct error kept; /* it is known all the same; whoever seals with it keeps it first */
	if (keep(learning, want, text, found, len, &kept) != FATE_OK)
		log_error(LOG_LEVEL_WARN, "schemas", &kept);
	return FATE_OK;
}

static bool first_want(struct learner *learner, struct schema_want *ret_want)
{
	pthread_mutex_lock(&learner->mutex);
	bool any = learner->queue_len > 0;
	if (any)
		*ret_want = learner->queue[0];
	pthread_mutex_unlock(&learner->mutex);
	return any;
}

static void drop_first(struct learner *learner)
{
	pthread_mutex_lock(&learner->mutex);
	learner->queue_len--;
	memmove(learner->queue, learner->queue + 1, learner->queue_len * sizeof(*learner->queue));
	pthread_mutex_unlock(&learner->mutex);
}

/* The registry is away: nothing is refused for that, and nobody but those who need it waits. */
static void be_patient(struct learning *learning, const struct error *error)
{
	worker_part_ok(learning->worker, PART_REGISTRY, false);
	say(learning, error);
	learning->ask_at_ms = clock_mono_ms() + backoff_next(&learning->backoff);
	if (!atomic_exchange(&learning->learner->away, true))
		learn_tell(learning->worker); /* who can do with what was known before does so now */
}

static enum fate serve_one(struct learning *learning, const struct schema_want *want, struct error *error)
{
	enum looked looked;
	enum fate fate = shelf_look(learning->store, learning->worker->catalog, learn_registry(learning->worker),
	                            want, &looked, error);
	if (fate != FATE_OK || looked == LOOKED_LEARNT)
		return fate;
	fate = answer(learning, want, error);
	if (fate == FATE_OK)
		atomic_store(&learning->learner->away, false);
	return fate;
}

static void serve(struct learning *learning)
{
	struct schema_want want;
	struct error error = { 0 };
	while (clock_mono_ms() >= learning->ask_at_ms && !worker_stopping(learning->worker) &&
	       first_want(learning->learner, &want)) {
		if (serve_one(learning, &want, &error) != FATE_OK) {
			be_patient(learning, &error);
			return;
		}
		drop_first(learning->learner);
		backoff_reset(&learning->backoff);
		learn_tell(learning->worker);
	}
	if (!first_want(learning->learner, &want))
		worker_part_ok(learning->worker, PART_REGISTRY, true);
}

static enum fate refresh_reader(struct learning *learning, struct view name, struct error *error)
{
	struct schema_want want = { .kind = WANT_READER };
	if (name.len > CATALOG_NAME_MAX)
		return FATE_OK;
	memcpy(want.name, name.data, name.len);
	return answer(learning, &want, error);
}

/* Readers may have newer versions. While the registry is away the ones that are known go on. */
static void refresh(struct learning *learning)
{
	struct registry_reader *readers;
	size_t len = 0;
	struct error error = { 0 };
	if (clock_mono_ms() < learning->refresh_at_ms)
		return;
	learning->refresh_at_ms =
		clock_mono_ms() + config_number(learning->worker->config, PARAM_REGISTRY_REFRESH);
	struct arena *arena = arena_new(ANSWER_BYTES);
	if (arena == NULL)
		return;
	enum fate fate = store_registry_readers(learning->store, learn_registry(learning->worker), arena,
	                                        &readers, &len, &error);
	for (size_t i = 0; fate == FATE_OK && i < len && !worker_stopping(learning->worker); i++)
		fate = refresh_reader(learning, readers[i].name, &error);
	if (fate != FATE_OK)
		say(learning, &error);
	arena_free(arena);
}

void learn_interrupt(struct worker *worker)
{
	if (worker->learner != NULL && worker->learner->registry != NULL)
		registry_interrupt(worker->learner->registry);
}

void *learn_thread(void *argument)
{
	struct worker *worker = argument;
	struct learning learning = { .worker = worker, .learner = worker->learner };
	struct error error = { 0 };
	backoff_init(&learning.backoff, 250, 30000);
	enum fate fate = worker_open_store(worker, "schemas", &learning.store, &error);
	if (fate != FATE_OK)
		worker_fail(worker, "schemas", &error);
	while (fate == FATE_OK && !worker_wait(worker, TICK_MS)) {
		follow_folder(&learning);
		if (worker->learner->registry == NULL)
			continue;
		serve(&learning);
		refresh(&learning);
	}
	store_close(learning.store);
	return NULL;
}
