#include "worker/survey.h"
#include "worker/learn.h"
#include "worker/ledger_head.h"
#include "worker/letters_known.h"
#include "worker/registry_settings.h"
#include "worker/scan.h"

#include "schemas/ask.h"
#include "schemas/codec.h"
#include "vault/vault.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

/* One record of any of the three topics, as far as it is counted. */
struct sight {
	struct uuid id;         /* of the checkpoint; of the decision, for an approval */
	struct uuid checkpoint; /* of an approval: which one it is about */
	uint64_t digest;        /* of its bytes, the first eight of it */
	uint64_t line;          /* of a suspend: its tenant, session and gate */
	int64_t seq;            /* of a suspend */
	int what;               /* verdict, kind */
	bool decided;           /* of a suspend: there is a decision about it */
	size_t at;              /* order of reading */
};

struct sights {
	struct sight *items;
	size_t len;
	size_t cap;
};

struct looking {
	const struct config *config;
	struct survey *survey;
	struct codec *codec;
	struct codec *wide; /* a resume is larger than the suspend that it is of */
	struct arena *arena;
	struct catalog *catalog;
	struct registry *registry; /* NULL: none is configured */
	struct arena *answers;     /* of the registry */
	struct letters_known letters;
	struct sights sights[REBUILD_PHASES];
	enum rebuild_phase phase;
	bool (*stop)(void *context);
	void *context;
};

static bool asked_to_stop(void *context)
{
	struct looking *looking = context;
	return looking->stop != NULL && looking->stop(looking->context);
}

/* ---- one record ---- */

static uint64_t first_eight(const uint8_t digest[DIGEST_LEN])
{
	uint64_t bits;
	memcpy(&bits, digest, sizeof(bits));
	return bits;
}

static uint64_t digest_of(struct view bytes)
{
	uint8_t digest[DIGEST_LEN];
	vault_digest(bytes, digest);
	return first_eight(digest);
}

/* With the lengths before them, so that no two lines run together. */
static bool line_of(const struct suspend_event *event, uint64_t *ret_line)
{
	const struct view parts[] = { event->tenant, event->session_id, event->gate.gate_id };
	struct buffer bytes;
	buffer_init(&bytes, MIB);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		buffer_append(&bytes, &parts[i].len, sizeof(parts[i].len));
		buffer_append_view(&bytes, parts[i]);
	}
	bool good = !buffer_failed(&bytes);
	if (good)
		*ret_line = digest_of(buffer_view(&bytes));
	buffer_done(&bytes);
	return good;
}

/* What a codec is missing is asked for at the registry, at once; nothing of it is kept. True: call it again. */
static bool learn(struct looking *looking, const struct codec *codec, enum fate *fate, struct error *error)
{
	struct ask_found *found;
	struct view text;
	size_t len;
	if (*fate != FATE_RETRY || error->code != ERR_UNKNOWN_SCHEMA || looking->registry == NULL)
		return false;
	arena_reset(looking->answers);
	const struct schema_want *want = codec_want(codec);
	*fate = registry_ask(looking->registry, looking->catalog, want,
	                     config_text(looking->config, PARAM_REGISTRY_STATE_SUBJECT),
	                     registry_record_subject(looking->config, want, looking->answers), looking->answers,
	                     &text, &found, &len, error);
	return *fate == FATE_OK;
}

static enum fate see_suspend(struct looking *looking, const struct record *record, struct sight *sight,
                             struct error *error)
{
	struct suspend_event event;
	struct view body;
	uint8_t sha256[32];
	enum fate fate;
	do {
		codec_schema_header(looking->codec, record_header(record, SCHEMA_ID_HEADER));
		fate = codec_take_suspend_written(looking->codec, record->value, looking->arena, &event, &body,
		                                  sha256, error);
	} while (learn(looking, looking->codec, &fate, error));
	if (fate != FATE_OK)
		return fate;
	sight->id = event.checkpoint_id;
	sight->digest = digest_of(body);
	sight->seq = event.suspend_seq;
	return line_of(&event, &sight->line) ? FATE_OK
	                                     : error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a survey");
}

static enum fate see_approval(struct looking *looking, const struct record *record, struct sight *sight,
                              struct error *error)
{
	struct approval_event event;
	struct view body;
	enum fate fate;
	do {
		codec_schema_header(looking->codec, record_header(record, SCHEMA_ID_HEADER));
		fate = codec_take_approval(looking->codec, record->value, looking->arena, &event, &body, error);
	} while (learn(looking, looking->codec, &fate, error));
	if (fate != FATE_OK)
		return fate;
	sight->id = event.decision_id;
	sight->checkpoint = event.checkpoint_id;
	sight->digest = digest_of(body);
	sight->what = (int)event.decision;
	return FATE_OK;
}

static enum fate see_resume(struct looking *looking, const struct record *record, struct sight *sight,
                            struct error *error)
{
	struct resume_event event;
	enum fate fate;
	do
		fate = ledger_head_read(looking->wide, record, looking->arena, &event, error);
	while (learn(looking, looking->wide, &fate, error));
	if (fate != FATE_OK)
		return fate;
	sight->id = event.resume_id;
	sight->what = (int)event.verdict;
	return FATE_OK;
}

static enum fate keep(struct sights *sights, const struct sight *sight, struct error *error)
{
	if (sights->len == sights->cap) {
		size_t cap = sights->cap == 0 ? 1024 : 2 * sights->cap;
		struct sight *grown = reallocarray(sights->items, cap, sizeof(*grown));
		if (grown == NULL)
			return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for what the topics hold");
		sights->items = grown;
		sights->cap = cap;
	}
	sights->items[sights->len] = *sight;
	sights->items[sights->len].at = sights->len;
	sights->len++;
	return FATE_OK;
}

static enum fate each(void *context, const struct scan_part *part, const struct record *record,
                      struct error *error)
{
	static enum fate (*const see[REBUILD_PHASES])(struct looking *, const struct record *, struct sight *,
	                                              struct error *) = {
		[REBUILD_RESUMES] = see_resume,
		[REBUILD_SUSPENDS] = see_suspend,
		[REBUILD_APPROVALS] = see_approval,
	};
	struct looking *looking = context;
	struct survey_topic *topic = &looking->survey->topics[looking->phase];
	struct sight sight = { 0 };
	(void)part;
	arena_reset(looking->arena);
	topic->records++;
	enum fate fate = see[looking->phase](looking, record, &sight, error);
	if (fate == FATE_OK)
		return keep(&looking->sights[looking->phase], &sight, error);
	if (fate != FATE_REJECT)
		return fate;
	topic->unreadable++;
	topic->letters_found += letters_known_has(&looking->letters, looking->phase == REBUILD_SUSPENDS,
	                                          record->at.partition, record->at.offset);
	return FATE_OK;
}

/* ---- what it comes to ---- */

static int by_id(const void *a, const void *b)
{
	const struct sight *x = a, *y = b;
	int order = uuid_compare(&x->id, &y->id);
	return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Each id once, the first that came; the others are doubles or conflicts. Resumes have no bytes to compare. */
static void unite(struct sights *sights, struct survey_topic *topic)
{
	size_t kept = 0;
	if (sights->len > 0)
		qsort(sights->items, sights->len, sizeof(*sights->items), by_id);
	for (size_t i = 0; i < sights->len; i++) {
		const struct sight *sight = &sights->items[i];
		bool again = kept > 0 && uuid_compare(&sights->items[kept - 1].id, &sight->id) == 0;
		if (!again)
			sights->items[kept++] = *sight;
		else if (sights->items[kept - 1].digest == sight->digest)
			topic->doubled++;
		else
			topic->conflicting++;
	}
	sights->len = kept;
	topic->distinct = (int64_t)kept;
}

static struct sight *find(const struct sights *sights, const struct uuid *id)
{
	size_t low = 0, high = sights->len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = uuid_compare(&sights->items[middle].id, id);
		if (order == 0)
			return &sights->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int by_checkpoint(const void *a, const void *b)
{
	return uuid_compare(&((const struct sight *)a)->checkpoint, &((const struct sight *)b)->checkpoint);
}

static int by_line(const void *a, const void *b)
{
	const struct sight *x = a, *y = b;
	int order = (x->line > y->line) - (x->line < y->line);
	return order != 0 ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static void count_decisions(struct looking *looking)
{
	struct sights *decisions = &looking->sights[REBUILD_APPROVALS];
	if (decisions->len > 0)
		qsort(decisions->items, decisions->len, sizeof(*decisions->items), by_checkpoint);
	for (size_t i = 0; i < decisions->len; i++) {
		const struct sight *decision = &decisions->items[i];
		looking->survey->kinds[decision->what]++;
		if (i > 0 && by_checkpoint(decision, &decisions->items[i - 1]) == 0)
			continue;
		struct sight *suspend = find(&looking->sights[REBUILD_SUSPENDS], &decision->checkpoint);
		if (suspend != NULL)
			suspend->decided = true;
		else if (find(&looking->sights[REBUILD_RESUMES], &decision->checkpoint) == NULL)
			looking->survey->early++;
	}
}

static void count_resumes(struct looking *looking)
{
	const struct sights *resumes = &looking->sights[REBUILD_RESUMES];
	for (size_t i = 0; i < resumes->len; i++) {
		looking->survey->verdicts[resumes->items[i].what]++;
		looking->survey->resumed++;
		looking->survey->bare += find(&looking->sights[REBUILD_SUSPENDS], &resumes->items[i].id) == NULL;
	}
}

/* Sorted by line: the last of each line is the one that no other supersedes. */
static void count_suspends(struct looking *looking)
{
	struct sights *suspends = &looking->sights[REBUILD_SUSPENDS];
	if (suspends->len > 0)
		qsort(suspends->items, suspends->len, sizeof(*suspends->items), by_line);
	for (size_t i = 0; i < suspends->len; i++) {
		const struct sight *suspend = &suspends->items[i];
		if (find(&looking->sights[REBUILD_RESUMES], &suspend->id) != NULL)
			continue;
		bool later = i + 1 < suspends->len && suspends->items[i + 1].line == suspend->line;
		if (later)
			looking->survey->superseded++;
		else if (suspend->decided)
			looking->survey->decisions++;
		else
			looking->survey->undecided++;
	}
}

/* ---- the whole ---- */

static enum fate keep_places(struct survey *survey, const struct scan *scan, struct error *error)
{
	struct rebuild_place *grown =
		reallocarray(survey->places, survey->places_len + scan->len + 1, sizeof(*grown));
	if (grown == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a report");
	survey->places = grown;
	for (size_t i = 0; i < scan->len; i++) {
		const struct scan_part *part = &scan->parts[i];
		const char *topic = part->low == 0 ? NULL : arena_printf(survey->arena, "%s", part->topic);
		if (part->low == 0)
			continue;
		if (topic == NULL)
			return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a report");
		grown[survey->places_len++] =
			(struct rebuild_place){ topic, part->partition, part->low, part->first_at, false };
	}
	return FATE_OK;
}

static enum fate read_phase(struct looking *looking, enum rebuild_phase phase, const char *const *topics,
                            size_t len, struct error *error)
{
	struct scan scan = { .each = each, .stop = asked_to_stop, .context = looking };
	size_t record = 4 * (size_t)config_number(looking->config, PARAM_LIMITS_RECORD_BYTES) + 2 * MIB;
	looking->phase = phase;
	enum fate fate = scan_open(&scan, looking->config, record, error);
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = scan_add(&scan, topics[i], error);
	if (fate == FATE_OK)
		fate = scan_run(&scan, error);
	if (fate == FATE_OK)
		fate = keep_places(looking->survey, &scan, error);
	scan_close(&scan);
	if (fate == FATE_OK)
		unite(&looking->sights[phase], &looking->survey->topics[phase]);
	return fate;
}

static enum fate read_all(struct looking *looking, const struct rebuild_options *options, struct error *error)
{
	size_t len;
	const char *const *resumes = config_resumes_topics(looking->config, &len);
	const char *suspends = config_text(looking->config, PARAM_TOPICS_SUSPENDS);
	const char *approvals = config_text(looking->config, PARAM_TOPICS_APPROVALS);
	const char **all = calloc(len + options->resumes_topics_len + 1, sizeof(*all));
	if (all == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the names of topics");
	memcpy(all, resumes, len * sizeof(*all));
	if (options->resumes_topics_len > 0)
		memcpy(all + len, options->resumes_topics, options->resumes_topics_len * sizeof(*all));
	enum fate fate =
		letters_known_read(&looking->letters, looking->config, looking->stop, looking->context, error);
	if (fate == FATE_OK)
		fate = read_phase(looking, REBUILD_RESUMES, all, len + options->resumes_topics_len, error);
	if (fate == FATE_OK)
		fate = read_phase(looking, REBUILD_SUSPENDS, &suspends, 1, error);
	if (fate == FATE_OK)
		fate = read_phase(looking, REBUILD_APPROVALS, &approvals, 1, error);
	free(all);
	return fate;
}

static enum fate open_schemas(struct looking *looking, struct error *error)
{
	struct registry_settings settings;
	registry_settings_of(looking->config, &settings);
	struct catalog_settings catalog = {
		.folder = config_text(looking->config, PARAM_SCHEMAS_PATH),
		.registry = settings.url != NULL,
		.asks = settings.url != NULL,
	};
	enum fate fate = catalog_new(&looking->catalog, &catalog, error);
	if (fate == FATE_OK)
		fate = learn_refuse_broken(looking->catalog, error);
	return fate == FATE_OK && settings.url != NULL ? registry_open(&looking->registry, &settings, error)
	                                               : fate;
}

static enum fate open_looking(struct looking *looking, struct error *error)
{
	size_t record = (size_t)config_number(looking->config, PARAM_LIMITS_RECORD_BYTES);
	looking->arena = arena_new(16 * record + 16 * MIB);
	looking->answers = arena_new(256 * MIB);
	looking->survey->arena = arena_new(4 * MIB);
	if (looking->arena == NULL || looking->answers == NULL || looking->survey->arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a survey");
	enum fate fate = open_schemas(looking, error);
	struct codec_settings settings = {
		.record_bytes = record,
		.strict_boundary = config_choice(looking->config, PARAM_LIMITS_BOUNDARY) == CONFIG_BOUNDARY_STRICT,
		.catalog = looking->catalog,
	};
	if (fate == FATE_OK)
		fate = codec_new(&looking->codec, &settings, error);
	settings.record_bytes = 4 * record + MIB;
	return fate == FATE_OK ? codec_new(&looking->wide, &settings, error) : fate;
}

enum fate survey_run(const struct config *config, const struct rebuild_options *options,
                     bool (*stop)(void *context), void *context, struct survey *ret_survey,
                     struct error *error)
{
	struct looking looking = { .config = config, .survey = ret_survey, .stop = stop, .context = context };
	*ret_survey = (struct survey){ 0 };
	enum fate fate = open_looking(&looking, error);
	if (fate == FATE_OK)
		fate = read_all(&looking, options, error);
	if (fate == FATE_OK) {
		count_decisions(&looking);
		count_resumes(&looking);
		count_suspends(&looking); /* sorts them anew: last */
	}
	for (int i = 0; i < REBUILD_PHASES; i++)
		free(looking.sights[i].items);
	letters_known_done(&looking.letters);
	codec_free(looking.codec);
	codec_free(looking.wide);
	registry_close(looking.registry);
	catalog_free(looking.catalog);
	arena_free(looking.answers);
	arena_free(looking.arena);
	return fate;
}

void survey_done(struct survey *survey)
{
	free(survey->places);
	arena_free(survey->arena);
	*survey = (struct survey){ 0 };
}
