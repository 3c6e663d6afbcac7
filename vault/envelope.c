#include "vault/envelope.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == KEY_LEN, "");
static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == NONCE_LEN, "");
static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == TAG_LEN, "");
static_assert(crypto_auth_hmacsha512256_BYTES == COMMIT_LEN, "");
static_assert(crypto_auth_hmacsha512256_KEYBYTES == KEY_LEN, "");
static_assert(crypto_kdf_KEYBYTES == KEY_LEN, "");
static_assert(WRAPPED_KEY_LEN == NONCE_LEN + KEY_LEN + TAG_LEN, "");

static void derive(struct data_keys *keys)
{
	crypto_kdf_derive_from_key(keys->enc, sizeof(keys->enc), 1, "fmtapayl", keys->dek);
	crypto_kdf_derive_from_key(keys->com, sizeof(keys->com), 2, "fmtapayl", keys->dek);
}

void data_keys_wipe(struct data_keys *keys)
{
	sodium_memzero(keys, sizeof(*keys));
}

void data_keys_make(struct data_keys *keys)
{
	randombytes_buf(keys->dek, sizeof(keys->dek));
	derive(keys);
}

void envelope_wrap(const struct data_keys *keys, const struct binding *binding, const char *kek_id,
                   const uint8_t wrap_key[KEY_LEN], struct sealed *ret_sealed)
{
	struct aad aad;
	uint8_t *nonce = ret_sealed->wrapped_key;

	assert(strlen(kek_id) <= KEK_ID_MAX);
	memcpy(ret_sealed->kek_id, kek_id, strlen(kek_id) + 1);
	ret_sealed->has_key = true;
	aad_of_wrap(binding, kek_id, &aad);
	randombytes_buf(nonce, NONCE_LEN);
	crypto_aead_xchacha20poly1305_ietf_encrypt(nonce + NONCE_LEN, NULL, keys->dek, KEY_LEN, aad.bytes,
	                                           aad.len, NULL, nonce, wrap_key);
}

enum fate envelope_unwrap(const struct sealed *sealed, const struct binding *binding,
                          const uint8_t wrap_key[KEY_LEN], struct data_keys *ret_keys, struct error *error)
{
	struct aad aad;
	const uint8_t *nonce = sealed->wrapped_key;

	aad_of_wrap(binding, sealed->kek_id, &aad);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(ret_keys->dek, NULL, NULL, nonce + NONCE_LEN,
	                                               KEY_LEN + TAG_LEN, aad.bytes, aad.len, nonce,
	                                               wrap_key) != 0)
		return error_set(error, FATE_REJECT, ERR_TAMPERED,
		                 "its wrapped key does not verify under key %s: changed, moved here from another "
		                 "row, or another key has that id",
		                 sealed->kek_id);
	derive(ret_keys);
	return FATE_OK;
}

static void commit_to(const struct data_keys *keys, const uint8_t *nonce, const uint8_t *tag,
                      const struct aad *aad, uint8_t ret_commit[COMMIT_LEN])
{
	crypto_auth_hmacsha512256_state state;

	crypto_auth_hmacsha512256_init(&state, keys->com, sizeof(keys->com));
	crypto_auth_hmacsha512256_update(&state, nonce, NONCE_LEN);
	crypto_auth_hmacsha512256_update(&state, tag, TAG_LEN);
	crypto_auth_hmacsha512256_update(&state, aad->bytes, aad->len);
	crypto_auth_hmacsha512256_final(&state, ret_commit);
	sodium_memzero(&state, sizeof(state));
}

void envelope_close(const struct data_keys *keys, const struct binding *binding, struct view content,
                    uint8_t *body, struct sealed *sealed)
{
	struct aad aad;
	uint8_t *ciphertext = body + NONCE_LEN;
	uint8_t *tag = ciphertext + content.len;

	aad_of_body(binding, sealed->compression, sealed->plain_len, &aad);
	randombytes_buf(body, NONCE_LEN);
	crypto_aead_xchacha20poly1305_ietf_encrypt_detached(ciphertext, tag, NULL, content.data, content.len,
	                                                    aad.bytes, aad.len, NULL, body, keys->enc);
	commit_to(keys, body, tag, &aad, sealed->commit);
	sealed->body = (struct view){ body, content.len + BODY_EXTRA };
}

enum fate envelope_verify(const struct data_keys *keys, const struct binding *binding,
                          const struct sealed *sealed, struct error *error)
{
	struct aad aad;
	uint8_t commit[COMMIT_LEN];
	const uint8_t *tag = sealed->body.data + sealed->body.len - TAG_LEN;

	assert(sealed->body.len >= BODY_EXTRA);
	aad_of_body(binding, sealed->compression, sealed->plain_len, &aad);
	commit_to(keys, sealed->body.data, tag, &aad, commit);
	if (sodium_memcmp(commit, sealed->commit, COMMIT_LEN) != 0)
		return error_set(error, FATE_REJECT, ERR_TAMPERED,
		                 "its commitment does not verify: changed, or moved here from another row");
	return FATE_OK;
}

enum fate envelope_open(const struct data_keys *keys, const struct binding *binding,
                        const struct sealed *sealed, uint8_t *content, struct error *error)
{
	struct aad aad;
	size_t len = sealed->body.len - BODY_EXTRA;
	const uint8_t *nonce = sealed->body.data;
	const uint8_t *ciphertext = nonce + NONCE_LEN;

	assert(sealed->body.len >= BODY_EXTRA);
	aad_of_body(binding, sealed->compression, sealed->plain_len, &aad);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt_detached(content, NULL, ciphertext, len, ciphertext + len,
	                                                        aad.bytes, aad.len, nonce, keys->enc) != 0)
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "its ciphertext does not verify: changed");
	return FATE_OK;
}
