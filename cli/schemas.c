#include "cli/schemas.h"

#include "consumer/reader.h"
#include "worker/registry_settings.h"
#include "worker/shelf.h"

static enum fate on_shelf(void *context, struct catalog *catalog, const struct schema_want *want,
                          bool *ret_found, struct error *error)
{
	struct schemas *schemas = context;
	struct registry *registry = supply_registry(schemas->supply);
	enum looked looked;
	enum fate fate =
		shelf_look(schemas->store, catalog, registry ? registry_name(registry) : NULL, want, &looked, error);

	*ret_found = fate == FATE_OK && looked == LOOKED_LEARNT;
	return fate;
}

enum fate schemas_open(const struct cli *cli, struct store *store, struct schemas *schemas,
                       struct error *error)
{
	struct registry_settings registry;
	struct supply_settings supply = {
		.folder = config_text(cli->config, PARAM_SCHEMAS_PATH),
		.registry = &registry,
		.state_subject = config_text(cli->config, PARAM_REGISTRY_STATE_SUBJECT),
		.shelf = store != NULL ? on_shelf : NULL,
		.context = schemas,
	};

	registry_settings_of(cli->config, &registry);
	*schemas = (struct schemas){ .store = store, .config = cli->config };
	enum fate fate = supply_open(&schemas->supply, &supply, error);
	if (fate != FATE_OK)
		return fate;
	struct codec_settings codec = {
		.record_bytes = (size_t)config_number(cli->config, PARAM_LIMITS_RECORD_BYTES),
		.strict_boundary = config_choice(cli->config, PARAM_LIMITS_BOUNDARY) == CONFIG_BOUNDARY_STRICT,
		.catalog = supply_catalog(schemas->supply),
	};
	return codec_new(&schemas->codec, &codec, error);
}

void schemas_close(struct schemas *schemas)
{
	codec_free(schemas->codec);
	supply_close(schemas->supply);
	*schemas = (struct schemas){ 0 };
}

bool schemas_more_of(struct schemas *schemas, const struct schema_want *want, unsigned *tries,
                     enum fate *fate, struct error *error)
{
	return supply_more(schemas->supply, want, tries, fate, error);
}

bool schemas_more(struct schemas *schemas, unsigned *tries, enum fate *fate, struct error *error)
{
	return schemas_more_of(schemas, codec_want(schemas->codec), tries, fate, error);
}

void schemas_header(struct schemas *schemas, const struct record *record)
{
	codec_schema_header(schemas->codec, record_header(record, SCHEMA_ID_HEADER));
}

enum fate schemas_write(struct schemas *schemas, enum record_type type, const char *topic,
                        struct error *error)
{
	struct registry *registry = supply_registry(schemas->supply);
	bool look_only = !config_flag(schemas->config, PARAM_REGISTRY_AUTO_REGISTER), found = false;
	char subject[REGISTRY_SUBJECT_MAX];
	int32_t id = 0;

	if (registry == NULL)
		return FATE_OK;
	enum fate fate = registry_subject_of(schemas->config, type, topic, subject, error);
	if (fate == FATE_OK && schemas->store != NULL)
		fate = shelf_own(schemas->store, registry_name(registry), subject, codec_schema_text(type), &id,
		                 &found, error);
	if (fate != FATE_OK)
		return fate;
	if (!found)
		return supply_write_id(schemas->supply, schemas->codec, type, subject, look_only, error);
	codec_write_id(schemas->codec, type, id);
	return FATE_OK;
}
