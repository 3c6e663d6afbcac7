#include "schemas/fingerprint.h"

#include <md5.h>
#include <pthread.h>
#include <sha2.h>
#include <stdio.h>

#define CRC64_EMPTY UINT64_C(0xc15d213aa4d7a795)

static uint64_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint64_t value = i;
		for (int bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? CRC64_EMPTY : 0);
		table[i] = value;
	}
}

uint64_t fingerprint_crc64(struct view canonical)
{
	pthread_once(&table_once, table_make);
	uint64_t crc = CRC64_EMPTY;
	for (size_t i = 0; i < canonical.len; i++)
		crc = crc >> 8 ^ table[(crc ^ canonical.data[i]) & 0xff];
	return crc;
}

void fingerprint_md5(struct view canonical, uint8_t ret_md5[16])
{
	MD5_CTX context;

	MD5Init(&context);
	MD5Update(&context, canonical.data, canonical.len);
	MD5Final(ret_md5, &context);
}

void fingerprint_sha256(struct view canonical, uint8_t ret_sha256[32])
{
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, canonical.data, canonical.len);
	SHA256Final(ret_sha256, &context);
}

void fingerprint_bytes(uint64_t fingerprint, uint8_t ret_bytes[8])
{
	for (unsigned i = 0; i < 8; i++)
		ret_bytes[i] = (uint8_t)(fingerprint >> 8 * i);
}

uint64_t fingerprint_of_bytes(const uint8_t bytes[8])
{
	uint64_t fingerprint = 0;

	for (unsigned i = 0; i < 8; i++)
		fingerprint |= (uint64_t)bytes[i] << 8 * i;
	return fingerprint;
}

void fingerprint_hex(uint64_t fingerprint, char ret_hex[FINGERPRINT_HEX_LEN + 1])
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint, bytes);
	for (size_t i = 0; i < 8; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
}
