#include "schemas/supply.h"

#include <stdlib.h>

#define ANSWER_MAX ((size_t)256 * 1024 * 1024)
#define ROUNDS_MAX 8
#define NOWHERE_MS 1000

struct supply {
	struct catalog *catalog;
	struct registry *registry;
	struct supply_settings settings;
};

static bool is_given(const char *text)
{
	return text && text[0];
}

struct registry_settings registry_environment(void)
{
	return (struct registry_settings){
		.url = getenv("FERMATA_REGISTRY_URL"),
		.user = getenv("FERMATA_REGISTRY_USER"),
		.password = getenv("FERMATA_REGISTRY_PASSWORD"),
		.token = getenv("FERMATA_REGISTRY_TOKEN"),
		.ca_file = getenv("FERMATA_REGISTRY_CA_FILE"),
		.cert_file = getenv("FERMATA_REGISTRY_CERT_FILE"),
		.key_file = getenv("FERMATA_REGISTRY_KEY_FILE"),
	};
}

enum fate supply_open(struct supply **ret_supply, const struct supply_settings *settings, struct error *error)
{
	bool registry = settings->registry && is_given(settings->registry->url);
	struct catalog_settings catalog = { .folder = settings->folder,
		                                .registry = registry,
		                                .asks = registry || settings->shelf };
	struct supply *supply = calloc(1, sizeof(*supply));

	if (!supply)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for schemas");
	supply->settings = *settings;
	if (!settings->state_subject)
		supply->settings.state_subject = "{schema}";
	enum fate fate = catalog_new(&supply->catalog, &catalog, error);
	if (fate == FATE_OK && registry)
		fate = registry_open(&supply->registry, settings->registry, error);
	if (fate != FATE_OK) {
		supply_close(supply);
		return fate;
	}
	*ret_supply = supply;
	return FATE_OK;
}

void supply_close(struct supply *supply)
{
	if (!supply)
		return;
	registry_close(supply->registry);
	catalog_free(supply->catalog);
	free(supply);
}

struct catalog *supply_catalog(const struct supply *supply)
{
	return supply->catalog;
}

struct registry *supply_registry(const struct supply *supply)
{
	return supply->registry;
}

static enum fate ask_registry(struct supply *supply, const struct schema_want *want, struct error *error)
{
	struct arena *arena = arena_new(ANSWER_MAX);
	struct ask_found *found;
	struct view text;
	size_t len;

	if (!arena)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the registry's answer");
	enum fate fate = registry_ask(supply->registry, supply->catalog, want, supply->settings.state_subject,
	                              NULL, arena, &text, &found, &len, error);
	arena_free(arena);
	return fate;
}

static enum fate look(struct supply *supply, const struct schema_want *want, struct error *error)
{
	char why[BROKEN_WHY_SIZE], text[WANT_TEXT_SIZE];
	bool broken = catalog_is_broken(supply->catalog, want, why, sizeof(why)), found = false;
	bool passed_over =
		broken && want->kind == WANT_READER; /* whatever others have, the folder's stands before it */
	enum fate fate = FATE_OK;

	if (supply->settings.shelf && !passed_over)
		fate = supply->settings.shelf(supply->settings.context, supply->catalog, want, &found, error);
	if (fate != FATE_OK || found)
		return fate;
	if (supply->registry && !passed_over)
		fate = ask_registry(supply, want, error);
	if (fate == FATE_OK && catalog_is_broken(supply->catalog, want, why, sizeof(why)))
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "%s may be in a file of schemas.path: %s",
		                 want_text(want, text, sizeof(text)), why);
	if (fate != FATE_OK || supply->registry)
		return fate;
	catalog_deny(supply->catalog, want, NOWHERE_MS, NULL);
	return FATE_OK;
}

bool supply_more(struct supply *supply, const struct schema_want *want, unsigned *tries, enum fate *fate,
                 struct error *error)
{
	if (*fate != FATE_RETRY || error->code != ERR_UNKNOWN_SCHEMA || ++*tries > ROUNDS_MAX)
		return false;
	*fate = look(supply, want, error);
	return *fate == FATE_OK;
}

enum fate supply_write_id(struct supply *supply, struct codec *codec, enum record_type type,
                          const char *subject, bool look_only, struct error *error)
{
	struct view text = codec_schema_text(type);
	struct schema_want want = { .kind = WANT_ID };

	if (!supply->registry)
		return FATE_OK;
	enum fate fate = ask_own_id(supply->registry, subject, text, look_only, &want.id, error);
	if (fate == FATE_OK)
		fate = catalog_learn(supply->catalog, &want, text, error);
	if (fate == FATE_OK)
		codec_write_id(codec, type, want.id);
	return fate;
}
