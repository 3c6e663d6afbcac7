#include "vault/keyring.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct key {
	char id[KEK_ID_MAX + 1];
	enum key_state state;
};

struct keyring {
	size_t len;
	size_t primary;
	struct key keys[KEYRING_KEYS_MAX];
	uint8_t (*wrap_keys)[KEY_LEN]; /* of keys[i]; the locked arena */
};

/* A keyring while its lines are read. */
struct reading {
	struct keyring *keyring;
	const char *origin;
	int line;
	int primary_line; /* 0: none yet */
};

static const char *const state_names[] = {
	[KEY_PRIMARY] = "primary",
	[KEY_ENABLED] = "enabled",
	[KEY_DISABLED] = "disabled",
};

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word off the front of *rest; len 0 when there is none. */
static struct view take_word(struct view *rest)
{
	size_t start = 0;

	while (start < rest->len && is_blank(rest->data[start]))
		start++;
	size_t end = start;
	while (end < rest->len && !is_blank(rest->data[end]))
		end++;
	struct view word = { rest->data + start, end - start };
	rest->data += end;
	rest->len -= end;
	return word;
}

static struct view take_line(struct view *rest)
{
	const uint8_t *end = memchr(rest->data, '\n', rest->len);
	struct view line = { rest->data, end != NULL ? (size_t)(end - rest->data) : rest->len };
	size_t taken = line.len + (end != NULL ? 1 : 0);

	rest->data += taken;
	rest->len -= taken;
	return line;
}

static bool state_find(struct view word, enum key_state *ret_state)
{
	for (size_t i = 0; i < sizeof(state_names) / sizeof(state_names[0]); i++) {
		if (view_equal_text(word, state_names[i])) {
			*ret_state = (enum key_state)i;
			return true;
		}
	}
	return false;
}

static const struct key *key_find(const struct keyring *keyring, struct view id)
{
	for (size_t i = 0; i < keyring->len; i++)
		if (view_equal_text(id, keyring->keys[i].id))
			return &keyring->keys[i];
	return NULL;
}

static enum fate wrong_line(const struct reading *reading, const char *what, struct error *error)
{
	return error_set(error, FATE_FATAL, ERR_USAGE, "keyring %s, line %d: %s", reading->origin, reading->line,
	                 what);
}

static enum fate check_line(struct reading *reading, struct view id, struct view state_word,
                            enum key_state *ret_state, struct error *error)
{
	const struct keyring *keyring = reading->keyring;

	if (!kek_id_valid(id))
		return wrong_line(reading, "its first word is no id of a key (1 to 63 of A-Z a-z 0-9 . _ -)", error);
	if (key_find(keyring, id) != NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE, "keyring %s, line %d: there is a key %.*s already",
		                 reading->origin, reading->line, (int)id.len, (const char *)id.data);
	if (!state_find(state_word, ret_state))
		return wrong_line(reading, "its second word must be primary, enabled or disabled", error);
	if (*ret_state == KEY_PRIMARY && reading->primary_line != 0)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "keyring %s, line %d: line %d has a primary key already, and there is only one",
		                 reading->origin, reading->line, reading->primary_line);
	if (keyring->len == KEYRING_KEYS_MAX)
		return wrong_line(reading, "too many keys: at most 256", error);
	return FATE_OK;
}

/* Keeps of the key what wraps; the key itself is not needed any more. */
static bool derive_wrap_key(struct view key_word, uint8_t ret_wrap_key[KEY_LEN])
{
	uint8_t kek[KEY_LEN];

	static_assert(crypto_kdf_KEYBYTES == KEY_LEN, "a KEK is a key for crypto_kdf");
	if (!kek_parse(key_word, kek))
		return false;
	crypto_kdf_derive_from_key(ret_wrap_key, KEY_LEN, 1, "fmtawrap", kek);
	sodium_memzero(kek, sizeof(kek));
	return true;
}

static enum fate read_line(struct reading *reading, struct view line, struct error *error)
{
	struct keyring *keyring = reading->keyring;
	enum key_state state = KEY_DISABLED;

	struct view id = take_word(&line);
	if (id.len == 0 || id.data[0] == '#')
		return FATE_OK;
	struct view state_word = take_word(&line);
	struct view key_word = take_word(&line);
	enum fate fate = check_line(reading, id, state_word, &state, error);
	if (fate != FATE_OK)
		return fate;
	if (take_word(&line).len != 0)
		return wrong_line(reading, "it has more than three words: id, state, key", error);
	if (!derive_wrap_key(key_word, keyring->wrap_keys[keyring->len]))
		return wrong_line(reading, "its third word is no key, or was mistyped (the check bytes differ)",
		                  error);
	if (state == KEY_PRIMARY) {
		reading->primary_line = reading->line;
		keyring->primary = keyring->len;
	}
	struct key *key = &keyring->keys[keyring->len++];
	memcpy(key->id, id.data, id.len);
	key->id[id.len] = '\0';
	key->state = state;
	return FATE_OK;
}

static enum fate read_lines(struct reading *reading, struct view text, struct error *error)
{
	while (text.len > 0) {
		reading->line++;
		enum fate fate = read_line(reading, take_line(&text), error);
		if (fate != FATE_OK)
			return fate;
	}
	if (reading->primary_line == 0)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "keyring %s has no primary key: give one of its lines the state primary",
		                 reading->origin);
	return FATE_OK;
}

static struct keyring *keyring_new(void)
{
	struct keyring *keyring = calloc(1, sizeof(*keyring));

	if (keyring == NULL)
		return NULL;
	keyring->wrap_keys = sodium_allocarray(KEYRING_KEYS_MAX, KEY_LEN);
	if (keyring->wrap_keys == NULL) {
		free(keyring);
		return NULL;
	}
	return keyring;
}

enum fate keyring_parse(struct view text, const char *origin, struct keyring **ret_keyring,
                        struct error *error)
{
	struct keyring *keyring = keyring_new();
	struct reading reading = { .keyring = keyring, .origin = origin };

	if (keyring == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the keys");
	enum fate fate = read_lines(&reading, text, error);
	if (fate != FATE_OK) {
		keyring_free(keyring);
		return fate;
	}
	sodium_mprotect_readonly(keyring->wrap_keys);
	*ret_keyring = keyring;
	return FATE_OK;
}

void keyring_free(struct keyring *keyring)
{
	if (keyring == NULL)
		return;
	sodium_free(keyring->wrap_keys); /* makes it writable again and wipes it */
	free(keyring);
}

const char *keyring_primary(const struct keyring *keyring, const uint8_t **ret_wrap_key)
{
	*ret_wrap_key = keyring->wrap_keys[keyring->primary];
	return keyring->keys[keyring->primary].id;
}

enum fate keyring_find(const struct keyring *keyring, const char *id, const uint8_t **ret_wrap_key,
                       struct error *error)
{
	struct view wanted = { (const uint8_t *)id, strnlen(id, KEK_ID_MAX + 1) };

	if (!kek_id_valid(wanted))
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "the id of its key is none");
	const struct key *key = key_find(keyring, wanted);
	if (key == NULL)
		return error_set(error, FATE_REJECT, ERR_KEY,
		                 "its key %s is not in the keyring: put it back, enabled, and retry", id);
	if (key->state == KEY_DISABLED)
		return error_set(error, FATE_REJECT, ERR_KEY, "its key %s is disabled: enable it and retry", id);
	*ret_wrap_key = keyring->wrap_keys[key - keyring->keys];
	return FATE_OK;
}
