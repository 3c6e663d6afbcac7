#include "vault/frame.h"
#include "vault/scratch.h"
#include "vault/vault_impl.h"

#include <string.h>

static enum fate tampered(const char *what, struct error *error)
{
	return error_set(error, FATE_REJECT, ERR_TAMPERED, "%s", what);
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum |= bytes[i];
	return sum == 0;
}

/* What can be said of a row without a key. After it body.len and plain_len may be trusted not to be
 * absurd; whether they are true is for the tags to say. */
static enum fate check_shape(const struct binding *binding, const struct sealed *sealed, struct error *error)
{
	bool zstd = sealed->compression == COMPRESSION_ZSTD;

	if (binding_check(binding, error) != FATE_OK)
		return FATE_REJECT;
	if (!sealed->has_key)
		return error_set(error, FATE_REJECT, ERR_KEY, "it was erased: its key is gone");
	if (sealed->format != SEAL_FORMAT)
		return error_set(error, FATE_REJECT, ERR_TAMPERED,
		                 "it is sealed in format %d, and this release knows format %d only", sealed->format,
		                 SEAL_FORMAT);
	if (!zstd && sealed->compression != COMPRESSION_NONE)
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "compression %d is not known",
		                 sealed->compression);
	if (is_zero(sealed->commit, sizeof(sealed->commit)))
		return tampered("it has no commitment", error);
	if (sealed->plain_len > PLAIN_MAX)
		return tampered("it claims more bytes than are ever sealed", error);
	if (view_is_null(sealed->body) || sealed->body.len < BODY_EXTRA)
		return tampered("its body is missing or cut short", error);
	size_t content_len = sealed->body.len - BODY_EXTRA;
	if (zstd ? content_len == 0 || content_len >= sealed->plain_len : content_len != sealed->plain_len)
		return tampered("the length of its body does not fit what it claims", error);
	if (binding->kind == SEALED_CHECKPOINT &&
	    memcmp(binding->schema_sha256, sealed->schema_sha256, sizeof(sealed->schema_sha256)) != 0)
		return tampered("it was sealed with another writer schema", error);
	return FATE_OK;
}

static enum fate unwrap(struct vault *vault, const struct binding *binding, const struct sealed *sealed,
                        struct data_keys *ret_keys, struct error *error)
{
	const uint8_t *wrap_key;

	pthread_rwlock_rdlock(&vault->lock);
	enum fate fate = keyring_find(vault->keyring, sealed->kek_id, &wrap_key, error);
	if (fate == FATE_OK)
		fate = envelope_unwrap(sealed, binding, wrap_key, ret_keys, error);
	pthread_rwlock_unlock(&vault->lock);
	return fate;
}

static enum fate open_frame(const struct data_keys *keys, const struct binding *binding,
                            const struct sealed *sealed, uint8_t *plain, struct error *error)
{
	SCRATCH scratch = { 0 };

	if (!scratch_init(&scratch, sealed->body.len - BODY_EXTRA))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to open %zu bytes", sealed->body.len);
	enum fate fate = envelope_open(keys, binding, sealed, scratch.data, error);
	if (fate != FATE_OK)
		return fate;
	return frame_unpack((struct view){ scratch.data, scratch.len }, plain, sealed->plain_len, error);
}

static enum fate unseal(struct vault *vault, const struct binding *binding, const struct sealed *sealed,
                        struct arena *arena, struct view *ret_plaintext, struct error *error)
{
	DATA_KEYS keys;

	enum fate fate = check_shape(binding, sealed, error);
	if (fate != FATE_OK)
		return fate;
	fate = unwrap(vault, binding, sealed, &keys, error);
	if (fate == FATE_OK)
		fate = envelope_verify(&keys, binding, sealed, error);
	if (fate != FATE_OK)
		return fate;
	uint8_t *plain = arena_alloc(arena, sealed->plain_len);
	if (plain == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a plaintext of %u bytes",
		                 sealed->plain_len);
	if (sealed->compression == COMPRESSION_ZSTD)
		fate = open_frame(&keys, binding, sealed, plain, error);
	else
		fate = envelope_open(&keys, binding, sealed, plain, error);
	if (fate == FATE_OK)
		*ret_plaintext = (struct view){ plain, sealed->plain_len };
	return fate;
}

enum fate vault_unseal(struct vault *vault, const struct seal_context *context, const struct sealed *sealed,
                       struct arena *arena, struct view *ret_plaintext, struct error *error)
{
	struct binding binding = binding_of_checkpoint(context);

	return unseal(vault, &binding, sealed, arena, ret_plaintext, error);
}

enum fate vault_unseal_edits(struct vault *vault, struct view tenant, const struct uuid *checkpoint_id,
                             const struct uuid *decision_id, const struct sealed *sealed, struct arena *arena,
                             struct view *ret_plaintext, struct error *error)
{
	struct binding binding = binding_of_edits(tenant, checkpoint_id, decision_id);

	return unseal(vault, &binding, sealed, arena, ret_plaintext, error);
}
