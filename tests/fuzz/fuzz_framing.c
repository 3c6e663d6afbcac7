/* The frame alone: what it takes off is a piece of the value, and it puts back what it took off. */
#include "schemas/framing.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static void need(bool claim)
{
	if (!claim)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct error error;
	struct frame frame;
	struct buffer again;

	if (framing_take((struct view){ data, len }, &frame, &error) != FATE_OK)
		return 0;
	need(frame.body.data >= data && frame.body.data + frame.body.len == data + len);
	buffer_init(&again, FRAMING_SINGLE_OBJECT_LEN + len);
	if (frame.framing == FRAMING_SINGLE_OBJECT) {
		framing_put(&again, frame.fingerprint);
		buffer_append_view(&again, frame.body);
		need(view_equal(buffer_view(&again), (struct view){ data, len }));
	}
	buffer_done(&again);
	return 0;
}
