/* ApprovalEvent, and Edits by themselves. */
#include "schemas/codec_inner.h"
#include "schemas/validate.h"

#include <assert.h>
#include <string.h>

static_assert(DECISION_APPROVE == 0 && DECISION_EXPIRE == 3, "DecisionKind");

static void read_digest(struct cursor *at, struct approval_event *event)
{
	avro_value_t branch;
	const void *data = NULL;
	size_t size = 0;

	event->has_digest = next_branch(at, &branch);
	if (!event->has_digest)
		return;
	int code = avro_value_get_fixed(&branch, &data, &size);
	assert(code == 0 && size == DIGEST_LEN);
	memcpy(event->checkpoint_digest, data, DIGEST_LEN);
}

static void read_approval(struct cursor *at, struct approval_event *event)
{
	event->decision_id_text = next_text(at);
	event->checkpoint_id_text = next_text(at);
	event->session_id = next_text(at);
	event->decision = (enum decision_kind)next_enum(at);
	next_approver(at, &event->decided_by);
	event->decided_at = next_long(at);
	event->reason = next_text_or_null(at);
	next_edits(at, &event->edits);
	read_digest(at, event);
	next_source(at, &event->source);
	next_signature(at, &event->signature);
}

static enum fate check(struct approval_event *event, struct arena *arena, struct error *error)
{
	enum fate fate = validate_uuid(event->decision_id_text, "decision_id", &event->decision_id, error);

	if (fate == FATE_OK)
		fate = validate_uuid(event->checkpoint_id_text, "checkpoint_id", &event->checkpoint_id, error);
	return fate == FATE_OK ? validate_approval(event, arena, error) : fate;
}

enum fate codec_take_approval(struct codec *codec, struct view value, struct arena *arena,
                              struct approval_event *ret_event, struct view *ret_body, struct error *error)
{
	avro_value_t generic;
	struct view today;
	enum fate fate = body_take_sent(codec, PART_APPROVAL, value, &today, ret_body, NULL, error);

	if (fate == FATE_OK)
		fate = value_read(codec, PART_APPROVAL, today, &generic, error);
	buffer_reset(&codec->migrated);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { .arena = arena };
	struct cursor at = cursor_of(&walk, &generic);
	read_approval(&at, ret_event);
	value_done(codec, PART_APPROVAL);
	fate = walk_fate(&walk, error);
	return fate == FATE_OK ? check(ret_event, arena, error) : fate;
}

static void put_digest(struct cursor *at, const struct approval_event *event)
{
	avro_value_t branch = put_branch(at, event->has_digest);

	if (!event->has_digest || !branch.iface)
		return;
	/* avro-c takes no const, and copies. */
	if (avro_value_set_fixed(&branch, (void *)(uintptr_t)event->checkpoint_digest, DIGEST_LEN) != 0)
		at->walk->failed = true;
}

static enum fate encode(struct codec *codec, const struct approval_event *event, struct buffer *out,
                        struct error *error)
{
	avro_value_t value;
	char ids[2][UUID_TEXT_LEN + 1];
	enum fate fate = value_start(codec, PART_APPROVAL, &value, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { 0 };
	struct cursor at = cursor_of(&walk, &value);
	put_uuid(&at, event->decision_id_text, &event->decision_id, ids[0]);
	put_uuid(&at, event->checkpoint_id_text, &event->checkpoint_id, ids[1]);
	put_text(&at, event->session_id);
	put_enum(&at, (int)event->decision);
	put_approver(&at, &event->decided_by);
	put_long(&at, event->decided_at);
	put_text_or_null(&at, event->reason);
	put_edits(&at, &event->edits);
	put_digest(&at, event);
	put_source(&at, &event->source);
	put_signature(&at, &event->signature);
	return value_write(codec, PART_APPROVAL, &walk, out, error);
}

enum fate codec_put_approval(struct codec *codec, const struct approval_event *event, struct buffer *out,
                             struct error *error)
{
	size_t start = put_begin(codec, PART_APPROVAL, out);
	enum fate fate = validate_id_to_put(event->decision_id_text, "decision_id", error);

	if (fate == FATE_OK)
		fate = validate_id_to_put(event->checkpoint_id_text, "checkpoint_id", error);
	if (fate == FATE_OK)
		fate = validate_approval(event, codec->scratch, error);
	if (fate == FATE_OK)
		fate = encode(codec, event, out, error);
	return put_end(codec, PART_APPROVAL, out, start, fate, error);
}

enum fate codec_put_edits(struct codec *codec, const struct edits *edits, struct buffer *out,
                          struct error *error)
{
	avro_value_t value;

	assert(edits->present);
	arena_reset(codec->scratch);
	enum fate fate = validate_edits(edits, codec->scratch, error);
	if (fate == FATE_OK)
		fate = value_start(codec, PART_EDITS, &value, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { 0 };
	struct cursor at = cursor_of(&walk, &value);
	write_edits(&at, edits);
	return value_write(codec, PART_EDITS, &walk, out, error);
}

enum fate codec_take_edits(struct codec *codec, struct view body, struct arena *arena,
                           struct edits *ret_edits, struct error *error)
{
	avro_value_t value;
	enum fate fate = body_guard(PART_EDITS, body, error);

	if (fate == FATE_OK)
		fate = value_read(codec, PART_EDITS, body, &value, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { .arena = arena };
	struct cursor at = cursor_of(&walk, &value);
	*ret_edits = (struct edits){ 0 };
	read_edits(&at, ret_edits);
	value_done(codec, PART_EDITS);
	fate = walk_fate(&walk, error);
	return fate == FATE_OK ? validate_edits(ret_edits, arena, error) : fate;
}
