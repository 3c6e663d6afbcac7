#include "vault/frame.h"
#include "vault/scratch.h"
#include "vault/vault_impl.h"

#include <string.h>

static void wrap_fresh(struct vault *vault, const struct binding *binding, const struct data_keys *keys,
                       struct sealed *sealed)
{
	const uint8_t *wrap_key;

	pthread_rwlock_rdlock(&vault->lock);
	const char *kek_id = keyring_primary(vault->keyring, &wrap_key);
	envelope_wrap(keys, binding, kek_id, wrap_key, sealed);
	pthread_rwlock_unlock(&vault->lock);
}

/* What is worth it is a frame that is shorter; else the plaintext stays as it is. */
static struct view compress_content(struct view plaintext, struct scratch *scratch, struct sealed *sealed)
{
	size_t len = 0;

	if (plaintext.len > 1 && scratch_init(scratch, plaintext.len - 1))
		len = frame_pack(plaintext, scratch->data, scratch->len);
	sealed->compression = len > 0 ? COMPRESSION_ZSTD : COMPRESSION_NONE;
	return len > 0 ? (struct view){ scratch->data, len } : plaintext;
}

static enum fate seal(struct vault *vault, const struct binding *binding, struct view plaintext,
                      struct arena *arena, struct sealed *ret_sealed, struct error *error)
{
	SCRATCH scratch = { 0 };
	DATA_KEYS keys;
	struct sealed sealed = { .format = SEAL_FORMAT };

	if (binding_check(binding, error) != FATE_OK)
		return FATE_REJECT;
	if (plaintext.len > PLAIN_MAX)
		return error_set(error, FATE_REJECT, ERR_TOO_LARGE, "%zu bytes to seal, at most %u", plaintext.len,
		                 PLAIN_MAX);
	sealed.plain_len = (uint32_t)plaintext.len;
	memcpy(sealed.schema_sha256, binding->schema_sha256, sizeof(sealed.schema_sha256));
	struct view content = compress_content(plaintext, &scratch, &sealed);
	uint8_t *body = arena_alloc(arena, content.len + BODY_EXTRA);
	if (body == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a sealed body of %zu bytes",
		                 content.len + BODY_EXTRA);
	data_keys_make(&keys);
	envelope_close(&keys, binding, content, body, &sealed);
	wrap_fresh(vault, binding, &keys, &sealed);
	*ret_sealed = sealed;
	return FATE_OK;
}

enum fate vault_seal(struct vault *vault, const struct seal_context *context, struct view plaintext,
                     struct arena *arena, struct sealed *ret_sealed, struct error *error)
{
	struct binding binding = binding_of_checkpoint(context);

	return seal(vault, &binding, plaintext, arena, ret_sealed, error);
}

enum fate vault_seal_edits(struct vault *vault, struct view tenant, const struct uuid *checkpoint_id,
                           const struct uuid *decision_id, struct view plaintext, struct arena *arena,
                           struct sealed *ret_sealed, struct error *error)
{
	struct binding binding = binding_of_edits(tenant, checkpoint_id, decision_id);

	return seal(vault, &binding, plaintext, arena, ret_sealed, error);
}
