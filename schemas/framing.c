#include "schemas/framing.h"

#include "schemas/fingerprint.h"

#include <string.h>

static enum fate wrong(struct error *error, const char *text)
{
	return error_set(error, FATE_REJECT, ERR_FRAMING, "%s", text);
}

static uint32_t number_of(const uint8_t bytes[4])
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static enum fate refuse_confluent(struct view value, struct error *error)
{
	if (value.len < FRAMING_CONFLUENT_LEN)
		return wrong(error,
		             "the framing of the value is cut off: 00 begins Confluent's, whose schema id takes "
		             "4 more bytes (and which needs registry.url, which is not configured)");
	return error_set(
		error, FATE_REJECT, ERR_FRAMING,
		"the value has Confluent's framing (00, schema id %u), which needs registry.url, which is "
		"not configured: set it, or send single-object encoding (C3 01)",
		number_of(value.data + 1));
}

static enum fate take_confluent(struct view value, struct frame *ret_frame, struct error *error)
{
	if (value.len < FRAMING_CONFLUENT_LEN)
		return error_set(
			error, FATE_REJECT, ERR_FRAMING,
			"the framing of the value is cut off: 00 begins Confluent's, whose schema id takes 4 "
			"more bytes, and the value has %zu",
			value.len);
	*ret_frame = (struct frame){
		.framing = FRAMING_CONFLUENT_ID,
		.id = (int32_t)number_of(value.data + 1),
		.body = { value.data + FRAMING_CONFLUENT_LEN, value.len - FRAMING_CONFLUENT_LEN },
	};
	return FATE_OK;
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

static enum fate take_header(struct view value, struct view header, struct frame *ret_frame,
                             struct error *error)
{
	*ret_frame = (struct frame){ .body = value };
	if (header.len == FRAMING_CONFLUENT_LEN && header.data[0] == 0x00) {
		ret_frame->framing = FRAMING_HEADER_ID;
		ret_frame->id = (int32_t)number_of(header.data + 1);
		return FATE_OK;
	}
	if (header.len == 1 + FRAMING_GUID_LEN && header.data[0] == 0x01) {
		ret_frame->framing = FRAMING_HEADER_GUID;
		memcpy(ret_frame->guid, header.data + 1, FRAMING_GUID_LEN);
		return FATE_OK;
	}
	return error_set(
		error, FATE_REJECT, ERR_FRAMING,
		"the value has no framing, and its header %s is malformed: it must be 00 and a schema id of 4 "
		"bytes, or 01 and a GUID of 16, and has %zu bytes%s",
		FRAMING_HEADER_NAME, header.len,
		header.len > 0 && header.data[0] > 0x01 ? " that begin with neither" : "");
}

static enum fate check_there(struct view value, struct error *error)
{
	if (view_is_null(value))
		return wrong(error, "the value is null");
	return value.len == 0 ? wrong(error, "the value is empty") : FATE_OK;
}

static bool is_single_object(struct view value)
{
	return value.data[0] == 0xc3 && (value.len == 1 || value.data[1] == 0x01);
}

enum fate framing_take(struct view value, struct frame *ret_frame, struct error *error)
{
	enum fate fate = check_there(value, error);

	if (fate != FATE_OK)
		return fate;
	if (value.data[0] == 0x00)
		return refuse_confluent(value, error);
	if (is_single_object(value))
		return take_single_object(value, ret_frame, error);
	return wrong(
		error, "the value has no framing: single-object encoding begins with C3 01 (a body whose schema "
			   "is named in the header " FRAMING_HEADER_NAME " needs registry.url, which is not configured)");
}

enum fate framing_take_registry(struct view value, struct view header, struct frame *ret_frame,
                                struct error *error)
{
	enum fate fate = check_there(value, error);

	if (fate != FATE_OK)
		return fate;
	if (value.data[0] == 0x00)
		return take_confluent(value, ret_frame, error);
	if (is_single_object(value))
		return take_single_object(value, ret_frame, error);
	if (!view_is_null(header))
		return take_header(value, header, ret_frame, error);
	return wrong(
		error, "the value has no framing: single-object encoding begins with C3 01, Confluent's with 00 and "
			   "a schema id, and there is no header " FRAMING_HEADER_NAME);
}

void framing_put(struct buffer *out, uint64_t fingerprint)
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint, bytes);
	buffer_append_byte(out, 0xc3);
	buffer_append_byte(out, 0x01);
	buffer_append(out, bytes, sizeof(bytes));
}

void framing_put_id(struct buffer *out, int32_t id)
{
	uint32_t number = (uint32_t)id;

	buffer_append_byte(out, 0x00);
	for (int shift = 24; shift >= 0; shift -= 8)
		buffer_append_byte(out, (uint8_t)(number >> shift));
}
