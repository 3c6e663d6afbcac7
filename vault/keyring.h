/*
 * keyring.h - the key encryption keys, and where they come from.
 *
 * The text: one key a line, three words: its id (1 to 63 of A-Z a-z 0-9 . _ -), its state and the key,
 *   "FERMATA-KEK-1" + base64url without padding of (the 32 bytes of the key + the first 4 of its BLAKE2b-256).
 * Empty lines and lines that begin with # are nothing. Exactly one key is primary. Error texts name the
 * place, the line's number and ids, never a word that could be a key.
 */
#ifndef FERMATA_VAULT_KEYRING_H
#define FERMATA_VAULT_KEYRING_H

#include "vault/format.h"
#include "vault/vault.h"

#define KEYRING_TEXT_MAX   (64 * 1024)
#define KEYRING_KEYS_MAX   256
#define KEYRING_COMMAND_MS 10000
#define KEK_PREFIX         "FERMATA-KEK-1"
#define KEK_TEXT_LEN       61 /* prefix 13, 36 bytes as base64url 48 */

enum key_state {
	KEY_PRIMARY,  /* seals and opens */
	KEY_ENABLED,  /* opens */
	KEY_DISABLED, /* does not even open */
};

/* Immutable once it is loaded, so that any number of threads may read it. What is kept of a KEK is its
 * wrapping key, in one locked libsodium arena that is read-only. */
struct keyring;

/* Of the text of a keyring; origin names it in errors. FATAL (ERR_USAGE): a line that is wrong. */
FM_MUSTCHECK enum fate keyring_parse(struct view text, const char *origin, struct keyring **ret_keyring,
                                     struct error *error);
/* From the one source that is given; see vault_open. */
FM_MUSTCHECK enum fate keyring_load(const struct vault_source *source, struct keyring **ret_keyring,
                                    struct error *error);
void keyring_free(struct keyring *keyring);

/* The id of the primary key, and its wrapping key of KEY_LEN bytes. Both live as long as the ring. */
const char *keyring_primary(const struct keyring *keyring, const uint8_t **ret_wrap_key);
/* The wrapping key of an id for opening. REJECT: ERR_KEY when there is none or it is disabled, and
 * ERR_TAMPERED when it is no id at all. */
FM_MUSTCHECK enum fate keyring_find(const struct keyring *keyring, const char *id,
                                    const uint8_t **ret_wrap_key, struct error *error);

/* Is it an id as above (and not a key put in the wrong place)? */
bool kek_id_valid(struct view id);
/* KEK_TEXT_LEN characters and a NUL. */
void kek_format(const uint8_t kek[KEY_LEN], char ret_text[KEK_TEXT_LEN + 1]);
/* False when it is not one, or its check bytes are wrong. */
FM_MUSTCHECK bool kek_parse(struct view text, uint8_t ret_kek[KEY_LEN]);

/* Reads a whole file or command into text, which has room for cap bytes.
 * File, FATAL (ERR_USAGE): it is not there, not a regular file, too large, or others can read it. */
FM_MUSTCHECK enum fate keyring_read_file(const char *path, uint8_t *text, size_t cap, size_t *ret_len,
                                         struct error *error);
/* Command: argv without a shell (argv[0] is looked for in $PATH), stdin and stderr are /dev/null; it and
 * its children are killed after timeout_ms. RETRY (ERR_KEY): it failed or was too slow. FATAL (ERR_USAGE):
 * it cannot be started, or wrote more than cap. */
FM_MUSTCHECK enum fate keyring_read_command(const char *const *argv, int64_t timeout_ms, uint8_t *text,
                                            size_t cap, size_t *ret_len, struct error *error);

#endif
