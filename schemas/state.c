#include "schemas/state.h"

#include "core/json_scan.h"
#include "schemas/fingerprint.h"
#include "schemas/guard.h"
#include "schemas/state_inner.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_MAX   ((size_t)512 * 1024 * 1024)
#define PLANS_KEPT  64
#define STATE_MAX   ((size_t)64 * 1024 * 1024)
#define STATE_FREE  ((size_t)1024 * 1024) /* a state may grow to this and ten times its length */
#define STATE_TIMES 10

enum fate states_load(struct states **ret_states, const char *path, struct error *error)
{
	struct error ignored = { 0 }, *to = error ? error : &ignored;

	*ret_states = NULL;
	if (!path[0])
		return FATE_OK;
	struct states *states = calloc(1, sizeof(*states));
	if (!states)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the schemas of schemas.path");
	states->arena = arena_new(ARENA_MAX);
	states->path = strdup(path);
	enum fate fate = migrate_cache_new(&states->cache, PLANS_KEPT, to);
	if (fate == FATE_OK && (!states->arena || !states->path))
		fate = error_set(to, FATE_RETRY, ERR_MEMORY, "no memory for the schemas of schemas.path");
	if (fate == FATE_OK)
		fate = states_read(states, false, states->seen, to);
	if (fate != FATE_OK) {
		states_free(states);
		return fate;
	}
	*ret_states = states;
	return FATE_OK;
}

void states_free(struct states *states)
{
	if (!states)
		return;
	migrate_cache_free(states->cache);
	for (size_t i = 0; i < states->len; i++)
		schema_free(states->schemas[i].schema);
	arena_free(states->arena);
	free(states->schemas);
	free(states->path);
	free(states);
}

bool states_stale(const struct states *states)
{
	struct error error;
	uint8_t seen[32];

	if (!states)
		return false;
	struct states now = { .path = states->path };
	return states_read(&now, true, seen, &error) != FATE_OK || memcmp(seen, states->seen, 32) != 0;
}

size_t states_readers(const struct states *states)
{
	size_t readers = 0;

	for (size_t i = 0; states && i < states->len; i++)
		readers += states->schemas[i].schema != NULL;
	return readers;
}

size_t states_schemas(const struct states *states)
{
	return states ? states->len : 0;
}

enum fate states_resolve(const struct states *states, const struct known_schema *writer, struct view reader,
                         struct view body, struct buffer *out, struct error *error)
{
	const struct plan *plan;
	enum fate fate = migrate_cache_hold(states->cache, writer->text, reader, &plan, error);

	if (fate != FATE_OK)
		return fate;
	fate = migrate_run(plan, body, out, error);
	migrate_cache_release(states->cache, plan);
	return fate;
}

static enum fate migrate_body(const struct states *states, const struct known_schema *writer,
                              const struct known_schema *reader, const struct app_state *in,
                              struct arena *arena, struct view *ret_body, struct error *error)
{
	struct buffer out;
	size_t most = in->body.len > (STATE_MAX - STATE_FREE) / STATE_TIMES
	                  ? STATE_MAX
	                  : STATE_FREE + STATE_TIMES * in->body.len;

	buffer_init(&out, most);
	enum fate fate = states_resolve(states, writer, reader->text, in->body, &out, error);
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

static enum fate migrate(const struct states *states, const struct known_schema *reader, uint64_t written,
                         const struct app_state *in, struct arena *arena, struct app_state *ret_state,
                         struct view *ret_from, struct error *error)
{
	char hex[FINGERPRINT_HEX_LEN + 1];
	const struct known_schema *writer = states_writer(states, reader->name, written);

	fingerprint_hex(written, hex);
	if (!writer)
		return error_set(
			error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
			"state: it was written with the schema of fingerprint %s, which is not among those of "
			"schemas.path: put it into the folder %.100s there, then retry",
			hex, reader->name);
	enum fate fate = migrate_body(states, writer, reader, in, arena, &ret_state->body, error);
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

enum fate state_migrate(const struct states *states, const struct app_state *in, struct arena *arena,
                        struct app_state *ret_state, struct view *ret_from, struct error *error)
{
	*ret_state = *in;
	*ret_from = VIEW_NULL;
	if (!in->present)
		return FATE_OK;
	if (in->encoding == ENCODING_JSON)
		return json_scan(in->body) ? FATE_OK
		                           : error_set(error, FATE_REJECT, ERR_INVALID,
		                                       "state.body: it is said to be JSON, and is not (RFC 8259)");
	const struct known_schema *reader = states_reader(states, in->schema);
	if (!reader)
		return FATE_OK;
	if (in->fingerprint.len != 8)
		return error_set(error, FATE_REJECT, ERR_INVALID, "state.fingerprint: it must have 8 bytes");
	uint64_t written = fingerprint_of_bytes(in->fingerprint.data);
	if (written != reader->fingerprint)
		return migrate(states, reader, written, in, arena, ret_state, ret_from, error);
	enum fate fate = guard_check(reader->schema->root, reader->full, in->body, MIGRATE_VALUES_MAX, error);
	return fate == FATE_REJECT ? error_wrap(error, "state") : fate;
}
