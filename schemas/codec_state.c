/* The state in a suspend body, read and replaced where the guard found it. */
#include "schemas/codec_inner.h"

void codec_read_state(const struct guarded_body *guarded, struct app_state *ret_state)
{
	const uint8_t *at = guarded->state.data;

	*ret_state = (struct app_state){ .present = bytes_take_long(&at) != 0 };
	if (!ret_state->present)
		return;
	ret_state->schema = bytes_take_sized(&at);
	ret_state->encoding = (enum encoding)bytes_take_long(&at);
	ret_state->fingerprint = bytes_take_long(&at) != 0 ? bytes_take_sized(&at) : VIEW_NULL;
	ret_state->body = bytes_take_sized(&at);
}

/* Branches and fields are in the order of the schema: null, AppState {schema, encoding, fingerprint, body}. */
static void put_app_state(struct buffer *out, const struct app_state *state)
{
	bytes_put_long(out, state->present);
	if (!state->present)
		return;
	bytes_put_sized(out, state->schema);
	bytes_put_long(out, (int64_t)state->encoding);
	bytes_put_sized_or_null(out, state->fingerprint);
	bytes_put_sized(out, state->body);
}

enum fate codec_replace_state(const struct guarded_body *guarded, const struct app_state *state,
                              struct buffer *out, struct error *error)
{
	const uint8_t *from = guarded->body.data, *end = from + guarded->body.len;
	const uint8_t *after = guarded->state.data + guarded->state.len;
	size_t start = out->len;

	buffer_append(out, from, (size_t)(guarded->state.data - from));
	put_app_state(out, state);
	buffer_append(out, after, (size_t)(end - after));
	if (!buffer_failed(out))
		return FATE_OK;
	out->len = start;
	return buffer_refused(out, error, "with the migrated state it is too large");
}
