/* Bytes to a part's generic value and back, and the public functions that are the same for every record. */
#include "schemas/catalog_inner.h"
#include "schemas/codec_inner.h"

#include "schemas/fingerprint.h"
#include "schemas/guard.h"
#include "schemas/texts.h"

#include <avro/generic.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES_DEFAULT ((size_t)8 * 1024 * 1024)
/* Values in one record. avro-c takes up to 130 bytes for one that took a single byte (1 MiB of empty strings made
 * 130 MB), so their number hangs on the length: no value need be longer than a byte, but most must be. 1 MiB of
 * history entries with 20 characters each stay below it, and take 20 MB; the worst MiB takes 60. */
#define VALUES_MAX  2000000
#define VALUES_FREE 200000
#define SCRATCH_MAX ((size_t)VALUES_MAX * 64) /* for checks of what is written */

#define MIGRATED_TIMES 2 /* a record may grow so much when it is brought under today's schema */

/* Of what was longer no generic value is kept for the next one: avro-c keeps the room of as many items as there ever were,
 * 56 bytes and more for each, and a record has them for a byte. */
#define KEPT_LEN ((size_t)64 * 1024)

enum fate codec_new(struct codec **ret_codec, const struct codec_settings *settings, struct error *error)
{
	enum fate fate = classes_ready(error);
	if (fate != FATE_OK)
		return fate;
	struct codec *codec = calloc(1, sizeof(*codec));
	if (!codec)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a codec");
	codec->settings = *settings;
	if (codec->settings.record_bytes == 0)
		codec->settings.record_bytes = RECORD_BYTES_DEFAULT;
	codec->registry = settings->catalog && settings->catalog->registry;
	for (int part = PART_SUSPEND; part <= PART_GATE; part++)
		codec->write_ids[part] = -1;
	codec->reader = avro_reader_memory("", 0);
	codec->writer = avro_writer_memory("", 0);
	codec->scratch = arena_new(SCRATCH_MAX);
	buffer_init(&codec->migrated, MIGRATED_TIMES * codec->settings.record_bytes);
	if (!codec->reader || !codec->writer || !codec->scratch) {
		codec_free(codec);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a codec");
	}
	*ret_codec = codec;
	return FATE_OK;
}

void codec_free(struct codec *codec)
{
	if (!codec)
		return;
	for (int part = 0; part < PART_COUNT; part++) {
		if (codec->values[part].iface)
			avro_value_decref(&codec->values[part]);
	}
	if (codec->reader)
		avro_reader_free(codec->reader);
	if (codec->writer)
		avro_writer_free(codec->writer);
	arena_free(codec->scratch);
	buffer_done(&codec->migrated);
	free(codec);
}

void codec_forget(struct codec *codec)
{
	if (codec->migrated.cap > KEPT_LEN)
		buffer_done(&codec->migrated);
	else
		buffer_reset(&codec->migrated);
}

const struct schema_want *codec_want(const struct codec *codec)
{
	return &codec->want;
}

void codec_schema_header(struct codec *codec, struct view header)
{
	codec->header = header;
}

void codec_write_id(struct codec *codec, enum record_type type, int32_t id)
{
	codec->write_ids[type] = id;
}

uint64_t codec_fingerprint(enum record_type type)
{
	return class_of((enum part)type)->fingerprint;
}

void codec_schema_sha256(enum record_type type, uint8_t ret_sha256[32])
{
	memcpy(ret_sha256, class_of((enum part)type)->sha256, 32);
}

struct view codec_schema_text(enum record_type type)
{
	return schema_texts[type].text;
}

static const char *const record_names[] = {
	[RECORD_SUSPEND] = "fermata.v1.SuspendEvent",
	[RECORD_APPROVAL] = "fermata.v1.ApprovalEvent",
	[RECORD_RESUME] = "fermata.v1.ResumeEvent",
	[RECORD_GATE] = "fermata.v1.GateEvent",
};

const char *codec_record_name(enum record_type type)
{
	return record_names[type];
}

bool codec_record_type(const char *name, enum record_type *ret_type)
{
	for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++) {
		*ret_type = (enum record_type)type;
		if (strcmp(record_names[type], name) == 0)
			return true;
	}
	return false;
}

enum fate walk_fate(const struct walk *walk, struct error *error)
{
	if (!walk->failed)
		return FATE_OK;
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a record");
}

enum fate value_start(struct codec *codec, enum part part, avro_value_t *ret_value, struct error *error)
{
	avro_value_t *value = &codec->values[part];

	if (!value->iface && avro_generic_value_new(class_of(part)->iface, value) != 0) {
		*value = (avro_value_t){ NULL, NULL };
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a record");
	}
	codec->refusals[part] = memory_refusals();
	codec->lens[part] = 0;
	*ret_value = *value;
	return FATE_OK;
}

/* Where avro-c was refused memory it may have left half of a value behind, which it cannot walk through any more, not even
 * to free it: such a one is given up. */
void value_done(struct codec *codec, enum part part)
{
	avro_value_t *value = &codec->values[part];

	if (value->iface && memory_refusals() != codec->refusals[part])
		*value = (avro_value_t){ NULL, NULL };
	if (value->iface && codec->lens[part] > KEPT_LEN)
		avro_value_decref(value); /* clears it */
	else if (value->iface)
		avro_value_reset(value);
}

/* Whatever fails here fails for want of memory: the guard was there before. */
enum fate value_read(struct codec *codec, enum part part, struct view body, avro_value_t *ret_value,
                     struct error *error)
{
	enum fate fate = value_start(codec, part, ret_value, error);
	if (fate != FATE_OK)
		return fate;
	codec->lens[part] = body.len;
	avro_reader_memory_set_source(codec->reader, (const char *)body.data, (int64_t)body.len);
	if (avro_value_read(codec->reader, ret_value) != 0) {
		value_done(codec, part);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to decode a record");
	}
	return FATE_OK;
}

static enum fate write_bytes(struct codec *codec, avro_value_t *value, struct buffer *out,
                             struct error *error)
{
	size_t len = 0;
	int code = avro_value_sizeof(value, &len);
	uint8_t *room = code == 0 ? buffer_reserve(out, len) : NULL;

	if (code == 0 && !room)
		return buffer_refused(out, error, "a record of %zu bytes is more than there is room for", len);
	avro_writer_memory_set_dest(codec->writer, (const char *)room, (int64_t)len);
	if (code != 0 || avro_value_write(codec->writer, value) != 0)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to encode a record");
	out->len += len;
	return FATE_OK;
}

enum fate value_write(struct codec *codec, enum part part, const struct walk *walk, struct buffer *out,
                      struct error *error)
{
	size_t start = out->len;
	enum fate fate = walk_fate(walk, error);

	if (fate == FATE_OK)
		fate = write_bytes(codec, &codec->values[part], out, error);
	codec->lens[part] = fate == FATE_OK ? out->len - start : SIZE_MAX;
	value_done(codec, part);
	if (fate == FATE_OK)
		fate = body_guard(part, (struct view){ out->data + start, out->len - start }, error);
	if (fate != FATE_OK)
		out->len = start;
	return fate;
}

size_t values_in(size_t len)
{
	size_t most = VALUES_FREE + len / 4;

	return most < VALUES_MAX ? most : VALUES_MAX;
}

/* A resume holds a suspend that was let in, and more. */
enum fate body_guard(enum part part, struct view body, struct error *error)
{
	const struct part_class *class = class_of(part);
	size_t most = values_in(body.len);

	return guard_check(class->type, class->name, body, part == PART_RESUME ? 2 * most : most, error);
}

/* limits.record_bytes binds what agents and approvers send. A resume holds a suspend and more; what the
 * worker wrote and the broker took is not measured again. */
static enum fate check_size(const struct codec *codec, enum part part, struct view value, struct error *error)
{
	if (value.len <= codec->settings.record_bytes || (part != PART_SUSPEND && part != PART_APPROVAL))
		return FATE_OK;
	return error_set(error, FATE_REJECT, ERR_TOO_LARGE,
	                 "the value has %zu bytes, and limits.record_bytes allows %zu", value.len,
	                 codec->settings.record_bytes);
}

size_t put_begin(struct codec *codec, enum part part, struct buffer *out)
{
	size_t start = out->len;

	arena_reset(codec->scratch);
	if (codec->write_ids[part] >= 0)
		framing_put_id(out, codec->write_ids[part]);
	else
		framing_put(out, class_of(part)->fingerprint);
	return start;
}

enum fate put_end(struct codec *codec, enum part part, struct buffer *out, size_t start, enum fate fate,
                  struct error *error)
{
	if (fate == FATE_OK)
		fate = check_size(codec, part, (struct view){ out->data + start, out->len - start }, error);
	if (fate != FATE_OK)
		out->len = start;
	return fate;
}

/* A frame's body under today's schema of the record `whole`. */
static enum fate take_body(struct codec *codec, enum part whole, const struct frame *frame,
                           struct view *ret_body, uint8_t ret_sha256[32], struct error *error)
{
	if (frame->framing == FRAMING_SINGLE_OBJECT && frame->fingerprint == class_of(whole)->fingerprint) {
		*ret_body = frame->body;
		memcpy(ret_sha256, class_of(whole)->sha256, 32);
		return FATE_OK;
	}
	return older_take(codec, whole, frame, ret_body, ret_sha256, error);
}

static enum fate take_frame(struct codec *codec, enum part part, enum part whole, struct view value,
                            struct view *ret_body, struct view *ret_sent, uint8_t ret_sha256[32],
                            struct error *error)
{
	struct frame frame;
	struct view header = codec->header;
	enum fate fate = check_size(codec, whole, value, error);

	codec->header = VIEW_NULL;
	codec->want.kind = WANT_NOTHING;
	if (fate == FATE_OK)
		fate = codec->registry ? framing_take_registry(value, header, &frame, error)
		                       : framing_take(value, &frame, error);
	if (fate == FATE_OK)
		fate = take_body(codec, whole, &frame, ret_body, ret_sha256, error);
	if (fate != FATE_OK)
		return fate;
	*ret_sent = frame.body;
	if (part == whole)
		return body_guard(part, *ret_body, error);
	return guard_prefix(class_of(part)->type, class_of(part)->name, *ret_body, values_in(ret_body->len),
	                    &ret_body->len, error);
}

enum fate body_take_sent(struct codec *codec, enum part part, struct view value, struct view *ret_body,
                         struct view *ret_sent, uint8_t ret_sha256[32], struct error *error)
{
	uint8_t ignored[32];

	return take_frame(codec, part, part == PART_RESUME_HEAD ? PART_RESUME : part, value, ret_body, ret_sent,
	                  ret_sha256 ? ret_sha256 : ignored, error);
}

enum fate body_take(struct codec *codec, enum part part, struct view value, struct view *ret_body,
                    struct error *error)
{
	struct view sent;

	return body_take_sent(codec, part, value, ret_body, &sent, NULL, error);
}
