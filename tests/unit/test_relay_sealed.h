/* test_relay_sealed.h - the part of test_relay_base.h that opens and encodes. */
#ifndef FERMATA_TESTS_UNIT_TEST_RELAY_SEALED_H
#define FERMATA_TESTS_UNIT_TEST_RELAY_SEALED_H

#include "schemas/framing.h"
#include "test_relay.h"

/* ---- sealed and encoded: a body is the number of its checkpoint, a record the id ---- */

enum fate vault_unseal(struct vault *vault, const struct seal_context *context, const struct sealed *sealed,
                       struct arena *arena, struct view *ret_plaintext, struct error *error)
{
	int number = number_of(&context->checkpoint_id);

	(void)vault;
	(void)sealed;
	life_now()->rested = false;
	if (number == play.broken)
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "its tag does not verify");
	if (number == play.waiting || (play.trouble > 0 && chance(2)))
		return error_set(error, FATE_RETRY, ERR_KEY, "the key cannot be had now");
	*ret_plaintext = arena_copy(arena, (struct view){ &context->checkpoint_id.bytes[15], 1 });
	return FATE_OK;
}

enum fate vault_unseal_edits(struct vault *vault, struct view tenant, const struct uuid *checkpoint_id,
                             const struct uuid *decision_id, const struct sealed *sealed, struct arena *arena,
                             struct view *ret_plaintext, struct error *error)
{
	(void)vault;
	(void)tenant;
	(void)checkpoint_id;
	(void)decision_id;
	(void)sealed;
	(void)arena;
	(void)ret_plaintext;
	return error_set(error, FATE_REJECT, ERR_BUG, "there are no edits here");
}

void vault_rest(void)
{
	life_now()->rested = true;
}

void vault_checkpoint_digest(struct view body, uint8_t ret_digest[DIGEST_LEN])
{
	memset(ret_digest, body.data[0], DIGEST_LEN);
}

enum fate codec_new(struct codec **ret_codec, const struct codec_settings *settings, struct error *error)
{
	(void)settings;
	(void)error;
	*ret_codec = NULL;
	return FATE_OK;
}

void codec_forget(struct codec *codec)
{
	(void)codec;
}

void codec_free(struct codec *codec)
{
	(void)codec;
}

void codec_schema_header(struct codec *codec, struct view header)
{
	(void)codec;
	(void)header;
}

uint64_t codec_fingerprint(enum record_type type)
{
	return type;
}

void framing_put(struct buffer *out, uint64_t fingerprint)
{
	buffer_append(out, &fingerprint, 2);
}

struct view record_header(const struct record *record, const char *name)
{
	(void)record;
	(void)name;
	return VIEW_NULL;
}

const struct schema_want *codec_want(const struct codec *codec)
{
	static const struct schema_want nothing;

	(void)codec;
	return &nothing;
}

enum fate codec_today(struct codec *codec, const uint8_t sha256[32], struct view body, struct view *ret_body,
                      struct error *error)
{
	(void)codec;
	(void)sha256;
	(void)error;
	*ret_body = body;
	return FATE_OK;
}

void codec_read_state(const struct guarded_body *guarded, struct app_state *ret_state)
{
	(void)guarded;
	*ret_state = (struct app_state){ .present = false };
}

enum fate codec_replace_state(const struct guarded_body *guarded, const struct app_state *state,
                              struct buffer *out, struct error *error)
{
	(void)guarded;
	(void)state;
	(void)out;
	return error_set(error, FATE_FATAL, ERR_BUG, "there is no state to be replaced");
}

enum fate state_migrate(struct catalog *catalog, const struct app_state *in, struct arena *arena,
                        struct app_state *ret_state, struct view *ret_from, struct schema_want *ret_want,
                        struct error *error)
{
	(void)catalog;
	(void)arena;
	(void)error;
	(void)ret_want;
	*ret_state = *in;
	*ret_from = VIEW_NULL;
	return FATE_OK;
}

bool learn_folder_changed(struct worker *worker)
{
	(void)worker;
	return false;
}

void learn_write_ids(const struct worker *worker, struct codec *codec, const char *topic)
{
	(void)worker;
	(void)codec;
	(void)topic;
}

enum fate codec_guard_suspend_body(struct view body, struct guarded_body *ret_guarded, struct error *error)
{
	(void)error;
	*ret_guarded = (struct guarded_body){ .body = body };
	return FATE_OK;
}

void codec_read_action(const struct guarded_body *guarded, struct action *ret_action)
{
	(void)guarded;
	*ret_action = (struct action){ 0 };
}

enum fate codec_take_edits(struct codec *codec, struct view body, struct arena *arena,
                           struct edits *ret_edits, struct error *error)
{
	(void)codec;
	(void)body;
	(void)arena;
	(void)ret_edits;
	return error_set(error, FATE_REJECT, ERR_BUG, "there are no edits here");
}

enum fate codec_put_resume(struct codec *codec, const struct resume_event *event, struct view suspend_body,
                           struct buffer *out, struct error *error)
{
	(void)codec;
	(void)error;
	assert_int_equal(suspend_body.data[0], number_of(&event->resume_id));
	buffer_append(out, event->resume_id.bytes, sizeof(event->resume_id.bytes));
	return FATE_OK;
}

enum fate codec_put_gate(struct codec *codec, const struct gate_event *event, struct buffer *out,
                         struct error *error)
{
	const struct told told = { event->checkpoint_id, event->state, event->version };

	(void)codec;
	(void)error;
	buffer_append(out, &told, sizeof(told));
	return FATE_OK;
}

enum fate codec_take_resume_head(struct codec *codec, struct view value, struct arena *arena,
                                 struct resume_event *ret_event, struct error *error)
{
	(void)codec;
	(void)arena;
	(void)error;
	*ret_event = (struct resume_event){ .verdict = VERDICT_REJECTED };
	assert_int_equal(value.len, sizeof(ret_event->resume_id.bytes));
	memcpy(ret_event->resume_id.bytes, value.data, value.len);
	return FATE_OK;
}

#endif
