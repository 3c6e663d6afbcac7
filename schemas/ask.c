#include "schemas/ask.h"

#include <stdio.h>
#include <string.h>

#define SUBJECT_MAX 4096
#define WHY_MAX     100 /* bytes of a registry's own words in a refusal */
#define PLACEHOLDER "{schema}"

/* One question, and what came of it. */
struct asking {
	struct registry *registry;
	struct catalog *catalog;
	const struct schema_want *want;
	struct arena *arena;
	struct view answer; /* the null view: there is none */
	struct ask_found *found;
	size_t len;
};

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for what the registry said");
}

/* Learns text as the answer, when it is one: what does not fit the want is none. */
static enum fate try_answer(struct asking *asking, struct view text, struct error *error)
{
	enum fate fate = catalog_learn(asking->catalog, asking->want, text, error);

	if (fate == FATE_OK)
		asking->answer = text;
	return fate;
}

static enum fate note_found(struct asking *asking, struct view text, int32_t id, struct error *error)
{
	asking->found = arena_array(asking->arena, 1, sizeof(*asking->found));
	if (!asking->found)
		return no_memory(error);
	asking->found[0] = (struct ask_found){ text, id };
	asking->len = 1;
	return FATE_OK;
}

static enum fate ask_id(struct asking *asking, struct error *error)
{
	struct view text;
	const struct schema_want *want = asking->want;
	int32_t id = want->kind == WANT_ID ? want->id : 0;

	enum fate fate = want->kind == WANT_ID
	                     ? registry_by_id(asking->registry, want->id, asking->arena, &text, error)
	                     : registry_by_guid(asking->registry, want->guid, asking->arena, &text, error);
	if (fate == FATE_OK)
		fate = note_found(asking, text, id, error);
	return fate == FATE_OK ? try_answer(asking, text, error) : fate;
}

static enum fate read_versions(struct asking *asking, const char *subject, struct error *error)
{
	struct registry_version *versions;
	size_t len, unusable;
	enum fate fate =
		registry_versions(asking->registry, subject, asking->arena, &versions, &len, &unusable, error);

	if (fate != FATE_OK)
		return fate;
	if (len == 0)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "subject %.80s has no version that can be used", subject);
	asking->found = arena_array(asking->arena, len, sizeof(*asking->found));
	if (!asking->found)
		return no_memory(error);
	for (size_t i = 0; i < len; i++)
		asking->found[i] = (struct ask_found){ versions[i].text, versions[i].id };
	asking->len = len;
	return FATE_OK;
}

/* One of the versions of our own record's subject. */
static enum fate ask_record(struct asking *asking, const char *subject, struct error *error)
{
	if (!subject)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no subject is known for it");
	enum fate fate = read_versions(asking, subject, error);
	for (size_t i = 0; fate == FATE_OK && i < asking->len && !asking->answer.data; i++) {
		fate = try_answer(asking, asking->found[i].text, error);
		if (fate == FATE_REJECT)
			fate = FATE_OK;
	}
	return fate;
}

/* Every version of a state's subject is what some state was written with. */
static enum fate learn_written(struct asking *asking, struct view text, struct error *error)
{
	struct schema_want want = *asking->want;
	uint8_t sha256[32];

	want.kind = WANT_STATE;
	enum fate fate = catalog_identify(text, &want.fingerprint, sha256, error);
	if (fate == FATE_OK)
		fate = catalog_learn(asking->catalog, &want, text, error);
	if (fate == FATE_OK && want_equal(&want, asking->want))
		asking->answer = text;
	return fate == FATE_REJECT ? FATE_OK : fate;
}

static enum fate ask_state(struct asking *asking, const char *subject, struct error *error)
{
	enum fate fate = read_versions(asking, subject, error);

	for (size_t i = 0; fate == FATE_OK && i < asking->len; i++)
		fate = learn_written(asking, asking->found[i].text, error);
	if (fate != FATE_OK)
		return fate;
	struct schema_want reader = *asking->want;
	struct view last = asking->found[asking->len - 1].text;
	reader.kind = WANT_READER;
	reader.fingerprint = 0;
	fate = catalog_learn(asking->catalog, &reader, last, error);
	if (fate == FATE_OK && asking->want->kind == WANT_READER)
		asking->answer = last;
	return fate;
}

/* The pattern with the schema's name in it. */
static char *state_subject_of(const char *pattern, const char *name, struct arena *arena)
{
	struct buffer subject;
	const char *at = pattern, *next;
	char *text = NULL;

	buffer_init(&subject, SUBJECT_MAX);
	while ((next = strstr(at, PLACEHOLDER)) != NULL) {
		buffer_append(&subject, at, (size_t)(next - at));
		buffer_append_text(&subject, name);
		at = next + strlen(PLACEHOLDER);
	}
	buffer_append_text(&subject, at);
	if (!buffer_failed(&subject))
		text = arena_text(arena, buffer_view(&subject));
	buffer_done(&subject);
	return text;
}

static enum fate ask(struct asking *asking, const char *state_subject, const char *record_subject,
                     struct error *error)
{
	enum want_kind kind = asking->want->kind;

	if (kind == WANT_ID || kind == WANT_GUID)
		return ask_id(asking, error);
	if (kind == WANT_SHA256 || kind == WANT_FINGERPRINT)
		return ask_record(asking, record_subject, error);
	char *subject = state_subject_of(state_subject, asking->want->name, asking->arena);
	return subject ? ask_state(asking, subject, error) : no_memory(error);
}

enum fate registry_ask(struct registry *registry, struct catalog *catalog, const struct schema_want *want,
                       const char *state_subject, const char *record_subject, struct arena *arena,
                       struct view *ret_text, struct ask_found **ret_found, size_t *ret_found_len,
                       struct error *error)
{
	struct asking asking = { .registry = registry, .catalog = catalog, .want = want, .arena = arena };
	char why[WHY_MAX + 1] = "";
	enum fate fate = ask(&asking, state_subject, record_subject, error);

	if (fate == FATE_REJECT) {
		snprintf(why, sizeof(why), "%.*s", WHY_MAX, error->message);
		fate = FATE_OK;
	}
	if (fate != FATE_OK)
		return fate;
	if (!asking.answer.data)
		catalog_deny(catalog, want, ASK_DENY_MS, why[0] ? why : NULL);
	*ret_text = asking.answer;
	*ret_found = asking.found;
	*ret_found_len = asking.len;
	return FATE_OK;
}
