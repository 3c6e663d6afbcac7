/* uuid.h - UUIDs (RFC 9562) as 16 bytes in network order. */
#ifndef FERMATA_CORE_UUID_H
#define FERMATA_CORE_UUID_H

#include "core/memory.h"

#define UUID_TEXT_LEN 36

struct uuid {
	uint8_t bytes[16];
};

/* Parses 36 characters, hyphens in place, hex digits of either case; any version. */
FM_MUSTCHECK bool uuid_parse(struct view text, struct uuid *ret_uuid);
/* Writes 36 lower-case characters and a NUL. */
void uuid_format(const struct uuid *uuid, char ret_text[UUID_TEXT_LEN + 1]);
/* memcmp order, which is also PostgreSQL's order of uuid. */
int uuid_compare(const struct uuid *a, const struct uuid *b);
/* Version 7 (RFC 9562 section 5.7) from the real clock in ms and 74 random bits of getrandom(2). */
FM_MUSTCHECK enum fate uuid_make_v7(struct uuid *ret_uuid, struct error *error);
/* Version 8 (section 5.8) out of 16 bytes of somebody's hash: sets the version and variant bits. */
void uuid_make_v8(const uint8_t hash[16], struct uuid *ret_uuid);

#endif
