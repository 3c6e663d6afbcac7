/* Questions to a registry about a subject: its versions, what is in it, what would be. */
#include "schemas/registry_inner.h"

#include "schemas/fingerprint.h"

#include <stdio.h>
#include <string.h>

#define SUBJECT_MAX   4096
#define SCRATCH_BYTES ((size_t)16 * 1024 * 1024) /* of the versions that a text is looked for in */

static bool is_subject(struct view subject)
{
	return subject.len > 0 && subject.len <= SUBJECT_MAX && view_is_utf8(subject) &&
	       !view_equal_text(subject, ".") && !view_equal_text(subject, "..");
}

/* Begins a question: before, the subject, after. */
static enum fate ask_about(struct registry *registry, const char *before, const char *subject,
                           const char *after, struct error *error)
{
	if (!is_subject(view_of(subject)))
		return error_set(error, FATE_REJECT, ERR_INVALID, "there can be no such subject");
	buffer_reset(&registry->path);
	buffer_reset(&registry->question);
	buffer_append_text(&registry->path, before);
	question_segment(view_of(subject), &registry->path);
	buffer_append_text(&registry->path, after);
	return FATE_OK;
}

static enum fate about(const struct registry *registry, const char *subject, enum fate fate,
                       struct error *error)
{
	char shown[64];

	if (fate == FATE_OK)
		return fate;
	put_line(view_of(subject), shown, sizeof(shown));
	return error_wrap(error, "subject %s of the schema registry %s", shown, registry->shown);
}

/* --- versions --- */

/* which: "latest" or a number. */
static enum fate ask_version(struct registry *registry, const char *subject, const char *which,
                             struct arena *arena, struct registry_version *ret_version, struct error *error)
{
	char after[40];
	struct view body;

	snprintf(after, sizeof(after), "/versions/%s", which);
	enum fate fate = ask_about(registry, "/subjects/", subject, after, error);
	if (fate == FATE_OK)
		fate = registry_question(registry, ANSWER_SCHEMA_MAX, &body, error);
	return fate == FATE_OK ? answer_schema(body, arena, ret_version, error) : fate;
}

/*
 * Newest first, so that what does not fit is the oldest; they are filled in from the end of room for len. A
 * version that was deleted meanwhile is one that cannot be used.
 */
static enum fate ask_each(struct registry *registry, const char *subject, const int32_t *numbers, size_t len,
                          struct arena *arena, struct registry_version *room, size_t *ret_first,
                          struct error *error)
{
	size_t bytes = 0, first = len;

	for (size_t i = len; i > 0 && bytes <= REGISTRY_VERSIONS_BYTES; i--) {
		struct registry_version version;
		char which[16];
		snprintf(which, sizeof(which), "%d", (int)numbers[i - 1]);
		enum fate fate = ask_version(registry, subject, which, arena, &version, error);
		if (fate == FATE_REJECT)
			continue;
		if (fate != FATE_OK)
			return fate;
		bytes += version.text.len;
		if (bytes > REGISTRY_VERSIONS_BYTES)
			break;
		version.version = numbers[i - 1];
		room[--first] = version;
	}
	*ret_first = first;
	return FATE_OK;
}

static enum fate ask_versions(struct registry *registry, const char *subject, struct arena *arena,
                              struct registry_version **ret_versions, size_t *ret_len, size_t *ret_unusable,
                              struct error *error)
{
	struct view body;
	int32_t *numbers = NULL;
	size_t len = 0, first = 0;
	enum fate fate = ask_about(registry, "/subjects/", subject, "/versions", error);

	if (fate == FATE_OK)
		fate = registry_question(registry, ANSWER_LIST_MAX, &body, error);
	if (fate == FATE_OK)
		fate = answer_numbers(body, REGISTRY_VERSIONS_MAX, arena, &numbers, &len, error);
	if (fate != FATE_OK)
		return fate;
	if (len == 0)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "it has no version");
	struct registry_version *room = arena_array(arena, len, sizeof(*room));
	if (room == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no room in the arena for %zu versions", len);
	fate = ask_each(registry, subject, numbers, len, arena, room, &first, error);
	if (fate != FATE_OK)
		return fate;
	*ret_versions = room + first;
	*ret_len = len - first;
	*ret_unusable = first;
	return FATE_OK;
}

enum fate registry_versions(struct registry *registry, const char *subject, struct arena *arena,
                            struct registry_version **ret_versions, size_t *ret_len, size_t *ret_unusable,
                            struct error *error)
{
	size_t unusable = 0;

	*ret_versions = NULL;
	*ret_len = 0;
	registry_begin(registry, REGISTRY_MANY);
	enum fate fate = ask_versions(registry, subject, arena, ret_versions, ret_len, &unusable, error);
	if (ret_unusable != NULL)
		*ret_unusable = unusable;
	return about(registry, subject, fate, error);
}

enum fate registry_latest(struct registry *registry, const char *subject, struct arena *arena,
                          struct registry_version *ret_version, struct error *error)
{
	*ret_version = (struct registry_version){ 0 };
	registry_begin(registry, 1);
	return about(registry, subject, ask_version(registry, subject, "latest", arena, ret_version, error),
	             error);
}

/* --- register and look up --- */

static enum fate ask_with_schema(struct registry *registry, const char *before, const char *subject,
                                 const char *after, struct view text, struct error *error)
{
	enum fate fate = ask_about(registry, before, subject, after, error);

	return fate == FATE_OK ? question_schema(text, &registry->question, error) : fate;
}

enum fate registry_register(struct registry *registry, const char *subject, struct view text, int32_t *ret_id,
                            struct error *error)
{
	struct view body;

	*ret_id = 0;
	registry_begin(registry, 1);
	enum fate fate = ask_with_schema(registry, "/subjects/", subject, "/versions", text, error);
	if (fate == FATE_OK)
		fate = registry_question(registry, ANSWER_SCHEMA_MAX, &body, error);
	if (fate == FATE_OK)
		fate = answer_id(body, ret_id, error);
	return about(registry, subject, fate, error);
}

/* REJECT ERR_INVALID: it is no schema. */
static enum fate sha256_of(struct view text, uint8_t ret_sha256[32], struct error *error)
{
	struct schema *schema = NULL;
	struct buffer canonical;
	enum fate fate = schema_parse(&schema, text, error);

	if (fate != FATE_OK)
		return fate;
	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	fate = schema_canonical(schema, &canonical, error);
	if (fate == FATE_OK)
		fingerprint_sha256(buffer_view(&canonical), ret_sha256);
	buffer_done(&canonical);
	schema_free(schema);
	return fate;
}

/* The newest version that has the text's canonical form. */
static enum fate look_through(struct registry *registry, const char *subject, struct view text,
                              struct arena *arena, int32_t *ret_id, struct error *error)
{
	struct registry_version *versions = NULL;
	size_t len = 0, unusable;
	uint8_t wanted[32], found[32];
	enum fate fate = sha256_of(text, wanted, error);

	if (fate == FATE_OK)
		fate = ask_versions(registry, subject, arena, &versions, &len, &unusable, error);
	if (fate != FATE_OK)
		return fate;
	for (size_t i = len; i > 0; i--) {
		fate = sha256_of(versions[i - 1].text, found, error);
		if (fate != FATE_OK)
			return fate;
		if (versions[i - 1].id != 0 && memcmp(wanted, found, sizeof(wanted)) == 0) {
			*ret_id = versions[i - 1].id;
			return FATE_OK;
		}
	}
	return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
	                 "none of its %zu versions is this schema; register it", len);
}

/* The registry did not find the text as it stands; its own comparison may hang on blanks. */
static enum fate look_closer(struct registry *registry, const char *subject, struct view text,
                             int32_t *ret_id, struct error *error)
{
	struct arena *arena = arena_new(SCRATCH_BYTES);

	if (arena == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the versions of a subject");
	enum fate fate = look_through(registry, subject, text, arena, ret_id, error);
	arena_free(arena);
	return fate;
}

enum fate registry_lookup(struct registry *registry, const char *subject, struct view text, int32_t *ret_id,
                          struct error *error)
{
	struct reply reply = { 0 };
	struct refusal refusal;

	*ret_id = 0;
	registry_begin(registry, REGISTRY_MANY);
	enum fate fate = ask_with_schema(registry, "/subjects/", subject, "", text, error);
	if (fate == FATE_OK)
		fate = registry_exchange(registry, ANSWER_SCHEMA_MAX, &reply, error);
	if (fate != FATE_OK)
		return about(registry, subject, fate, error);
	answer_refusal(reply.body, &refusal);
	if (reply.status == 404 && refusal_is_absence(&refusal) && refusal.code != REFUSED_SUBJECT)
		return about(registry, subject, look_closer(registry, subject, text, ret_id, error), error);
	fate = registry_judge(registry, &reply, error);
	if (fate == FATE_OK)
		fate = answer_id(reply.body, ret_id, error);
	return about(registry, subject, fate, error);
}

/* --- what it would take --- */

/* Against all versions that its rule asks for; where that question is not known, against the last one. */
static enum fate ask_compatible(struct registry *registry, const char *subject, struct view text,
                                struct reply *ret_reply, struct refusal *ret_refusal, struct error *error)
{
	static const char *const afters[] = { "/versions?verbose=true", "/versions/latest?verbose=true" };
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < sizeof(afters) / sizeof(afters[0]); i++) {
		fate = ask_with_schema(registry, "/compatibility/subjects/", subject, afters[i], text, error);
		if (fate == FATE_OK)
			fate = registry_exchange(registry, ANSWER_SCHEMA_MAX, ret_reply, error);
		if (fate != FATE_OK)
			return fate;
		answer_refusal(ret_reply->body, ret_refusal);
		bool unknown =
			ret_reply->status == 405 || (ret_reply->status == 404 && !refusal_is_absence(ret_refusal));
		if (!unknown)
			break;
	}
	return fate;
}

enum fate registry_compatible(struct registry *registry, const char *subject, struct view text,
                              struct arena *arena, bool *ret_compatible, struct view *ret_why,
                              struct error *error)
{
	struct reply reply = { 0 };
	struct refusal refusal = { 0 };

	*ret_compatible = false;
	*ret_why = VIEW_NULL;
	registry_begin(registry, 1);
	enum fate fate = ask_compatible(registry, subject, text, &reply, &refusal, error);
	if (fate == FATE_OK && reply.status == 404 && refusal_is_absence(&refusal)) {
		*ret_compatible = true; /* there is nothing that it could be at odds with */
		return FATE_OK;
	}
	if (fate == FATE_OK && reply.status == 422 && refusal.json) { /* it is no schema to the registry */
		if (refusal.message[0] != '\0')
			*ret_why = arena_copy(arena, view_of(refusal.message));
		return FATE_OK;
	}
	if (fate == FATE_OK)
		fate = registry_judge(registry, &reply, error);
	if (fate == FATE_OK)
		fate = answer_compatible(reply.body, arena, ret_compatible, ret_why, error);
	return about(registry, subject, fate, error);
}

/* Answers the question that is in the path. */
static enum fate take_rule(struct registry *registry, struct arena *arena, struct view *ret_rule,
                           struct error *error)
{
	struct view body = VIEW_NULL;
	enum fate fate = registry_question(registry, ANSWER_SMALL_MAX, &body, error);

	return fate == FATE_OK ? answer_rule(body, arena, ret_rule, error) : fate;
}

static enum fate global_rule(struct registry *registry, struct arena *arena, struct view *ret_rule,
                             struct error *error)
{
	buffer_reset(&registry->path);
	buffer_reset(&registry->question);
	buffer_append_text(&registry->path, "/config");
	return take_rule(registry, arena, ret_rule, error);
}

enum fate registry_rule(struct registry *registry, const char *subject, struct arena *arena,
                        struct view *ret_rule, struct error *error)
{
	*ret_rule = VIEW_NULL;
	registry_begin(registry, 1);
	if (!subject) {
		enum fate global = global_rule(registry, arena, ret_rule, error);
		return global == FATE_OK ? FATE_OK : error_wrap(error, "schema registry %s", registry->shown);
	}
	enum fate fate = ask_about(registry, "/config/", subject, "", error);
	if (fate != FATE_OK)
		return about(registry, subject, fate, error);
	fate = take_rule(registry, arena, ret_rule, error);
	if (fate == FATE_REJECT && error->code == ERR_UNKNOWN_SCHEMA)
		fate = global_rule(registry, arena, ret_rule, error);
	return about(registry, subject, fate, error);
}
