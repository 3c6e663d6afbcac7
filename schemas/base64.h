/* base64.h - RFC 4648, section 4. Private to this room. */
#ifndef FERMATA_SCHEMAS_BASE64_H
#define FERMATA_SCHEMAS_BASE64_H

#include "core/memory.h"

void base64_encode(struct view bytes, struct buffer *out);
/* Appends the bytes; padding may be left away. False: a character that does not belong there, a length that
 * cannot be, or no room. */
bool base64_decode(struct view text, struct buffer *out);

#endif
