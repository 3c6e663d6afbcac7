/* What a catalog is missing, asked of a registry. */
#include "schemas/ask.h"

#include <assert.h>
#include <string.h>

#define SUBJECT_MAX ((size_t)8192)

struct ask {
	struct registry *registry;
	struct catalog *catalog;
	const struct schema_want *want;
	struct arena *arena;
	struct view answer;
	struct ask_found *found;
	size_t found_len;
	struct error *error;
};

static enum fate no_room(const struct ask *ask)
{
	return error_set(ask->error, FATE_RETRY, ERR_MEMORY, "no room in the arena for the registry's schemas");
}

static enum fate find(struct ask *ask, const struct registry_version *versions, size_t len)
{
	ask->found = arena_array(ask->arena, len, sizeof(*ask->found));
	if (ask->found == NULL)
		return no_room(ask);
	for (size_t i = 0; i < len; i++)
		ask->found[i] = (struct ask_found){ versions[i].text, versions[i].id };
	ask->found_len = len;
	return FATE_OK;
}

/* Is it what was wanted? Then it is the answer. */
static enum fate learn(struct ask *ask, const struct schema_want *as, struct view text)
{
	enum fate fate = catalog_learn(ask->catalog, as, text, ask->error);

	if (fate == FATE_OK && want_equal(as, ask->want))
		ask->answer = text;
	return fate;
}

/* --- one schema --- */

static enum fate ask_one(struct ask *ask)
{
	struct registry_version version = { 0 };
	enum fate fate;

	if (ask->want->kind == WANT_ID)
		fate = registry_by_id(ask->registry, ask->want->id, ask->arena, &version.text, ask->error);
	else
		fate = registry_by_guid(ask->registry, ask->want->guid, ask->arena, &version.text, ask->error);
	version.id = ask->want->kind == WANT_ID ? ask->want->id : 0;
	if (fate == FATE_OK)
		fate = find(ask, &version, 1);
	return fate == FATE_OK ? learn(ask, ask->want, version.text) : fate;
}

static enum fate ask_reader(struct ask *ask, const char *subject)
{
	struct registry_version version;
	enum fate fate = registry_latest(ask->registry, subject, ask->arena, &version, ask->error);

	if (fate == FATE_OK)
		fate = find(ask, &version, 1);
	return fate == FATE_OK ? learn(ask, ask->want, version.text) : fate;
}

/* --- all versions of a subject --- */

/* Every version of a state's schema may be asked for next; of a record's only what was wanted is of use. */
static enum fate look_at(struct ask *ask, struct view text)
{
	struct schema_want as = *ask->want;
	enum fate fate = catalog_identify(text, &as.fingerprint, as.sha256, ask->error);

	if (fate == FATE_OK && (as.kind == WANT_STATE || want_equal(&as, ask->want)))
		fate = learn(ask, &as, text);
	return fate;
}

static enum fate ask_versions(struct ask *ask, const char *subject)
{
	struct registry_version *versions;
	size_t len, unusable;
	enum fate fate =
		registry_versions(ask->registry, subject, ask->arena, &versions, &len, &unusable, ask->error);

	if (fate == FATE_OK)
		fate = find(ask, versions, len);
	for (size_t i = 0; i < len && fate == FATE_OK; i++) {
		fate = look_at(ask, versions[i].text);
		if (fate == FATE_REJECT) { /* this one */
			unusable++;
			fate = FATE_OK;
		}
	}
	if (fate != FATE_OK || !view_is_null(ask->answer))
		return fate;
	return error_set(ask->error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
	                 "none of the %zu versions in the schema registry is it (and %zu cannot be used)", len,
	                 unusable);
}

/* --- subjects --- */

void ask_state_subject(const char *pattern, const char *name, struct buffer *out)
{
	static const char place[] = "{schema}";

	for (const char *at = strstr(pattern, place); at != NULL; at = strstr(pattern, place)) {
		buffer_append(out, pattern, (size_t)(at - pattern));
		buffer_append_text(out, name);
		pattern = at + strlen(place);
	}
	buffer_append_text(out, pattern);
}

/* In the arena; NULL: no room. */
static const char *state_subject_of(const struct ask *ask, const char *pattern)
{
	struct buffer subject;

	buffer_init(&subject, SUBJECT_MAX);
	ask_state_subject(pattern, ask->want->name, &subject);
	const char *text = buffer_failed(&subject) ? NULL : arena_text(ask->arena, buffer_view(&subject));
	buffer_done(&subject);
	return text;
}

static enum fate ask_subject(struct ask *ask, const char *state_subject, const char *record_subject)
{
	bool of_state = ask->want->kind == WANT_READER || ask->want->kind == WANT_STATE;
	const char *subject = of_state ? state_subject : record_subject;

	if (subject == NULL)
		return error_set(ask->error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "no subject of the schema registry is for it");
	if (of_state)
		subject = state_subject_of(ask, state_subject);
	if (subject == NULL)
		return no_room(ask);
	return ask->want->kind == WANT_READER ? ask_reader(ask, subject) : ask_versions(ask, subject);
}

enum fate registry_ask(struct registry *registry, struct catalog *catalog, const struct schema_want *want,
                       const char *state_subject, const char *record_subject, struct arena *arena,
                       struct view *ret_text, struct ask_found **ret_found, size_t *ret_found_len,
                       struct error *error)
{
	struct error own;
	struct ask ask = { .registry = registry, .catalog = catalog, .want = want, .arena = arena };

	assert(want->kind != WANT_NOTHING);
	ask.error = error == NULL ? &own : error;
	enum fate fate = want->kind == WANT_ID || want->kind == WANT_GUID
	                     ? ask_one(&ask)
	                     : ask_subject(&ask, state_subject, record_subject);
	if (fate == FATE_REJECT) {
		catalog_deny(catalog, want, ASK_DENY_MS, ask.error->message);
		fate = FATE_OK;
	}
	*ret_text = fate == FATE_OK ? ask.answer : VIEW_NULL;
	*ret_found = fate == FATE_OK ? ask.found : NULL;
	*ret_found_len = fate == FATE_OK ? ask.found_len : 0;
	return fate;
}

enum fate ask_own_id(struct registry *registry, const char *subject, struct view text, bool look_only,
                     int32_t *ret_id, struct error *error)
{
	enum fate fate = look_only ? registry_lookup(registry, subject, text, ret_id, error)
	                           : registry_register(registry, subject, text, ret_id, error);
	if (fate != FATE_REJECT)
		return fate;
	(void)error_wrap(error, "our own schema under subject %.100s", subject);
	error->code = ERR_USAGE;
	return error->fate = FATE_FATAL;
}
