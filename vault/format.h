/*
 * format.h - format 1 of what the vault seals, byte for byte. Not seen outside of the room.
 *
 * Sizes are in bytes, integers are little-endian, "+" puts together without anything in between.
 * field(x) = length of x in 4 bytes + x.
 *
 *   KEK      32   the key encryption key of the keyring
 *   wrap_key 32 = BLAKE2b-256 of nothing; key KEK, salt le64(1) + 8 zeros, personal "fmtawrap" + 8 zeros
 *                 (which is what crypto_kdf_derive_from_key does; the same for the next two)
 *   DEK      32   random, one for each thing that is sealed, never used twice
 *   enc, com 32 = as wrap_key; key DEK, salt 1 and 2, personal "fmtapayl"
 *
 *   body     = nonce 24 + ciphertext + tag 16
 *              (ciphertext, tag) = XChaCha20-Poly1305-IETF(key enc, nonce, AAD, content)
 *              content = the plaintext (compression 0) or one zstd frame of it (compression 1)
 *   commit   = HMAC-SHA512-256(key com, nonce + tag + AAD)           32, stands beside the body
 *   wrapped  = nonce 24 + XChaCha20-Poly1305-IETF(key wrap_key, nonce, WRAP_AAD, DEK) 32 + tag 16
 *
 * A checkpoint:
 *   AAD      = "fermata/checkpoint/1" + field(format 1) + field(tenant) + field(session_id)
 *            + field(checkpoint_id 16) + field(suspend_seq 8, two's complement)
 *            + field(SHA-256 of the writer schema 32) + field(compression 1) + field(plaintext length 8)
 *   WRAP_AAD = "fermata/wrap/1" + field(kek_id) + field(tenant) + field(checkpoint_id 16)
 * The edits of a decision:
 *   AAD      = "fermata/edits/1" + field(format 1) + field(tenant) + field(checkpoint_id 16)
 *            + field(decision_id 16) + field(compression 1) + field(plaintext length 8)
 *   WRAP_AAD = "fermata/edits-wrap/1" + field(kek_id) + field(tenant) + field(checkpoint_id 16)
 *            + field(decision_id 16)
 *
 * The labels are of no use to each other: none is the beginning of another. The key's id, Kafka
 * coordinates and the state of the gate stay out of the AAD, so that rotation, rebuild and judging never
 * touch a body. The commitment is compared before anything is decrypted: XChaCha20-Poly1305 alone can be
 * made to verify under two keys.
 *
 * To change the format:
 *   1. Leave format 1 as it is, its constants and its vectors in the tests: rows are opened for years.
 *   2. Give the new one the next number, its own labels (".../2") and its own functions beside these, and
 *      teach unseal to tell them apart by `format`. reference.py gets the same, from the text above and not
 *      from the C code, and prints new vectors.
 *   3. Release that. Seal with the new one in the release after it: workers of both releases run side by
 *      side during an upgrade, and the older one must be able to open what the newer one seals.
 */
#ifndef FERMATA_VAULT_FORMAT_H
#define FERMATA_VAULT_FORMAT_H

#include "vault/vault.h"

#define SEAL_FORMAT    1
#define KEY_LEN        32
#define NONCE_LEN      24
#define TAG_LEN        16
#define BODY_EXTRA     (NONCE_LEN + TAG_LEN)
#define BOUND_TEXT_MAX 255         /* bytes of tenant and of session_id */
#define PLAIN_MAX      (64u << 20) /* bytes of plaintext, whatever a row says */
#define AAD_MAX        640

enum compression { COMPRESSION_NONE = 0, COMPRESSION_ZSTD = 1 };

enum sealed_kind { SEALED_CHECKPOINT, SEALED_EDITS };

/* What a sealed thing is bound to: moved to another place it does not open. */
struct binding {
	enum sealed_kind kind;
	struct view tenant;
	struct uuid checkpoint_id;
	struct view session_id; /* of a checkpoint only, as the next two */
	int64_t suspend_seq;
	uint8_t schema_sha256[32];
	struct uuid decision_id; /* of edits only */
};

struct aad {
	size_t len;
	uint8_t bytes[AAD_MAX];
};

struct binding binding_of_checkpoint(const struct seal_context *context);
struct binding binding_of_edits(struct view tenant, const struct uuid *checkpoint_id,
                                const struct uuid *decision_id);

/* Do the texts fit? REJECT (ERR_INVALID) when they do not; the next two take it for granted. */
FM_MUSTCHECK enum fate binding_check(const struct binding *binding, struct error *error);

void aad_of_body(const struct binding *binding, uint8_t compression, uint32_t plain_len, struct aad *ret_aad);
void aad_of_wrap(const struct binding *binding, const char *kek_id, struct aad *ret_aad);

#endif
