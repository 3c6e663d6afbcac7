/*
 * envelope.h - the cryptography of format.h, without keyrings and compression: content goes into a body
 * under a data key, and a data key into its wrapping.
 */
#ifndef FERMATA_VAULT_ENVELOPE_H
#define FERMATA_VAULT_ENVELOPE_H

#include "vault/format.h"

/* A data key and what is derived from it. Wiped on every way out by being declared as DATA_KEYS. */
struct data_keys {
	uint8_t dek[KEY_LEN];
	uint8_t enc[KEY_LEN];
	uint8_t com[KEY_LEN];
};

void data_keys_wipe(struct data_keys *keys);
#define DATA_KEYS __attribute__((cleanup(data_keys_wipe))) struct data_keys

/* Fills keys from a fresh random data key. */
void data_keys_make(struct data_keys *keys);

/* Wraps keys->dek under the wrapping key of kek_id; sets the key's fields of *ret_sealed. */
void envelope_wrap(const struct data_keys *keys, const struct binding *binding, const char *kek_id,
                   const uint8_t wrap_key[KEY_LEN], struct sealed *ret_sealed);
/* Unwraps and derives. REJECT (ERR_TAMPERED) when it does not verify. */
FM_MUSTCHECK enum fate envelope_unwrap(const struct sealed *sealed, const struct binding *binding,
                                       const uint8_t wrap_key[KEY_LEN], struct data_keys *ret_keys,
                                       struct error *error);

/* Encrypts content into body, which has room for content.len + BODY_EXTRA, and computes the commitment.
 * Both bind sealed->compression and sealed->plain_len, which the caller has set. */
void envelope_close(const struct data_keys *keys, const struct binding *binding, struct view content,
                    uint8_t *body, struct sealed *sealed);
/* Compares the commitment, which covers the claimed lengths too: first this, then memory for the plaintext,
 * then the next. sealed->body.len >= BODY_EXTRA. REJECT (ERR_TAMPERED) when it does not verify. */
FM_MUSTCHECK enum fate envelope_verify(const struct data_keys *keys, const struct binding *binding,
                                       const struct sealed *sealed, struct error *error);
/* Decrypts into content, which has room for the body less BODY_EXTRA. REJECT (ERR_TAMPERED). */
FM_MUSTCHECK enum fate envelope_open(const struct data_keys *keys, const struct binding *binding,
                                     const struct sealed *sealed, uint8_t *content, struct error *error);

#endif
