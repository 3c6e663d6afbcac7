/* What is known of each schema. */
#include "schemas/catalog_inner.h"
#include "schemas/fingerprint.h"
#include "schemas/schema_parser.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1024 * 1024)

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a schema");
}

enum fate schema_digest(const struct schema *schema, uint64_t *ret_fingerprint, uint8_t ret_sha256[32],
                        struct error *error)
{
	struct buffer canonical;

	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	enum fate fate = schema_canonical(schema, &canonical, error);
	*ret_fingerprint = fingerprint_crc64(buffer_view(&canonical));
	fingerprint_sha256(buffer_view(&canonical), ret_sha256);
	buffer_done(&canonical);
	return fate;
}

static char *copy_to(char **at, const void *data, size_t len)
{
	char *copy = *at;

	memcpy(copy, data, len);
	copy[len] = '\0';
	*at += len + 1;
	return copy;
}

/* One block of memory: the struct, then its texts. */
static struct known_schema *make(const char *name, const char *full, struct view text)
{
	size_t texts = strlen(name) + strlen(full) + text.len + 3;
	struct known_schema *known = calloc(1, sizeof(*known) + texts);

	if (!known)
		return NULL;
	char *at = (char *)(known + 1);
	known->name = copy_to(&at, name, strlen(name));
	known->full = copy_to(&at, full, strlen(full));
	known->text.text = (struct view){ (const uint8_t *)copy_to(&at, text.data, text.len), text.len };
	known->weight = sizeof(*known) + texts + BINDING_BYTES;
	fingerprint_sha256(text, known->text.sha256);
	return known;
}

enum fate known_new(struct known_schema **ret_known, struct schema **ret_schema, const char *name,
                    struct view text, bool elsewhere, struct error *error)
{
	struct schema *schema;
	uint64_t fingerprint;
	uint8_t sha256[32];
	enum fate fate = schema_parse(&schema, text, error);

	if (fate != FATE_OK)
		return fate;
	const char *full = schema->root->name ? schema->root->name : name;
	if (!full)
		full = schema_kind_name(schema->root->kind);
	fate = schema_digest(schema, &fingerprint, sha256, error);
	struct known_schema *known = fate == FATE_OK ? make(name ? name : full, full, text) : NULL;
	if (!known) {
		schema_free(schema);
		return fate == FATE_OK ? no_memory(error) : fate;
	}
	known->elsewhere = elsewhere;
	known->fingerprint = fingerprint;
	memcpy(known->sha256, sha256, 32);
	*ret_known = known;
	*ret_schema = schema;
	return FATE_OK;
}

void known_free(struct known_schema *known)
{
	if (!known)
		return;
	schema_free(known->schema);
	free(known);
}

enum fate known_check_room(const struct catalog *catalog, bool elsewhere, size_t more, struct error *error)
{
	size_t learnt = catalog->learnt_bytes + catalog->learnt.len * BINDING_BYTES;

	if (!elsewhere && catalog->folder_bytes + more > FOLDER_BYTES_MAX)
		return error_set(
			error, FATE_RETRY, ERR_MEMORY,
			"the schemas that schemas.path has and had take more than %zu MiB: start the process "
			"again to forget those that are gone",
			FOLDER_BYTES_MAX / MIB);
	if (elsewhere && learnt + more > LEARNT_BYTES_MAX)
		return error_set(error, FATE_RETRY, ERR_MEMORY,
		                 "schemas that were asked for take %zu MiB, and no more than %zu are held: start the "
		                 "process again to forget those that are not needed",
		                 learnt / MIB, LEARNT_BYTES_MAX / MIB);
	return FATE_OK;
}

static void charge(struct catalog *catalog, bool elsewhere, size_t more)
{
	if (elsewhere)
		catalog->learnt_bytes += more;
	else
		catalog->folder_bytes += more;
}

bool known_reserve(struct catalog *catalog)
{
	size_t cap = 2 * catalog->cap + 32;
	if (catalog->len < catalog->cap)
		return true;
	struct known_schema **known = realloc(catalog->known, cap * sizeof(struct known_schema *));
	if (!known)
		return false;
	catalog->known = known;
	struct catalog_entry *list = realloc(catalog->list, (cap + SCHEMA_TEXTS) * sizeof(*list));
	if (!list)
		return false;
	catalog->list = list;
	catalog->cap = cap;
	return true;
}

static enum fate insert(struct catalog *catalog, const struct key *key, struct known_schema **made,
                        struct error *error)
{
	if ((*made)->elsewhere && catalog->learnt_len >= LEARNT_MAX)
		return error_set(error, FATE_RETRY, ERR_MEMORY,
		                 "%d schemas that were asked for are held, and no more: start the process again to "
		                 "forget those that are not needed",
		                 LEARNT_MAX);
	enum fate fate = known_check_room(catalog, (*made)->elsewhere, (*made)->weight, error);
	if (fate != FATE_OK)
		return fate;
	if (!known_reserve(catalog) || !map_set(&catalog->texts, catalog->seed, key, *made))
		return no_memory(error);
	catalog->known[catalog->len++] = *made;
	catalog->learnt_len += (*made)->elsewhere;
	charge(catalog, (*made)->elsewhere, (*made)->weight);
	return FATE_OK;
}

/* A reader is held as it was parsed. */
static enum fate give_schema(struct catalog *catalog, struct known_schema *known, struct schema **schema,
                             struct error *error)
{
	if (known->schema)
		return FATE_OK;
	size_t more = schema_weigh(known->text.text) + arena_used((*schema)->arena);
	enum fate fate = known_check_room(catalog, known->elsewhere, more, error);
	if (fate != FATE_OK)
		return fate;
	charge(catalog, known->elsewhere, more);
	known->schema = *schema;
	*schema = NULL;
	return FATE_OK;
}

enum fate known_add(struct catalog *catalog, struct known_schema **made, struct schema **schema,
                    struct error *error)
{
	const struct key key = key_text(*made);
	struct known_schema *there = map_get(&catalog->texts, catalog->seed, &key);
	enum fate fate = FATE_OK;

	if (there) {
		known_free(*made);
		*made = there;
	} else {
		fate = insert(catalog, &key, made, error);
		if (fate != FATE_OK) {
			known_free(*made);
			*made = NULL;
		}
	}
	return fate == FATE_OK && schema ? give_schema(catalog, *made, schema, error) : fate;
}
