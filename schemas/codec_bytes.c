/* Single values of Avro's binary encoding, without avro-c: its generic values take an allocation or two for each text,
 * and a relay reads and writes the same few fields for every resume. */
#include "schemas/codec_inner.h"

/* ---- reading ---- */

int64_t bytes_take_long(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (; **at & 0x80; shift += 7)
		value |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	value |= (uint64_t) * (*at)++ << shift;
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

struct view bytes_take_sized(const uint8_t **at)
{
	size_t len = (size_t)bytes_take_long(at);
	struct view bytes = { *at, len };

	*at += len;
	return bytes;
}

/* ---- writing ---- */

void bytes_put_long(struct buffer *out, int64_t value)
{
	uint64_t left = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
	uint8_t bytes[10];
	size_t len = 0;

	for (; left >= 0x80; left >>= 7)
		bytes[len++] = (uint8_t)(left | 0x80);
	bytes[len++] = (uint8_t)left;
	buffer_append(out, bytes, len);
}

void bytes_put_sized(struct buffer *out, struct view bytes)
{
	bytes_put_long(out, (int64_t)bytes.len);
	buffer_append_view(out, bytes);
}

void bytes_put_sized_or_null(struct buffer *out, struct view bytes)
{
	bytes_put_long(out, !view_is_null(bytes));
	if (!view_is_null(bytes))
		bytes_put_sized(out, bytes);
}

void bytes_put_time_or_none(struct buffer *out, int64_t time)
{
	bytes_put_long(out, time != TIME_NONE);
	if (time != TIME_NONE)
		bytes_put_long(out, time);
}

void bytes_put_uuid(struct buffer *out, struct view text, const struct uuid *uuid)
{
	char made[UUID_TEXT_LEN + 1];

	if (view_is_null(text)) {
		uuid_format(uuid, made);
		text = (struct view){ (const uint8_t *)made, UUID_TEXT_LEN };
	}
	bytes_put_sized(out, text);
}

/* Null or Action {tool, arguments, risk, summary}. */
void bytes_put_action(struct buffer *out, const struct action *action)
{
	bytes_put_long(out, action->present);
	if (!action->present)
		return;
	bytes_put_sized(out, action->tool);
	bytes_put_sized(out, action->arguments);
	bytes_put_long(out, (int64_t)action->risk);
	bytes_put_sized(out, action->summary);
}

enum fate bytes_end(struct buffer *out, enum part part, size_t start, struct error *error)
{
	size_t len = out->len - start;
	enum fate fate =
		buffer_failed(out)
			? buffer_refused(out, error, "a record of more than %zu bytes is more than there is room for",
	                         len)
			: body_guard(part, (struct view){ out->data + start, len }, error);

	if (fate != FATE_OK)
		out->len = start;
	return fate;
}
