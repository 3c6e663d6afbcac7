/*
 * check_registry.c - `fermata schema check --against-registry`: what the registry says to a schema by its own rule,
 * and what our own resolution says by the same rule, which is the one that will load what waits.
 */
#include "cli/checking.h"
#include "cli/row_json.h"
#include "schemas/ask.h"
#include "schemas/registry.h"
#include "worker/registry_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES  ((size_t)32 << 20)
#define SUBJECT_MAX  4096
#define VERSION_NAME 64

struct asking {
	struct checking *checking;
	struct registry *registry;
	struct arena *arena;
	struct buffer subject; /* with its NUL */
	struct schema **schemas;
	struct check_version *versions;
	char (*names)[VERSION_NAME];
	size_t len;
};

static const char *subject_of(const struct asking *asking)
{
	return (const char *)asking->subject.data;
}

/* ---- the subject ---- */

static enum fate choose_subject(struct asking *asking, struct error *error)
{
	const struct cli *cli = asking->checking->cli;
	const char *given = cli_value(cli, "subject"), *name = schema_file_name(&asking->checking->file);
	char ours[REGISTRY_SUBJECT_MAX];
	enum record_type type;
	enum fate fate = FATE_OK;

	if (given == NULL && codec_record_type(name, &type)) {
		fate = registry_subject_of(cli->config, type, registry_topic_of(cli->config, type), ours, error);
		given = ours;
	}
	if (fate != FATE_OK)
		return fate;
	if (given != NULL)
		buffer_append_text(&asking->subject, given);
	else
		ask_state_subject(config_text(cli->config, PARAM_REGISTRY_STATE_SUBJECT), name, &asking->subject);
	buffer_append_byte(&asking->subject, '\0');
	if (asking->subject.starved)
		return buffer_refused(&asking->subject, error, "a subject");
	return buffer_failed(&asking->subject)
	           ? error_set(error, FATE_FATAL, ERR_USAGE, "the subject in the registry has more than %d bytes",
	                       SUBJECT_MAX)
	           : FATE_OK;
}

/* ---- what the registry says ---- */

static enum fate say_answer(const struct asking *asking, bool compatible, struct view why, struct view rule,
                            struct error *error)
{
	const struct checking *checking = asking->checking;
	struct json_line *line;

	check_say(checking, compatible ? CHECK_OK : CHECK_WRONG,
	          "the registry %s %s under %s, by its rule %.*s%s%.*s", compatible ? "would take" : "refuses",
	          checking->file.path, subject_of(asking), (int)rule.len, (const char *)rule.data,
	          why.len > 0 ? ": " : "", (int)why.len, why.len > 0 ? (const char *)why.data : "");
	if (!checking->cli->json)
		return FATE_OK;
	line = json_line_new();
	json_line_text(line, "check", view_of("registry"));
	json_line_text(line, "registry", view_of(registry_name(asking->registry)));
	json_line_text(line, "subject", view_of(subject_of(asking)));
	json_line_text(line, "rule", rule);
	json_line_flag(line, "compatible", compatible);
	json_line_text(line, "why", why);
	json_line_number(line, "versions", (int64_t)asking->len);
	return json_line_write(line, error);
}

/* The rule that holds. NONE may mean that the subject has no rule of its own (Apicurio), or that nothing is asked of
 * it; the stricter one is taken, and --mode is there for who knows better. */
static enum fate find_rule(struct asking *asking, struct view *ret_rule, struct error *error)
{
	struct view global = VIEW_NULL;
	enum fate fate = registry_rule(asking->registry, subject_of(asking), asking->arena, ret_rule, error);

	if (fate != FATE_OK || !view_equal_text(*ret_rule, compat_mode_name(COMPAT_NONE)))
		return fate;
	fate = registry_rule(asking->registry, NULL, asking->arena, &global, error);
	if (fate != FATE_OK || view_equal(global, *ret_rule))
		return fate;
	check_say(asking->checking, CHECK_WARNING,
	          "the registry says NONE of %s, which may mean that it has no rule of its own: the global one "
	          "is taken",
	          subject_of(asking));
	*ret_rule = global;
	return FATE_OK;
}

static enum fate ask(struct asking *asking, struct view *ret_rule, struct error *error)
{
	struct view text = buffer_view(&asking->checking->file.text), why = VIEW_NULL;
	bool compatible = false;
	enum fate fate = find_rule(asking, ret_rule, error);

	if (fate == FATE_OK)
		fate = registry_compatible(asking->registry, subject_of(asking), text, asking->arena, &compatible,
		                           &why, error);
	if (fate != FATE_OK)
		return fate;
	asking->checking->wrong += compatible ? 0 : 1;
	return say_answer(asking, compatible, why, *ret_rule, error);
}

/* ---- what we say ---- */

static bool make_room(struct asking *asking, size_t len)
{
	asking->schemas = calloc(len + 1, sizeof(*asking->schemas));
	asking->versions = calloc(len + 1, sizeof(*asking->versions));
	asking->names = calloc(len + 1, sizeof(*asking->names));
	return asking->schemas != NULL && asking->versions != NULL && asking->names != NULL;
}

/* A subject that is not there has no versions, and anything may be its first. */
static enum fate load_versions(struct asking *asking, struct error *error)
{
	struct registry_version *found = NULL;
	size_t len = 0, unusable = 0;
	enum fate fate = registry_versions(asking->registry, subject_of(asking), asking->arena, &found, &len,
	                                   &unusable, error);

	if (fate == FATE_REJECT && error->code == ERR_UNKNOWN_SCHEMA) {
		check_say(asking->checking, CHECK_WARNING, "the registry has no subject %s yet", subject_of(asking));
		return FATE_OK;
	}
	if (fate == FATE_OK && !make_room(asking, len))
		fate = error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %zu schemas", len);
	for (size_t i = 0; i < len && fate == FATE_OK; i++) {
		fate = schema_parse(&asking->schemas[i], found[i].text, error);
		if (fate != FATE_OK)
			break;
		snprintf(asking->names[i], VERSION_NAME, "version %d of the registry", (int)found[i].version);
		asking->versions[i] = (struct check_version){ asking->names[i], asking->schemas[i] };
		asking->len++;
	}
	if (fate == FATE_OK && unusable > 0)
		check_say(asking->checking, CHECK_WARNING, "%zu versions under %s cannot be used and are left out",
		          unusable, subject_of(asking));
	return fate;
}

/* --mode, else the registry's rule. */
static enum compat_mode mode_of(const struct asking *asking, const enum compat_mode *wanted, struct view rule)
{
	enum compat_mode mode = COMPAT_BACKWARD;

	if (wanted != NULL)
		return *wanted;
	if (!compat_mode_parse(rule, &mode))
		check_say(asking->checking, CHECK_WARNING,
		          "the registry's rule %.*s is not known here: BACKWARD is judged", (int)rule.len,
		          (const char *)rule.data);
	return mode;
}

static enum fate ask_all(struct asking *asking, const enum compat_mode *wanted, struct error *error)
{
	struct view rule = VIEW_LITERAL("");
	enum fate fate = choose_subject(asking, error);

	if (fate == FATE_OK)
		fate = load_versions(asking, error);
	if (fate == FATE_OK)
		fate = ask(asking, &rule, error);
	if (fate != FATE_OK)
		return fate;
	return check_versions(asking->checking, "registry", mode_of(asking, wanted, rule), asking->versions,
	                      asking->len, error);
}

enum fate check_registry(struct checking *checking, const enum compat_mode *wanted, struct error *error)
{
	struct asking asking = { .checking = checking, .arena = arena_new(ARENA_BYTES) };
	struct registry_settings settings;
	enum fate fate;

	registry_settings_of(checking->cli->config, &settings);
	if (settings.url == NULL || settings.url[0] == '\0')
		fate = error_set(error, FATE_FATAL, ERR_USAGE, "--against-registry: registry.url is not set");
	else
		fate = registry_open(&asking.registry, &settings, error);
	buffer_init(&asking.subject, SUBJECT_MAX);
	if (fate == FATE_OK && asking.arena == NULL)
		fate = error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the answers of a registry");
	if (fate == FATE_OK)
		fate = ask_all(&asking, wanted, error);
	for (size_t i = 0; i < asking.len; i++)
		schema_free(asking.schemas[i]);
	free(asking.schemas);
	free(asking.versions);
	free(asking.names);
	registry_close(asking.registry);
	buffer_done(&asking.subject);
	arena_free(asking.arena);
	return fate;
}
