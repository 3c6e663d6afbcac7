/*
 * A Kafka value, taken as each of the four records. The frame is put right first, so that what is found is
 * behind it; what is taken must be written again, and be no longer than it was. The frame itself, and the
 * value as it came, are tried too.
 */
#include "schemas/codec.h"
#include "schemas/fingerprint.h"
#include "schemas/framing.h"
#include "schemas/json.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static struct codec *codec;
static struct arena *arena;

static void need(bool claim)
{
	if (!claim)
		abort();
}

/* Lets go of everything, so that a leak is a leak: avro-c keeps pointers at odd addresses, where the leak
 * checker does not look for them. */
static void stop(void)
{
	codec_free(codec);
	arena_free(arena);
}

static void start(void)
{
	struct error error;
	struct codec_settings settings = { .strict_boundary = true };

	if (codec)
		return;
	atexit(stop);
	arena = arena_new((size_t)256 << 20);
	need(arena && codec_new(&codec, &settings, &error) == FATE_OK);
}

static void take_suspend(struct view value, struct buffer *out)
{
	struct error error;
	struct suspend_event event;
	struct view body;
	struct action action;

	if (codec_take_suspend(codec, value, arena, &event, &body, &error) != FATE_OK)
		return;
	need(codec_put_suspend(codec, &event, out, &error) == FATE_OK && out->len <= value.len);
	need(codec_read_action(codec, body, arena, &action, &error) == FATE_OK);
	need(action.present == event.gate.action.present);
	need(suspend_to_json(&event, out, &error) == FATE_OK);
}

static void take_approval(struct view value, struct buffer *out)
{
	struct error error;
	struct approval_event event;
	struct view body;

	if (codec_take_approval(codec, value, arena, &event, &body, &error) != FATE_OK)
		return;
	need(codec_put_approval(codec, &event, out, &error) == FATE_OK && out->len <= value.len);
	need(edits_equal(&event.edits, &event.edits));
	need(approval_to_json(&event, out, &error) == FATE_OK);
}

static void take_resume(struct view value, struct buffer *out)
{
	struct error error;
	struct resume_event event, head;

	if (codec_take_resume(codec, value, arena, &event, &error) != FATE_OK)
		return;
	need(codec_take_resume_head(codec, value, arena, &head, &error) == FATE_OK);
	need(head.decisions_len == event.decisions_len);
	need(resume_to_json(&event, out, &error) == FATE_OK);
}

static void take_gate(struct view value, struct buffer *out)
{
	struct error error;
	struct gate_event event;

	if (codec_take_gate(codec, value, arena, &event, &error) != FATE_OK)
		return;
	need(codec_put_gate(codec, &event, out, &error) == FATE_OK && out->len <= value.len);
	need(gate_to_json(&event, out, &error) == FATE_OK);
}

static void take(enum record_type type, struct view value)
{
	static void (*const takers[])(struct view, struct buffer *) = { take_suspend, take_approval, take_resume,
		                                                            take_gate };
	struct buffer out;

	buffer_init(&out, SIZE_MAX);
	takers[type](value, &out);
	buffer_done(&out);
	arena_reset(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct view value = { data, len };
	struct frame frame;
	struct error error;

	start();
	need(framing_take(value, &frame, &error) != FATE_OK || frame.body.len + 10 == len);
	for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++) {
		take((enum record_type)type, value);
		if (len < FRAMING_SINGLE_OBJECT_LEN)
			continue;
		uint8_t *framed = malloc(len);
		need(framed != NULL);
		memcpy(framed, data, len);
		framed[0] = 0xc3;
		framed[1] = 0x01;
		fingerprint_bytes(codec_fingerprint((enum record_type)type), framed + 2);
		take((enum record_type)type, (struct view){ framed, len });
		free(framed);
	}
	return 0;
}
