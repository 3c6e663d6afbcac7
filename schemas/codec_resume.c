/* ResumeEvent: a head, the fields of the suspend record, a tail. */
#include "schemas/codec_inner.h"
#include "schemas/validate.h"

#include <assert.h>

static_assert(VERDICT_APPROVED == 0 && VERDICT_CANCELLED == 3, "Verdict");

static void read_decisions(struct cursor *at, struct resume_event *event)
{
	avro_value_t array;

	event->decisions = next_array(at, sizeof(*event->decisions), &array, &event->decisions_len);
	for (size_t i = 0; i < event->decisions_len; i++) {
		struct resume_decision *decision = &event->decisions[i];
		struct cursor inner = item_record(at->walk, &array, i);
		decision->decision_id_text = next_text(&inner);
		next_approver(&inner, &decision->decided_by);
		decision->decided_at = next_long(&inner);
		decision->decision = (enum decision_kind)next_enum(&inner);
		decision->reason = next_text_or_null(&inner);
		next_source(&inner, &decision->source);
	}
}

static void read_head(struct cursor *at, struct resume_event *event)
{
	event->resume_id_text = next_text(at);
	event->verdict = (enum verdict)next_enum(at);
	read_decisions(at, event);
	next_edits(at, &event->edits);
}

static void read_tail(struct cursor *at, struct resume_event *event)
{
	event->migrated_from = next_text_or_null(at);
	event->resumed_at = next_long(at);
	event->expires_at = next_time_or_none(at);
	next_signature(at, &event->signature);
}

static enum fate check_head(struct resume_event *event, struct arena *arena, struct error *error)
{
	enum fate fate = validate_uuid(event->resume_id_text, "resume_id", &event->resume_id, error);

	for (size_t i = 0; i < event->decisions_len && fate == FATE_OK; i++)
		fate = validate_uuid(event->decisions[i].decision_id_text, "decisions[].decision_id",
		                     &event->decisions[i].decision_id, error);
	return fate == FATE_OK ? validate_resume(event, arena, error) : fate;
}

/* The boundary was judged at intake, by the worker's settings and not by the reader's. */
static enum fate check(struct resume_event *event, struct arena *arena, struct error *error)
{
	struct suspend_event *suspend = &event->suspend;
	enum fate fate = check_head(event, arena, error);

	if (fate == FATE_OK)
		fate = validate_uuid(suspend->checkpoint_id_text, "checkpoint_id", &suspend->checkpoint_id, error);
	return fate == FATE_OK ? validate_suspend(suspend, false, arena, error) : fate;
}

enum fate codec_take_resume(struct codec *codec, struct view value, struct arena *arena,
                            struct resume_event *ret_event, struct error *error)
{
	struct view body;
	avro_value_t generic;
	enum fate fate = body_take(codec, PART_RESUME, value, &body, error);

	if (fate == FATE_OK)
		fate = value_read(codec, PART_RESUME, body, &generic, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { .arena = arena };
	struct cursor at = cursor_of(&walk, &generic);
	read_head(&at, ret_event);
	read_suspend(&at, &ret_event->suspend);
	read_tail(&at, ret_event);
	value_done(codec, PART_RESUME);
	fate = walk_fate(&walk, error);
	return fate == FATE_OK ? check(ret_event, arena, error) : fate;
}

enum fate codec_take_resume_head(struct codec *codec, struct view value, struct arena *arena,
                                 struct resume_event *ret_event, struct error *error)
{
	struct view head;
	avro_value_t generic;
	enum fate fate = body_take(codec, PART_RESUME_HEAD, value, &head, error);

	if (fate == FATE_OK)
		fate = value_read(codec, PART_RESUME_HEAD, head, &generic, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { .arena = arena };
	struct cursor at = cursor_of(&walk, &generic);
	*ret_event = (struct resume_event){ .expires_at = TIME_NONE };
	read_head(&at, ret_event);
	value_done(codec, PART_RESUME_HEAD);
	fate = walk_fate(&walk, error);
	return fate == FATE_OK ? check_head(ret_event, arena, error) : fate;
}

/* An array: one block of all items, and the end. */
static void put_decisions(struct buffer *out, const struct resume_event *event)
{
	if (event->decisions_len > 0)
		bytes_put_long(out, (int64_t)event->decisions_len);
	for (size_t i = 0; i < event->decisions_len; i++) {
		const struct resume_decision *decision = &event->decisions[i];
		bytes_put_uuid(out, decision->decision_id_text, &decision->decision_id);
		bytes_put_sized(out, decision->decided_by.issuer);
		bytes_put_sized(out, decision->decided_by.subject);
		bytes_put_sized(out, decision->decided_by.display);
		bytes_put_long(out, decision->decided_at);
		bytes_put_long(out, (int64_t)decision->decision);
		bytes_put_sized_or_null(out, decision->reason);
		bytes_put_sized(out, decision->source.system);
		bytes_put_sized(out, decision->source.ref);
		bytes_put_sized(out, decision->source.delivery_id);
	}
	bytes_put_long(out, 0);
}

static enum fate put_edits_or_null(struct codec *codec, const struct edits *edits, struct buffer *out,
                                   struct error *error)
{
	bytes_put_long(out, edits->present);
	return edits->present ? codec_put_edits(codec, edits, out, error) : FATE_OK;
}

static enum fate write_head(struct codec *codec, const struct resume_event *event, struct buffer *out,
                            struct error *error)
{
	size_t start = out->len;

	bytes_put_uuid(out, event->resume_id_text, &event->resume_id);
	bytes_put_long(out, (int64_t)event->verdict);
	put_decisions(out, event);
	enum fate fate = put_edits_or_null(codec, &event->edits, out, error);
	return fate == FATE_OK ? bytes_end(out, PART_RESUME_HEAD, start, error) : fate;
}

static void put_signature_or_null(struct buffer *out, const struct signature *signature)
{
	bytes_put_long(out, signature->present);
	if (!signature->present)
		return;
	bytes_put_sized(out, signature->key_id);
	bytes_put_sized(out, signature->body);
	bytes_put_sized(out, signature->value);
}

static enum fate write_tail(const struct resume_event *event, struct buffer *out, struct error *error)
{
	size_t start = out->len;

	bytes_put_sized_or_null(out, event->migrated_from);
	bytes_put_long(out, event->resumed_at);
	bytes_put_time_or_none(out, event->expires_at);
	put_signature_or_null(out, &event->signature);
	return bytes_end(out, PART_RESUME_TAIL, start, error);
}

static enum fate check_to_put(struct codec *codec, const struct resume_event *event, struct error *error)
{
	enum fate fate = validate_id_to_put(event->resume_id_text, "resume_id", error);

	for (size_t i = 0; i < event->decisions_len && fate == FATE_OK; i++)
		fate = validate_id_to_put(event->decisions[i].decision_id_text, "decisions[].decision_id", error);
	return fate == FATE_OK ? validate_resume(event, codec->scratch, error) : fate;
}

enum fate codec_put_resume(struct codec *codec, const struct resume_event *event, struct view suspend_body,
                           struct buffer *out, struct error *error)
{
	size_t start = put_begin(codec, PART_RESUME, out);
	enum fate fate = check_to_put(codec, event, error);

	if (fate == FATE_OK)
		fate = write_head(codec, event, out, error);
	if (fate == FATE_OK) {
		buffer_append_view(out, suspend_body);
		fate = write_tail(event, out, error);
	}
	return put_end(codec, PART_RESUME, out, start, fate, error);
}
