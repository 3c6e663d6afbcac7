#include "core/uuid.h"

#include "core/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_hyphen_place(size_t at)
{
	return at == 8 || at == 13 || at == 18 || at == 23;
}

/* 0 to 15, or -1. */
static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool uuid_parse(struct view text, struct uuid *ret_uuid)
{
	struct uuid uuid = { { 0 } };
	size_t nibbles = 0;

	if (text.len != UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
		if (is_hyphen_place(i)) {
			if (text.data[i] != '-')
				return false;
			continue;
		}
		int digit = hex_digit(text.data[i]);
		if (digit < 0)
			return false;
		uuid.bytes[nibbles / 2] = (uint8_t)(uuid.bytes[nibbles / 2] << 4 | digit);
		nibbles++;
	}
	*ret_uuid = uuid;
	return true;
}

void uuid_format(const struct uuid *uuid, char ret_text[UUID_TEXT_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	size_t nibbles = 0;

	for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
		if (is_hyphen_place(i)) {
			ret_text[i] = '-';
			continue;
		}
		uint8_t byte = uuid->bytes[nibbles / 2];
		ret_text[i] = digits[nibbles % 2 == 0 ? byte >> 4 : byte & 0x0F];
		nibbles++;
	}
	ret_text[UUID_TEXT_LEN] = '\0';
}

int uuid_compare(const struct uuid *a, const struct uuid *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void set_version(struct uuid *uuid, unsigned version)
{
	uuid->bytes[6] = (uint8_t)((uuid->bytes[6] & 0x0F) | version << 4);
	uuid->bytes[8] = (uint8_t)((uuid->bytes[8] & 0x3F) | 0x80);
}

enum fate uuid_make_v7(struct uuid *ret_uuid, struct error *error)
{
	struct uuid uuid;
	uint64_t ms = (uint64_t)(clock_real_us() / 1000);

	/* getentropy is getrandom(2) with the interrupted calls repeated. */
	if (getentropy(uuid.bytes, sizeof(uuid.bytes)) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "could not get random bytes for an id");
	for (int i = 0; i < 6; i++)
		uuid.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
	set_version(&uuid, 7);
	*ret_uuid = uuid;
	return FATE_OK;
}

void uuid_make_v8(const uint8_t hash[16], struct uuid *ret_uuid)
{
	memcpy(ret_uuid->bytes, hash, sizeof(ret_uuid->bytes));
	set_version(ret_uuid, 8);
}
