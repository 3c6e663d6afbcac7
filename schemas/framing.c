#include "schemas/framing.h"

#include "schemas/fingerprint.h"

#define CONFLUENT_LEN 5 /* 00, then the id, big-endian */

static enum fate wrong(struct error *error, const char *text)
{
	return error_set(error, FATE_REJECT, ERR_FRAMING, "%s", text);
}

static enum fate refuse_confluent(struct view value, struct error *error)
{
	if (value.len < CONFLUENT_LEN)
		return wrong(error,
		             "the framing of the value is cut off: 00 begins Confluent's, whose schema id takes "
		             "4 more bytes (and which needs registry.url, which is not configured)");
	uint32_t id = (uint32_t)value.data[1] << 24 | (uint32_t)value.data[2] << 16 |
	              (uint32_t)value.data[3] << 8 | value.data[4];
	return error_set(
		error, FATE_REJECT, ERR_FRAMING,
		"the value has Confluent's framing (00, schema id %u), which needs registry.url, which is "
		"not configured: set it, or send single-object encoding (C3 01)",
		id);
}

static enum fate take_single_object(struct view value, struct frame *ret_frame, struct error *error)
{
	if (value.len < FRAMING_SINGLE_OBJECT_LEN)
		return error_set(error, FATE_REJECT, ERR_FRAMING,
		                 "the framing of the value is cut off: single-object encoding has 10 bytes before "
		                 "the body, the value has %zu",
		                 value.len);
	*ret_frame = (struct frame){
		.framing = FRAMING_SINGLE_OBJECT,
		.fingerprint = fingerprint_of_bytes(value.data + 2),
		.body = { value.data + FRAMING_SINGLE_OBJECT_LEN, value.len - FRAMING_SINGLE_OBJECT_LEN },
	};
	return FATE_OK;
}

enum fate framing_take(struct view value, struct frame *ret_frame, struct error *error)
{
	if (view_is_null(value))
		return wrong(error, "the value is null");
	if (value.len == 0)
		return wrong(error, "the value is empty");
	if (value.data[0] == 0x00)
		return refuse_confluent(value, error);
	if (value.data[0] == 0xc3 && (value.len == 1 || value.data[1] == 0x01))
		return take_single_object(value, ret_frame, error);
	return wrong(error,
	             "the value has no framing: single-object encoding begins with C3 01 (a body whose schema "
	             "is named in the header __value_schema_id needs registry.url, which is not configured)");
}

void framing_put(struct buffer *out, uint64_t fingerprint)
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint, bytes);
	buffer_append_byte(out, 0xc3);
	buffer_append_byte(out, 0x01);
	buffer_append(out, bytes, sizeof(bytes));
}
