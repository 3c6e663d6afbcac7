#include "worker/ledger_head.h"

#include "schemas/framing.h"

#define CONFLUENT_LEN 5 /* 00 and the id */

static enum fate read_as_framed(struct codec *codec, const struct record *record, struct arena *arena,
                                struct resume_event *ret_event, struct error *error)
{
	codec_schema_header(codec, record_header(record, SCHEMA_ID_HEADER));
	return codec_take_resume_head(codec, record->value, arena, ret_event, error);
}

/* The resume_id is the first field, so that a body of another shape does not pass for it. */
static bool read_as_ours(struct codec *codec, const struct record *record, struct arena *arena,
                         struct resume_event *ret_event)
{
	struct view body = { record->value.data + CONFLUENT_LEN, record->value.len - CONFLUENT_LEN };
	struct buffer value;
	struct error error;
	struct uuid id;
	buffer_init(&value, record->value.len + FRAMING_SINGLE_OBJECT_LEN);
	framing_put(&value, codec_fingerprint(RECORD_RESUME));
	buffer_append_view(&value, body);
	bool good = !buffer_failed(&value) && uuid_parse(record_header(record, "fermata-checkpoint-id"), &id) &&
	            codec_take_resume_head(codec, buffer_view(&value), arena, ret_event, &error) == FATE_OK &&
	            uuid_compare(&ret_event->resume_id, &id) == 0;
	buffer_done(&value);
	return good;
}

bool ledger_head_ours(const struct record *record)
{
	return !view_is_null(record_header(record, "fermata-checkpoint-id"));
}

enum fate ledger_head_read(struct codec *codec, const struct record *record, struct arena *arena,
                           struct resume_event *ret_event, struct error *error)
{
	enum fate fate = read_as_framed(codec, record, arena, ret_event, error);
	if (fate == FATE_OK || (fate == FATE_RETRY && error->code == ERR_MEMORY))
		return fate;
	if (!ledger_head_ours(record) || record->value.len <= CONFLUENT_LEN || record->value.data[0] != 0)
		return fate;
	if (read_as_ours(codec, record, arena, ret_event))
		return FATE_OK;
	return read_as_framed(codec, record, arena, ret_event, error);
}
