/* fingerprint.h - the three fingerprints of the Avro specification, over a parsing canonical form. */
#ifndef FERMATA_SCHEMAS_FINGERPRINT_H
#define FERMATA_SCHEMAS_FINGERPRINT_H

#include "core/memory.h"

#define FINGERPRINT_HEX_LEN 16

/* CRC-64-AVRO (Avro specification, "Schema Fingerprints": Rabin's method, table of 256). */
uint64_t fingerprint_crc64(struct view canonical);
void fingerprint_md5(struct view canonical, uint8_t ret_md5[16]);
void fingerprint_sha256(struct view canonical, uint8_t ret_sha256[32]);

/* The eight bytes as the single-object header has them (little-endian), and the way back. */
void fingerprint_bytes(uint64_t fingerprint, uint8_t ret_bytes[8]);
uint64_t fingerprint_of_bytes(const uint8_t bytes[8]);
/* The same in lower-case hex, in the order of the header, and a NUL. */
void fingerprint_hex(uint64_t fingerprint, char ret_hex[FINGERPRINT_HEX_LEN + 1]);

#endif
