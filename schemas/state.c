/* Application states under the schema that is read today. */
#include "schemas/catalog.h"

#include "core/json_scan.h"
#include "schemas/catalog_inner.h"
#include "schemas/fingerprint.h"
#include "schemas/guard.h"
#include "schemas/schema_parser.h"

#include <stdlib.h>
#include <string.h>

#define STATE_FREE  ((size_t)1024 * 1024) /* a state may grow to this and ten times its length */
#define STATE_TIMES 10

/* What a state is brought under. */
struct reader {
	const char *name; /* of the folder of what was written */
	const char *full;
	const struct migrate_text *text;
	uint64_t fingerprint;
	const struct schema *schema;
};

static enum fate migrate_body(struct catalog *catalog, const struct known_schema *writer,
                              const struct reader *reader, const struct app_state *in, struct arena *arena,
                              struct view *ret_body, struct error *error)
{
	struct buffer out;
	size_t most = in->body.len > (STATE_BYTES_MAX - STATE_FREE) / STATE_TIMES
	                  ? STATE_BYTES_MAX
	                  : STATE_FREE + STATE_TIMES * in->body.len;

	buffer_init(&out, most);
	enum fate fate = catalog_resolve(catalog, writer, reader->text, in->body, &out, error);
	if (fate == FATE_OK) {
		*ret_body = arena_copy(arena, out.len > 0 ? buffer_view(&out) : VIEW_LITERAL(""));
		if (!ret_body->data)
			fate = error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a migrated state");
	}
	buffer_done(&out);
	return fate;
}

static struct view copy_fingerprint(struct arena *arena, uint64_t fingerprint)
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint, bytes);
	return arena_copy(arena, (struct view){ bytes, sizeof(bytes) });
}

static bool copy_name(struct view name, struct schema_want *want)
{
	if (name.len == 0 || name.len > CATALOG_NAME_MAX || view_has_nul(name))
		return false;
	memcpy(want->name, name.data, name.len);
	want->name[name.len] = '\0';
	return true;
}

/* *ret_known is NULL when there is none. A registry is asked for the readers of full names only: what else
 * is said to be a schema's name is none. */
static enum fate find_reader(struct catalog *catalog, struct view name, const struct known_schema **ret_known,
                             struct schema_want *ret_want, struct error *error)
{
	struct schema_want want = { .kind = WANT_READER };
	char why[DENIED_WHY_MAX + 1], text[WANT_TEXT_SIZE];

	*ret_known = NULL;
	if (!copy_name(name, &want))
		return FATE_OK;
	enum answer answer = catalog_find(catalog, &want, NULL, ret_known, why);
	if (answer == ANSWER_BROKEN && !catalog->asks)
		return error_set(
			error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
			"state: the reader of %.60s may be in a file of schemas.path that cannot be used: %s", want.name,
			why);
	if (answer != ANSWER_BROKEN && (answer != ANSWER_MISSING || !catalog->registry || !catalog->asks ||
	                                !name_is_dotted(want.name, name.len)))
		return FATE_OK;
	*ret_want = want;
	return error_set(error, FATE_RETRY, ERR_UNKNOWN_SCHEMA, "state: %s is not known yet",
	                 want_text(&want, text, sizeof(text)));
}

static enum fate unknown_writer(const struct catalog *catalog, const char *folder, const char *hex,
                                const char *why, struct error *error)
{
	if (!catalog || !catalog->registry)
		return error_set(
			error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
			"state: it was written with the schema of fingerprint %s, which is not among those of "
			"schemas.path: put it into the folder %.100s there, then retry",
			hex, folder);
	return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
	                 "state: nobody has the schema of fingerprint %s: put it into the folder %.80s of "
	                 "schemas.path, or register it under its subject, then retry%s%s",
	                 hex, folder, why[0] ? ": " : "", why);
}

static enum fate find_writer(struct catalog *catalog, const struct reader *reader, const struct app_state *in,
                             uint64_t written, const struct known_schema **ret_known,
                             struct schema_want *ret_want, struct error *error)
{
	struct schema_want want = { .kind = WANT_STATE, .fingerprint = written };
	char hex[FINGERPRINT_HEX_LEN + 1], why[DENIED_WHY_MAX + 1], text[WANT_TEXT_SIZE];

	fingerprint_hex(written, hex);
	if (!catalog || !copy_name(in->schema, &want))
		return unknown_writer(catalog, reader->name, hex, "its name is none", error);
	enum answer answer = catalog_find(catalog, &want, reader->name, ret_known, why);
	if (answer == ANSWER_KNOWN)
		return FATE_OK;
	if (answer == ANSWER_DENIED || !catalog->asks)
		return unknown_writer(catalog, reader->name, hex, why, error);
	*ret_want = want;
	return error_set(error, FATE_RETRY, ERR_UNKNOWN_SCHEMA, "state: %s is not known yet",
	                 want_text(&want, text, sizeof(text)));
}

static enum fate migrate(struct catalog *catalog, const struct reader *reader, uint64_t written,
                         const struct app_state *in, struct arena *arena, struct app_state *ret_state,
                         struct view *ret_from, struct schema_want *ret_want, struct error *error)
{
	const struct known_schema *writer;
	char hex[FINGERPRINT_HEX_LEN + 1];
	enum fate fate = find_writer(catalog, reader, in, written, &writer, ret_want, error);

	if (fate != FATE_OK)
		return fate;
	fingerprint_hex(written, hex);
	fate = migrate_body(catalog, writer, reader, in, arena, &ret_state->body, error);
	if (fate == FATE_REJECT)
		return error_wrap(error, "state, written with schema %s", hex);
	if (fate != FATE_OK)
		return fate;
	ret_state->schema = view_of(arena_text(arena, view_of(reader->full)));
	ret_state->fingerprint = copy_fingerprint(arena, reader->fingerprint);
	*ret_from = view_of(arena_text(arena, view_of(hex)));
	if (!ret_state->schema.data || !ret_state->fingerprint.data || !ret_from->data)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a migrated state");
	return FATE_OK;
}

static enum fate bring_under(struct catalog *catalog, const struct reader *reader, const struct app_state *in,
                             struct arena *arena, struct app_state *ret_state, struct view *ret_from,
                             struct schema_want *ret_want, struct error *error)
{
	if (in->fingerprint.len != 8)
		return error_set(error, FATE_REJECT, ERR_INVALID, "state.fingerprint: it must have 8 bytes");
	uint64_t written = fingerprint_of_bytes(in->fingerprint.data);
	if (written != reader->fingerprint)
		return migrate(catalog, reader, written, in, arena, ret_state, ret_from, ret_want, error);
	enum fate fate = guard_check(reader->schema->root, reader->full, in->body, MIGRATE_VALUES_MAX, error);
	return fate == FATE_REJECT ? error_wrap(error, "state") : fate;
}

/* Is it one that no schema is needed for? */
static bool is_plain(const struct app_state *in)
{
	return !in->present || in->encoding == ENCODING_JSON;
}

static enum fate check_plain(const struct app_state *in, struct error *error)
{
	if (!in->present || json_scan(in->body))
		return FATE_OK;
	return error_set(error, FATE_REJECT, ERR_INVALID,
	                 "state.body: it is said to be JSON, and is not (RFC 8259)");
}

enum fate state_migrate(struct catalog *catalog, const struct app_state *in, struct arena *arena,
                        struct app_state *ret_state, struct view *ret_from, struct schema_want *ret_want,
                        struct error *error)
{
	const struct known_schema *known = NULL;
	enum fate fate = FATE_OK;

	*ret_state = *in;
	*ret_from = VIEW_NULL;
	ret_want->kind = WANT_NOTHING;
	if (is_plain(in))
		return check_plain(in, error);
	if (catalog)
		fate = find_reader(catalog, in->schema, &known, ret_want, error);
	if (fate != FATE_OK || !known)
		return fate;
	struct reader reader = { known->name, known->full, &known->text, known->fingerprint, known->schema };
	return bring_under(catalog, &reader, in, arena, ret_state, ret_from, ret_want, error);
}

/* As one of the catalog's, that is in none. */
struct state_reader {
	struct known_schema *known;
};

enum fate state_reader_new(struct state_reader **ret_reader, struct view text, struct error *error)
{
	struct schema *schema;
	struct state_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the reader of a state");
	enum fate fate = known_new(&reader->known, &schema, NULL, text, false, error);
	if (fate != FATE_OK) {
		free(reader);
		return error_wrap(error, "the reader of a state");
	}
	reader->known->schema = schema;
	*ret_reader = reader;
	return FATE_OK;
}

void state_reader_free(struct state_reader *reader)
{
	if (!reader)
		return;
	known_free(reader->known);
	free(reader);
}

enum fate state_migrate_to(struct catalog *catalog, const struct state_reader *to, const struct app_state *in,
                           struct arena *arena, struct app_state *ret_state, struct schema_want *ret_want,
                           struct error *error)
{
	const struct known_schema *known = to->known;
	const struct reader reader = { known->name, known->full, &known->text, known->fingerprint,
		                           known->schema };
	struct view from;

	*ret_state = *in;
	ret_want->kind = WANT_NOTHING;
	if (is_plain(in))
		return check_plain(in, error);
	return bring_under(catalog, &reader, in, arena, ret_state, &from, ret_want, error);
}
