#include "vault/vault.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

static void put_le(uint8_t *bytes, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

/* The digest of nothing: a library that was built or linked wrongly is found here and not in a row that
 * no other machine can open. */
static bool digests_right(void)
{
	static const uint8_t expected[8] = { 0x0e, 0x57, 0x51, 0xc0, 0x26, 0xe5, 0x43, 0xb2 };
	uint8_t digest[32];

	vault_digest(VIEW_LITERAL(""), digest);
	return memcmp(digest, expected, sizeof(expected)) == 0;
}

enum fate vault_start(struct error *error)
{
	if (sodium_init() < 0)
		return error_set(error, FATE_FATAL, ERR_SYSTEM,
		                 "libsodium %s does not start: the system gives it no random bytes",
		                 sodium_version_string());
	if (!digests_right())
		return error_set(error, FATE_FATAL, ERR_SYSTEM,
		                 "libsodium %s computes a wrong BLAKE2b digest: install it again",
		                 sodium_version_string());
	return FATE_OK;
}

void vault_checkpoint_digest(struct view body, uint8_t ret_digest[DIGEST_LEN])
{
	static const char label[] = "fermata/digest/v1";
	crypto_generichash_state state;
	uint8_t len_le[8];

	put_le(len_le, body.len, sizeof(len_le));
	crypto_generichash_init(&state, NULL, 0, DIGEST_LEN);
	crypto_generichash_update(&state, (const uint8_t *)label, sizeof(label) - 1);
	crypto_generichash_update(&state, len_le, sizeof(len_le));
	crypto_generichash_update(&state, body.data, body.len);
	crypto_generichash_final(&state, ret_digest, DIGEST_LEN);
}

void vault_digest(struct view bytes, uint8_t ret_digest[32])
{
	crypto_generichash(ret_digest, 32, bytes.data, bytes.len, NULL, 0);
}

void vault_sha256(struct view bytes, uint8_t ret_digest[32])
{
	static_assert(crypto_hash_sha256_BYTES == 32, "SHA-256 has 32 bytes");
	crypto_hash_sha256(ret_digest, bytes.data, bytes.len);
}

void vault_expire_id(const struct uuid *checkpoint_id, uint32_t n, struct uuid *ret_id)
{
	static const char label[] = "fermata/expire/1";
	crypto_generichash_state state;
	uint8_t n_le[4];
	uint8_t hash[16];

	put_le(n_le, n, sizeof(n_le));
	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	crypto_generichash_update(&state, (const uint8_t *)label, sizeof(label) - 1);
	crypto_generichash_update(&state, checkpoint_id->bytes, sizeof(checkpoint_id->bytes));
	crypto_generichash_update(&state, n_le, sizeof(n_le));
	crypto_generichash_final(&state, hash, sizeof(hash));
	uuid_make_v8(hash, ret_id);
}

void vault_random(void *data, size_t len)
{
	randombytes_buf(data, len);
}
