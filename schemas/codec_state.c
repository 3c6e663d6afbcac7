/* The state in a suspend body: found by the guard's walk, read and replaced where it stands. */
#include "schemas/codec_inner.h"

#include "schemas/guard.h"

#include <string.h>

/* What stands before the state, the state, and what follows it. */
struct split {
	struct view before, state, after;
};

static enum fate split_body(struct view body, struct split *ret_split, struct error *error)
{
	const struct schema_type *type = class_of(PART_SUSPEND)->type;
	struct view rest = body;
	size_t len;
	enum fate fate = body_skip_to(type, "state", &rest, &type, error);

	if (fate == FATE_OK)
		fate = guard_prefix(type, "state", rest, SIZE_MAX, &len, error);
	if (fate != FATE_OK)
		return fate;
	ret_split->before = (struct view){ body.data, body.len - rest.len };
	ret_split->state = (struct view){ rest.data, len };
	ret_split->after = (struct view){ rest.data + len, rest.len - len };
	return FATE_OK;
}

/* The bytes have passed the guard. */
static int64_t take_long(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (; **at & 0x80; shift += 7)
		value |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	value |= (uint64_t) * (*at)++ << shift;
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static struct view take_bytes(const uint8_t **at)
{
	size_t len = (size_t)take_long(at);
	struct view bytes = { *at, len };

	*at += len;
	return bytes;
}

enum fate codec_read_state(struct codec *codec, struct view body, struct arena *arena,
                           struct app_state *ret_state, struct error *error)
{
	struct split split;
	enum fate fate = split_body(body, &split, error);

	(void)codec;
	if (fate != FATE_OK)
		return fate;
	const uint8_t *at = split.state.data;
	*ret_state = (struct app_state){ .present = take_long(&at) != 0 };
	if (!ret_state->present)
		return FATE_OK;
	ret_state->schema = arena_copy(arena, take_bytes(&at));
	ret_state->encoding = (enum encoding)take_long(&at);
	ret_state->fingerprint = take_long(&at) != 0 ? arena_copy(arena, take_bytes(&at)) : VIEW_NULL;
	ret_state->body = arena_copy(arena, take_bytes(&at));
	if (!ret_state->schema.data || !ret_state->body.data)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a state");
	return FATE_OK;
}

static void put_number(struct buffer *out, size_t value)
{
	for (value <<= 1; value >= 0x80; value >>= 7)
		buffer_append_byte(out, (uint8_t)(value | 0x80));
	buffer_append_byte(out, (uint8_t)value);
}

static void put_sized(struct buffer *out, struct view bytes)
{
	put_number(out, bytes.len);
	buffer_append_view(out, bytes);
}

/* Branches and fields are in the order of the schema: null, AppState {schema, encoding, fingerprint, body}. */
static void put_app_state(struct buffer *out, const struct app_state *state)
{
	put_number(out, state->present);
	if (!state->present)
		return;
	put_sized(out, state->schema);
	put_number(out, (size_t)state->encoding);
	put_number(out, !view_is_null(state->fingerprint));
	if (!view_is_null(state->fingerprint))
		put_sized(out, state->fingerprint);
	put_sized(out, state->body);
}

enum fate codec_replace_state(struct codec *codec, struct view body, const struct app_state *state,
                              struct buffer *out, struct error *error)
{
	struct split split;
	size_t start = out->len;
	enum fate fate = split_body(body, &split, error);

	(void)codec;
	if (fate != FATE_OK)
		return fate;
	buffer_append_view(out, split.before);
	put_app_state(out, state);
	buffer_append_view(out, split.after);
	if (!buffer_failed(out))
		return FATE_OK;
	out->len = start;
	return buffer_refused(out, error, "with the migrated state it is too large");
}
