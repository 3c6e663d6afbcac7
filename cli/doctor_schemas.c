/* doctor_schemas.c - what `fermata doctor` looks at in the folder of schemas and at the registry. */
#include "cli/connect.h"
#include "cli/doctor.h"
#include "schemas/catalog.h"
#include "worker/registry_settings.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_MAX ((size_t)64 << 20)

static void say_broken(void *context, const struct catalog_broken *file)
{
	struct doctor *doctor = context;

	if (file->reader)
		doctor_say(doctor, FINDING_WRONG, "schemas", "mend it, or take it away",
		           "%s cannot be used: %s; states of %s wait until that is mended", file->file, file->why,
		           file->name);
	else
		doctor_say(doctor, FINDING_WRONG, "schemas", "mend it, or take it away",
		           "%s cannot be used: %s; what may have been written with it waits until that is mended",
		           file->file, file->why);
}

static void check_folder(struct doctor *doctor, const char *folder)
{
	struct catalog_settings settings = { .folder = folder };
	struct error error = { .fate = FATE_OK };
	struct catalog *catalog = NULL;

	if (folder == NULL)
		return;
	if (catalog_new(&catalog, &settings, &error) == FATE_OK) {
		doctor_say(doctor, FINDING_OK, "schemas", NULL, "%s: %zu schemas, %zu of them readers of states",
		           folder, catalog_schemas(catalog), catalog_readers(catalog));
		catalog_each_broken(catalog, say_broken, doctor);
	} else {
		doctor_say_error(doctor, FINDING_WRONG, "schemas", "correct schemas.path", &error);
	}
	catalog_free(catalog);
}

/* It is not there yet: would the worker get it in? */
static enum fate check_absent(struct doctor *doctor, struct registry *registry, enum record_type type,
                              const char *subject, struct error *error)
{
	struct arena *arena = arena_new(ANSWER_MAX);
	const char *name = codec_record_name(type);
	char mend[400];
	struct view why;
	bool compatible = true;

	if (!config_flag(doctor->cli->config, PARAM_REGISTRY_AUTO_REGISTER)) {
		snprintf(mend, sizeof(mend), "register schemas/%s.avsc under it, or set registry.auto_register = on",
		         strrchr(name, '.') + 1);
		doctor_say(doctor, FINDING_WRONG, "registry", mend, "subject %s has not our %s", subject, name);
		arena_free(arena);
		return FATE_OK;
	}
	enum fate fate = arena == NULL ? error_set(error, FATE_RETRY, ERR_MEMORY, "no memory")
	                               : registry_compatible(registry, subject, codec_schema_text(type), arena,
	                                                     &compatible, &why, error);
	if (fate == FATE_REJECT && error->code == ERR_UNKNOWN_SCHEMA) /* the first version of all */
		fate = FATE_OK;
	if (fate == FATE_OK && compatible)
		doctor_say(doctor, FINDING_OK, "registry", NULL, "a worker will register %s under subject %s", name,
		           subject);
	else if (fate == FATE_OK)
		doctor_say(
			doctor, FINDING_WRONG, "registry",
			"look at the subject's versions and rule, or choose another registry.subject_name_strategy",
			"subject %s refuses our %s", subject, name);
	arena_free(arena);
	return fate;
}

static enum fate check_ours(struct doctor *doctor, struct registry *registry, enum record_type type,
                            const char *topic, struct error *error)
{
	char subject[REGISTRY_SUBJECT_MAX];
	int32_t id;
	enum fate fate = registry_subject_of(doctor->cli->config, type, topic, subject, error);

	if (fate == FATE_OK)
		fate = registry_lookup(registry, subject, codec_schema_text(type), &id, error);
	if (fate == FATE_OK)
		doctor_say(doctor, FINDING_OK, "registry", NULL, "subject %s has our %s, id %d", subject,
		           codec_record_name(type), (int)id);
	return fate == FATE_REJECT ? check_absent(doctor, registry, type, subject, error) : fate;
}

static enum fate check_all(struct doctor *doctor, struct registry *registry, struct error *error)
{
	static const enum record_type others[] = { RECORD_GATE, RECORD_APPROVAL };
	const struct config *config = doctor->cli->config;
	size_t len;
	const char *const *topics = config_resumes_topics(config, &len);
	enum fate fate = FATE_OK;

	for (size_t i = 0; fate == FATE_OK && i < sizeof(others) / sizeof(others[0]); i++)
		fate = check_ours(doctor, registry, others[i], registry_topic_of(config, others[i]), error);
	for (size_t i = 0; fate == FATE_OK && i < len; i++)
		fate = check_ours(doctor, registry, RECORD_RESUME, topics[i], error);
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
