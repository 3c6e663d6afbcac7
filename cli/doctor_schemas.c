/* doctor_schemas.c - what `fermata doctor` looks at in the folder of schemas and at the registry. */
#include "cli/connect.h"
#include "cli/doctor.h"
#include "schemas/catalog.h"
#include "worker/registry_settings.h"

#include <stdio.h>

#define ANSWER_MAX ((size_t)64 << 20)

static void check_folder(struct doctor *doctor, const char *folder)
{
	struct catalog_settings settings = { .folder = folder };
	struct error error = { .fate = FATE_OK };
	struct catalog *catalog = NULL;

	if (folder == NULL)
		return;
	if (catalog_new(&catalog, &settings, &error) == FATE_OK)
		doctor_say(doctor, FINDING_OK, "schemas", NULL, "%s: %zu schemas, %zu of them readers of states",
		           folder, catalog_schemas(catalog), catalog_readers(catalog));
	else
		doctor_say_error(doctor, FINDING_WRONG, "schemas",
		                 "mend or remove that file, or correct schemas.path", &error);
	catalog_free(catalog);
}

/* One of our records on one topic. */
struct ours {
	enum record_type type;
	const char *name;
	const char *topic;
};

static bool subject_of(const struct doctor *doctor, const struct ours *ours, char *subject, size_t size)
{
	struct buffer name;

	buffer_init(&name, size - 1);
	subject_name(registry_strategy_of(doctor->cli->config), ours->topic, ours->name, &name);
	bool whole = !buffer_failed(&name);
	if (whole)
		snprintf(subject, size, "%.*s", (int)name.len, (const char *)name.data);
	buffer_done(&name);
	return whole;
}

/* It is not there yet: would the worker get it in? */
static enum fate check_absent(struct doctor *doctor, struct registry *registry, const struct ours *ours,
                              const char *subject, struct error *error)
{
	struct arena *arena = arena_new(ANSWER_MAX);
	char mend[400];
	struct view why;
	bool compatible = true;

	if (!config_flag(doctor->cli->config, PARAM_REGISTRY_AUTO_REGISTER)) {
		snprintf(mend, sizeof(mend), "register schemas/%s.avsc under it, or set registry.auto_register = on",
		         ours->name + sizeof("fermata.v1.") - 1);
		doctor_say(doctor, FINDING_WRONG, "registry", mend, "subject %s has not our %s", subject, ours->name);
		arena_free(arena);
		return FATE_OK;
	}
	enum fate fate = arena == NULL ? error_set(error, FATE_RETRY, ERR_MEMORY, "no memory")
	                               : registry_compatible(registry, subject, codec_schema_text(ours->type),
	                                                     arena, &compatible, &why, error);
	if (fate == FATE_REJECT && error->code == ERR_UNKNOWN_SCHEMA) /* the first version of all */
		fate = FATE_OK;
	if (fate == FATE_OK && compatible)
		doctor_say(doctor, FINDING_OK, "registry", NULL, "a worker will register %s under subject %s",
		           ours->name, subject);
	else if (fate == FATE_OK)
		doctor_say(
			doctor, FINDING_WRONG, "registry",
			"look at the subject's versions and rule, or choose another registry.subject_name_strategy",
			"subject %s refuses our %s", subject, ours->name);
	arena_free(arena);
	return fate;
}

static enum fate check_ours(struct doctor *doctor, struct registry *registry, const struct ours *ours,
                            struct error *error)
{
	char subject[1024];
	int32_t id;

	if (!subject_of(doctor, ours, subject, sizeof(subject)))
		return error_set(error, FATE_FATAL, ERR_USAGE, "the name of a subject is too long");
	enum fate fate = registry_lookup(registry, subject, codec_schema_text(ours->type), &id, error);
	if (fate == FATE_OK)
		doctor_say(doctor, FINDING_OK, "registry", NULL, "subject %s has our %s, id %d", subject, ours->name,
		           (int)id);
	return fate == FATE_REJECT ? check_absent(doctor, registry, ours, subject, error) : fate;
}

static enum fate check_all(struct doctor *doctor, struct registry *registry, struct error *error)
{
	const struct config *config = doctor->cli->config;
	size_t len;
	const char *const *topics = config_resumes_topics(config, &len);
	struct ours gates = { RECORD_GATE, "fermata.v1.GateEvent", config_text(config, PARAM_TOPICS_GATES) };
	struct ours approvals = { RECORD_APPROVAL, "fermata.v1.ApprovalEvent",
		                      config_text(config, PARAM_TOPICS_APPROVALS) };

	enum fate fate = check_ours(doctor, registry, &gates, error);
	if (fate == FATE_OK)
		fate = check_ours(doctor, registry, &approvals, error);
	for (size_t i = 0; fate == FATE_OK && i < len; i++) {
		struct ours resumes = { RECORD_RESUME, "fermata.v1.ResumeEvent", topics[i] };
		fate = check_ours(doctor, registry, &resumes, error);
	}
	return fate;
}

static void check_registry(struct doctor *doctor)
{
	struct error error = { .fate = FATE_OK };
	struct registry_settings settings;
	struct registry *registry = NULL;

	registry_settings_of(doctor->cli->config, &settings);
	if (settings.url == NULL)
		return;
	enum fate fate = registry_open(&registry, &settings, &error);
	if (fate == FATE_OK)
		fate = check_all(doctor, registry, &error);
	if (fate != FATE_OK)
		doctor_say_error(doctor, FINDING_WRONG, "registry", "start it, or correct registry.*", &error);
	registry_close(registry);
}

void doctor_schemas(struct doctor *doctor)
{
	check_folder(doctor, config_text(doctor->cli->config, PARAM_SCHEMAS_PATH));
	check_registry(doctor);
}
