/* The text form of one key, and of the ids of keys. */
#include "vault/keyring.h"

#include <assert.h>
#include <ctype.h>
#include <sodium.h>
#include <string.h>

#define CHECK_LEN  4
#define PREFIX_LEN (sizeof(KEK_PREFIX) - 1)

static_assert(PREFIX_LEN + (KEY_LEN + CHECK_LEN) / 3 * 4 == KEK_TEXT_LEN, "base64 without a rest");

static bool is_id_character(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '_' || c == '-';
}

/* The text of a key would pass for an id, and ids are said in error texts: so what begins like one, in
 * either case, is none. */
bool kek_id_valid(struct view id)
{
	static const char family[] = "FERMATA-KEK";

	if (id.len < 1 || id.len > KEK_ID_MAX)
		return false;
	for (size_t i = 0; i < id.len; i++)
		if (!is_id_character(id.data[i]))
			return false;
	return id.len < sizeof(family) - 1 || strncasecmp((const char *)id.data, family, sizeof(family) - 1) != 0;
}

void kek_format(const uint8_t kek[KEY_LEN], char ret_text[KEK_TEXT_LEN + 1])
{
	uint8_t bytes[KEY_LEN + CHECK_LEN];
	uint8_t digest[32];

	memcpy(bytes, kek, KEY_LEN);
	crypto_generichash(digest, sizeof(digest), kek, KEY_LEN, NULL, 0);
	memcpy(bytes + KEY_LEN, digest, CHECK_LEN);
	memcpy(ret_text, KEK_PREFIX, PREFIX_LEN);
	sodium_bin2base64(ret_text + PREFIX_LEN, KEK_TEXT_LEN + 1 - PREFIX_LEN, bytes, sizeof(bytes),
	                  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(digest, sizeof(digest));
}

bool kek_parse(struct view text, uint8_t ret_kek[KEY_LEN])
{
	uint8_t bytes[KEY_LEN + CHECK_LEN];
	uint8_t digest[32] = { 0 };
	size_t len = 0;
	const char *start = (const char *)text.data;

	if (text.len != KEK_TEXT_LEN || memcmp(start, KEK_PREFIX, PREFIX_LEN) != 0)
		return false;
	bool good = sodium_base642bin(bytes, sizeof(bytes), start + PREFIX_LEN, text.len - PREFIX_LEN, NULL, &len,
	                              NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
	            len == sizeof(bytes);
	if (good) {
		crypto_generichash(digest, sizeof(digest), bytes, KEY_LEN, NULL, 0);
		good = sodium_memcmp(digest, bytes + KEY_LEN, CHECK_LEN) == 0;
	}
	if (good)
		memcpy(ret_kek, bytes, KEY_LEN);
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(digest, sizeof(digest));
	return good;
}
