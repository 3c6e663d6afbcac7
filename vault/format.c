#include "vault/format.h"

#include <assert.h>
#include <string.h>

/* The longest is that of a checkpoint: its label, eight lengths and their fields. */
static_assert(20 + 8 * 4 + 1 + 2 * BOUND_TEXT_MAX + 16 + 8 + 32 + 1 + 8 <= AAD_MAX, "the AAD fits");

static void put(struct aad *aad, const void *data, size_t len)
{
	assert(len <= AAD_MAX - aad->len);
	if (len > 0)
		memcpy(aad->bytes + aad->len, data, len);
	aad->len += len;
}

static void put_integer(struct aad *aad, uint64_t value, size_t len)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	put(aad, bytes, len);
}

static void put_field(struct aad *aad, const void *data, size_t len)
{
	put_integer(aad, len, 4);
	put(aad, data, len);
}

static void put_integer_field(struct aad *aad, uint64_t value, size_t len)
{
	put_integer(aad, len, 4);
	put_integer(aad, value, len);
}

static void put_label(struct aad *aad, const char *label)
{
	aad->len = 0;
	put(aad, label, strlen(label));
}

struct binding binding_of_checkpoint(const struct seal_context *context)
{
	struct binding binding = {
		.kind = SEALED_CHECKPOINT,
		.tenant = context->tenant,
		.checkpoint_id = context->checkpoint_id,
		.session_id = context->session_id,
		.suspend_seq = context->suspend_seq,
	};

	memcpy(binding.schema_sha256, context->schema_sha256, sizeof(binding.schema_sha256));
	return binding;
}

struct binding binding_of_edits(struct view tenant, const struct uuid *checkpoint_id,
                                const struct uuid *decision_id)
{
	return (struct binding){
		.kind = SEALED_EDITS,
		.tenant = tenant,
		.checkpoint_id = *checkpoint_id,
		.decision_id = *decision_id,
	};
}

enum fate binding_check(const struct binding *binding, struct error *error)
{
	if (binding->tenant.len > BOUND_TEXT_MAX)
		return error_set(error, FATE_REJECT, ERR_INVALID, "tenant has %zu bytes, at most %d can be bound",
		                 binding->tenant.len, BOUND_TEXT_MAX);
	if (binding->session_id.len > BOUND_TEXT_MAX)
		return error_set(error, FATE_REJECT, ERR_INVALID, "session_id has %zu bytes, at most %d can be bound",
		                 binding->session_id.len, BOUND_TEXT_MAX);
	return FATE_OK;
}

void aad_of_body(const struct binding *binding, uint8_t compression, uint32_t plain_len, struct aad *ret_aad)
{
	bool edits = binding->kind == SEALED_EDITS;

	put_label(ret_aad, edits ? "fermata/edits/1" : "fermata/checkpoint/1");
	put_integer_field(ret_aad, SEAL_FORMAT, 1);
	put_field(ret_aad, binding->tenant.data, binding->tenant.len);
	if (!edits)
		put_field(ret_aad, binding->session_id.data, binding->session_id.len);
	put_field(ret_aad, binding->checkpoint_id.bytes, sizeof(binding->checkpoint_id.bytes));
	if (edits) {
		put_field(ret_aad, binding->decision_id.bytes, sizeof(binding->decision_id.bytes));
	} else {
		put_integer_field(ret_aad, (uint64_t)binding->suspend_seq, 8);
		put_field(ret_aad, binding->schema_sha256, sizeof(binding->schema_sha256));
	}
	put_integer_field(ret_aad, compression, 1);
	put_integer_field(ret_aad, plain_len, 8);
}

void aad_of_wrap(const struct binding *binding, const char *kek_id, struct aad *ret_aad)
{
	bool edits = binding->kind == SEALED_EDITS;

	put_label(ret_aad, edits ? "fermata/edits-wrap/1" : "fermata/wrap/1");
	put_field(ret_aad, kek_id, strlen(kek_id));
	put_field(ret_aad, binding->tenant.data, binding->tenant.len);
	put_field(ret_aad, binding->checkpoint_id.bytes, sizeof(binding->checkpoint_id.bytes));
	if (edits)
		put_field(ret_aad, binding->decision_id.bytes, sizeof(binding->decision_id.bytes));
}
