/* What is known of each schema in the folder. */
#include "schemas/state_inner.h"

#include "schemas/fingerprint.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the schemas of schemas.path");
}

static struct known_schema *next(struct states *states)
{
	if (states->len == states->cap) {
		size_t cap = states->cap ? 2 * states->cap : 16;
		struct known_schema *schemas = realloc(states->schemas, cap * sizeof(*schemas));
		if (!schemas)
			return NULL;
		states->schemas = schemas;
		states->cap = cap;
	}
	struct known_schema *schema = &states->schemas[states->len];
	*schema = (struct known_schema){ 0 };
	return schema;
}

/* The root's aliases; one without a dot is in the namespace of the root. */
static bool copy_aliases(struct arena *arena, const struct schema_type *root, struct known_schema *known)
{
	const json_t *aliases = root->name ? json_object_get(root->json, "aliases") : NULL;
	const char *dot = root->name ? strrchr(root->name, '.') : NULL;
	int space = dot ? (int)(dot - root->name) + 1 : 0;
	size_t i;
	const json_t *alias;

	known->aliases = arena_array(arena, json_array_size(aliases), sizeof(*known->aliases));
	if (!known->aliases)
		return false;
	json_array_foreach(aliases, i, alias)
	{
		const char *text = json_string_value(alias);
		bool full = strchr(text, '.') != NULL;
		known->aliases[i] = arena_printf(arena, "%.*s%s", full ? 0 : space, root->name, text);
		if (!known->aliases[i])
			return false;
		known->aliases_len = i + 1;
	}
	return true;
}

static bool copy_names(struct arena *arena, const struct schema_type *root, const char *name,
                       struct view text, struct known_schema *known)
{
	known->name = arena_text(arena, view_of(name));
	known->full = arena_text(arena, view_of(root->name ? root->name : name));
	known->text = arena_copy(arena, text);
	return known->name && known->full && known->text.data && copy_aliases(arena, root, known);
}

static enum fate digest(const struct schema *schema, struct known_schema *known, struct error *error)
{
	struct buffer canonical;

	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	enum fate fate = schema_canonical(schema, &canonical, error);
	known->fingerprint = fingerprint_crc64(buffer_view(&canonical));
	fingerprint_sha256(buffer_view(&canonical), known->sha256);
	buffer_done(&canonical);
	return fate;
}

/* Sixty-four bits can be made to clash: then nothing could tell which of the two a state was written with. */
static enum fate check_clash(const struct states *states, const struct known_schema *known, const char *path,
                             struct error *error)
{
	for (size_t i = 0; i < states->len; i++) {
		const struct known_schema *other = &states->schemas[i];
		if (other->fingerprint == known->fingerprint && memcmp(other->sha256, known->sha256, 32) != 0)
			return error_set(error, FATE_FATAL, ERR_USAGE,
			                 "schemas.path: %.120s has the fingerprint of another schema, one for %.60s",
			                 path, other->name);
	}
	return FATE_OK;
}

enum fate states_add(struct states *states, const char *name, bool reader, struct view text, const char *path,
                     struct error *error)
{
	struct schema *schema;
	struct known_schema *known = next(states);
	if (!known)
		return no_memory(error);
	enum fate fate = schema_parse(&schema, text, error);
	if (fate == FATE_REJECT) {
		(void)error_wrap(error, "schemas.path: %.120s", path);
		error->fate = FATE_FATAL;
		error->code = ERR_USAGE;
	}
	if (fate != FATE_OK)
		return error->fate;
	fate = digest(schema, known, error);
	if (fate == FATE_OK && !copy_names(states->arena, schema->root, name, text, known))
		fate = no_memory(error);
	if (fate == FATE_OK)
		fate = check_clash(states, known, path, error);
	if (fate == FATE_OK && reader)
		known->schema = schema;
	else
		schema_free(schema);
	if (fate == FATE_OK)
		states->len++;
	return fate;
}

static bool is_called(const struct known_schema *known, struct view name)
{
	if (view_equal_text(name, known->name) || view_equal_text(name, known->full))
		return true;
	for (size_t i = 0; i < known->aliases_len; i++) {
		if (view_equal_text(name, known->aliases[i]))
			return true;
	}
	return false;
}

const struct known_schema *states_reader(const struct states *states, struct view name)
{
	const struct known_schema *found = NULL;

	for (size_t i = 0; states && i < states->len; i++) {
		const struct known_schema *known = &states->schemas[i];
		if (!known->schema)
			continue;
		if (view_equal_text(name, known->name))
			return known;
		if (!found && is_called(known, name))
			found = known;
	}
	return found;
}

/* One of the same folder before one of another: their aliases and logical types may differ. */
const struct known_schema *states_writer(const struct states *states, const char *name, uint64_t fingerprint)
{
	const struct known_schema *found = NULL;

	for (size_t i = 0; states && i < states->len; i++) {
		const struct known_schema *known = &states->schemas[i];
		if (known->fingerprint == fingerprint && (!found || strcmp(known->name, name) == 0))
			found = known;
	}
	return found;
}

const struct known_schema *states_writer_of(const struct states *states, const char *name,
                                            const uint8_t sha256[32])
{
	for (size_t i = 0; states && i < states->len; i++) {
		const struct known_schema *known = &states->schemas[i];
		if (memcmp(known->sha256, sha256, 32) == 0 && strcmp(known->name, name) == 0)
			return known;
	}
	return NULL;
}
