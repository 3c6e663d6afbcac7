/*
 * A Kafka value, taken as each of the four records. The frame is put right first, so that what is found is
 * behind it: that of a single object always, and by turns those of a registry that knows a few ids (today's
 * schemas, and one of another version of each, which is migrated), and of its headers. What is taken must be
 * written again, and be no longer than it was but for the frame. The frame itself, and the value as it came,
 * are tried too.
 */
#include "schemas/catalog.h"
#include "schemas/codec.h"
#include "schemas/fingerprint.h"
#include "schemas/framing.h"
#include "schemas/json.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define OTHER_ID 10 /* added to the type: its schema of another version; the type alone: today's */

static struct catalog *catalog;
static struct codec *codec;
static struct arena *arena;
static struct view header;
static size_t slack; /* bytes that what is written may be longer by */

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
	catalog_free(catalog);
	arena_free(arena);
}

static void learn(const struct schema_want *want, struct view text)
{
	struct error error;

	need(catalog_learn(catalog, want, text, &error) == FATE_OK);
}

/* Today's with a field more at the end. */
static void learn_another(enum record_type type)
{
	struct schema_want want = { .kind = WANT_ID, .id = OTHER_ID + (int)type };
	struct buffer text;
	struct view today = codec_schema_text(type);
	size_t end = today.len;

	while (today.data[end - 1] != ']')
		end--;
	buffer_init(&text, SIZE_MAX);
	buffer_append(&text, today.data, end - 1);
	buffer_append_text(&text, ",{\"name\":\"later\",\"type\":[\"null\",\"bytes\"]}]}");
	learn(&want, buffer_view(&text));
	buffer_done(&text);
}

static void learn_all(void)
{
	for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++) {
		struct schema_want want = { .kind = WANT_ID, .id = type };
		learn(&want, codec_schema_text((enum record_type)type));
		want.kind = WANT_GUID;
		want.guid[15] = (uint8_t)type;
		learn(&want, codec_schema_text((enum record_type)type));
		learn_another((enum record_type)type);
	}
}

static void start(void)
{
	struct error error;
	struct catalog_settings registry = { .registry = true, .asks = true };
	struct codec_settings settings = { .strict_boundary = true };

	if (codec)
		return;
	atexit(stop);
	arena = arena_new((size_t)256 << 20);
	need(arena && catalog_new(&catalog, &registry, &error) == FATE_OK);
	learn_all();
	settings.catalog = catalog;
	need(codec_new(&codec, &settings, &error) == FATE_OK);
}

static void take_suspend(struct view value, struct buffer *out)
{
	struct error error;
	struct suspend_event event;
	struct view body;
	struct guarded_body guarded;
	struct action action;
	uint8_t sha256[32];

	if (codec_take_suspend_written(codec, value, arena, &event, &body, sha256, &error) != FATE_OK)
		return;
	need(codec_today(codec, sha256, body, &body, &error) == FATE_OK);
	need(codec_put_suspend(codec, &event, out, &error) == FATE_OK && out->len <= value.len + slack);
	need(codec_guard_suspend_body(body, &guarded, &error) == FATE_OK);
	codec_read_action(&guarded, &action);
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
	need(codec_put_approval(codec, &event, out, &error) == FATE_OK && out->len <= value.len + slack);
	need(edits_equal(&event.edits, &event.edits));
	need(approval_to_json(&event, out, &error) == FATE_OK);
}

static void take_resume(struct view value, struct buffer *out)
{
	struct error error;
	struct resume_event event, head;

	if (codec_take_resume(codec, value, arena, &event, &error) != FATE_OK)
		return;
	codec_schema_header(codec, header);
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
	need(codec_put_gate(codec, &event, out, &error) == FATE_OK && out->len <= value.len + slack);
	need(gate_to_json(&event, out, &error) == FATE_OK);
}

static void take(enum record_type type, struct view value)
{
	static void (*const takers[])(struct view, struct buffer *) = { take_suspend, take_approval, take_resume,
		                                                            take_gate };
	struct buffer out;

	buffer_init(&out, SIZE_MAX);
	codec_schema_header(codec, header);
	takers[type](value, &out);
	buffer_done(&out);
	arena_reset(arena);
}

/* The bytes behind the place of a single object's frame, behind frame. */
static void take_framed(enum record_type type, struct view frame, struct view body)
{
	struct buffer framed;

	buffer_init(&framed, SIZE_MAX);
	buffer_append_view(&framed, frame);
	buffer_append_view(&framed, body);
	uint8_t *exact = malloc(framed.len);
	need(exact && !buffer_failed(&framed));
	memcpy(exact, framed.data, framed.len);
	take(type, (struct view){ exact, framed.len });
	free(exact);
	buffer_done(&framed);
}

static void take_single(enum record_type type, struct view body)
{
	uint8_t frame[FRAMING_SINGLE_OBJECT_LEN] = { 0xc3, 0x01 };

	slack = 0;
	fingerprint_bytes(codec_fingerprint(type), frame + 2);
	take_framed(type, (struct view){ frame, sizeof(frame) }, body);
	slack = FRAMING_SINGLE_OBJECT_LEN;
}

/* In one of the ways that need a registry. */
static void take_registry(enum record_type type, size_t way, struct view body)
{
	uint8_t guid[1 + FRAMING_GUID_LEN] = { 1 }, id[FRAMING_CONFLUENT_LEN] = { 0 };

	guid[FRAMING_GUID_LEN] = id[4] = (uint8_t)type;
	if (way == 0)
		header = (struct view){ id, sizeof(id) };
	else if (way == 1)
		header = (struct view){ guid, sizeof(guid) };
	else if (way == 2)
		id[4] = (uint8_t)(OTHER_ID + type);
	take_framed(type, way < 2 ? VIEW_NULL : (struct view){ id, sizeof(id) }, body);
	header = VIEW_NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct view value = { data, len };

	start();
	slack = FRAMING_SINGLE_OBJECT_LEN;
	for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++) {
		take((enum record_type)type, value);
		if (len <= FRAMING_SINGLE_OBJECT_LEN)
			continue;
		struct view body = { data + FRAMING_SINGLE_OBJECT_LEN, len - FRAMING_SINGLE_OBJECT_LEN };
		take_single((enum record_type)type, body);
		take_registry((enum record_type)type, (data[2] + len) % 4, body);
	}
	return 0;
}
