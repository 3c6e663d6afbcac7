/*
 * vault.h - seals and opens (security.md, format 1), digests and random bytes. The only room that
 * knows libsodium. A vault is thread-safe once it is open; keys live in one locked arena.
 */
#ifndef FERMATA_VAULT_VAULT_H
#define FERMATA_VAULT_VAULT_H

#include "core/checkpoint.h"

struct vault;

struct vault_source {
	const char *keyring_file;           /* or NULL */
	const char *const *keyring_command; /* argv, NULL-terminated, or NULL */
	const char
		*credentials_directory; /* $CREDENTIALS_DIRECTORY, or NULL: a source when it has a file "keyring" */
};

/* Loads the keyring. FATAL (ERR_USAGE, exit 2): no source or several, no primary key, a file that group
 * or others can read, a line that is wrong (its number is said, never its text). RETRY: command failed. */
FM_MUSTCHECK enum fate vault_open(struct vault **ret_vault, const struct vault_source *source,
                                  struct error *error);
void vault_close(struct vault *vault);
/* What the calling thread keeps from one call to the next (contexts of zstd, some 100 KiB) is wiped and given back: it has nothing to seal or
 * to open for a while. The next call makes it anew. */
void vault_rest(void);
/* Loads the source again (SIGHUP); on failure the old keys stay. */
FM_MUSTCHECK enum fate vault_reload(struct vault *vault, struct error *error);

/* Writes a new keyring file with one primary key, mode 0600, never over an existing one (FATE_REJECT with
 * ERR_NO). Puts the key's id into ret_id. */
FM_MUSTCHECK enum fate vault_keyring_generate(const char *path, char ret_id[KEK_ID_MAX + 1],
                                              struct error *error);

/* What a checkpoint's payload is bound to. */
struct seal_context {
	struct view tenant;
	struct view session_id;
	struct uuid checkpoint_id;
	int64_t suspend_seq;
	uint8_t schema_sha256[32];
};

/* Compresses (zstd) and seals under a fresh data key, wrapped by the primary key. ret->body lives in
 * the arena. */
FM_MUSTCHECK enum fate vault_seal(struct vault *vault, const struct seal_context *context,
                                  struct view plaintext, struct arena *arena, struct sealed *ret_sealed,
                                  struct error *error);
/* REJECT with ERR_TAMPERED: it does not verify, unknown format, no commitment; REJECT with ERR_KEY: a key
 * that the ring does not have, or erased; RETRY: a key that cannot be had now. The plaintext lives in the
 * arena (which wipes it). */
FM_MUSTCHECK enum fate vault_unseal(struct vault *vault, const struct seal_context *context,
                                    const struct sealed *sealed, struct arena *arena,
                                    struct view *ret_plaintext, struct error *error);

/* The edits of a decision, under a key of their own. AAD "fermata/edits/1", checkpoint_id, decision_id. */
FM_MUSTCHECK enum fate vault_seal_edits(struct vault *vault, struct view tenant,
                                        const struct uuid *checkpoint_id, const struct uuid *decision_id,
                                        struct view plaintext, struct arena *arena, struct sealed *ret_sealed,
                                        struct error *error);
FM_MUSTCHECK enum fate vault_unseal_edits(struct vault *vault, struct view tenant,
                                          const struct uuid *checkpoint_id, const struct uuid *decision_id,
                                          const struct sealed *sealed, struct arena *arena,
                                          struct view *ret_plaintext, struct error *error);

/* The next four need no vault, only vault_start. */

/* sodium_init and our own checks; call once in main. FATAL when libsodium says no. */
FM_MUSTCHECK enum fate vault_start(struct error *error);
/* The digest of a checkpoint: BLAKE2b-256 over "fermata/digest/v1", the 8-byte little-endian length, and
 * the bytes of the suspend record's value after framing is taken off. */
void vault_checkpoint_digest(struct view body, uint8_t ret_digest[DIGEST_LEN]);
/* Plain BLAKE2b-256 (used to tell a duplicate from a conflict) and SHA-256. */
void vault_digest(struct view bytes, uint8_t ret_digest[32]);
void vault_sha256(struct view bytes, uint8_t ret_digest[32]);
/* The UUIDv8 of the n-th EXPIRE of a checkpoint: BLAKE2b-128 over "fermata/expire/1", id, n little-endian. */
void vault_expire_id(const struct uuid *checkpoint_id, uint32_t n, struct uuid *ret_id);
void vault_random(void *data, size_t len);

#endif
