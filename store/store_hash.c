#include "store/store_hash.h"

#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * FNV_PRIME;
	return hash;
}

uint64_t hash_view(uint64_t hash, struct view view)
{
	uint8_t len[8];

	for (size_t i = 0; i < sizeof(len); i++)
		len[i] = (uint8_t)((uint64_t)view.len >> (8 * i));
	return hash_bytes(hash_bytes(hash, len, sizeof(len)), view.data, view.len);
}
