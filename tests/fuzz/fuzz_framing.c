/* The frame alone: what it takes off is a piece of the value, and it puts back what it took off. With a
 * registry the first byte says how many of those that follow are the header. */
#include "schemas/framing.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void need(bool claim)
{
	if (!claim)
		abort();
}

static void put_back(const struct frame *frame, struct view header, struct buffer *out)
{
	switch (frame->framing) {
	case FRAMING_SINGLE_OBJECT:
		framing_put(out, frame->fingerprint);
		break;
	case FRAMING_CONFLUENT_ID:
		framing_put_id(out, frame->id);
		break;
	case FRAMING_HEADER_ID:
		framing_put_id(out, frame->id);
		need(view_equal(buffer_view(out), header));
		buffer_reset(out);
		break;
	case FRAMING_HEADER_GUID:
		need(header.len == 17 && memcmp(header.data + 1, frame->guid, 16) == 0);
		break;
	}
	buffer_append_view(out, frame->body);
}

static void check(const struct frame *frame, struct view value, struct view header)
{
	struct buffer again;

	need(frame->body.data >= value.data && frame->body.data + frame->body.len == value.data + value.len);
	buffer_init(&again, FRAMING_SINGLE_OBJECT_LEN + value.len);
	put_back(frame, header, &again);
	need(view_equal(buffer_view(&again), value));
	buffer_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct view value = { data, len };
	struct error error;
	struct frame frame;

	if (framing_take(value, &frame, &error) == FATE_OK) {
		need(frame.framing == FRAMING_SINGLE_OBJECT);
		check(&frame, value, VIEW_NULL);
	}
	if (framing_take_registry(value, VIEW_NULL, &frame, &error) == FATE_OK)
		check(&frame, value, VIEW_NULL);
	if (len == 0 || data[0] >= len)
		return 0;
	struct view header = { data + 1, data[0] };
	value = (struct view){ header.data + header.len, len - 1 - header.len };
	if (framing_take_registry(value, header, &frame, &error) == FATE_OK)
		check(&frame, value, header);
	return 0;
}
