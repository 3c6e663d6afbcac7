#include "core/kafka.h"

#include <assert.h>

#define SEED     0x9747B28Cu
#define MULTIPLY 0x5BD1E995u

static uint32_t mix(uint32_t k)
{
	k *= MULTIPLY;
	k ^= k >> 24;
	return k * MULTIPLY;
}

/* The words are little-endian whatever the machine is, as in the Java client. */
static uint32_t murmur2(struct view key)
{
	uint32_t h = SEED ^ (uint32_t)key.len;
	size_t whole = key.len - key.len % 4;

	for (size_t i = 0; i < whole; i += 4) {
		const uint8_t *k = key.data + i;
		uint32_t word = (uint32_t)k[0] | (uint32_t)k[1] << 8 | (uint32_t)k[2] << 16 | (uint32_t)k[3] << 24;
		h = (h * MULTIPLY) ^ mix(word);
	}
	for (size_t i = key.len; i-- > whole;)
		h ^= (uint32_t)key.data[i] << (8 * (i - whole));
	if (whole < key.len)
		h *= MULTIPLY;
	h ^= h >> 13;
	h *= MULTIPLY;
	return h ^ h >> 15;
}

int32_t kafka_partition(struct view key, int32_t count)
{
	assert(count > 0);
	if (view_is_null(key))
		return 0;
	return (int32_t)(murmur2(key) & 0x7FFFFFFF) % count;
}
