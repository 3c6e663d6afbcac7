#include "schemas/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct view bytes, struct buffer *out)
{
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t group = (uint32_t)bytes.data[i] << 16;
		group |= left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0;
		group |= left > 2 ? bytes.data[i + 2] : 0;
		char text[4] = { alphabet[group >> 18], alphabet[group >> 12 & 63], '=', '=' };
		if (left > 1)
			text[2] = alphabet[group >> 6 & 63];
		if (left > 2)
			text[3] = alphabet[group & 63];
		buffer_append(out, text, sizeof(text));
	}
}

bool base64_decode(struct view text, struct buffer *out)
{
	uint32_t group = 0;
	unsigned bits = 0;

	if (text.len > 0 && text.len % 4 == 0 && text.data[text.len - 1] == '=')
		text.len -= text.data[text.len - 2] == '=' ? 2 : 1;
	if (text.len % 4 == 1)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		const char *digit = text.data[i] ? strchr(alphabet, text.data[i]) : NULL;
		if (!digit)
			return false;
		group = group << 6 | (uint32_t)(digit - alphabet);
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		buffer_append_byte(out, (uint8_t)(group >> bits));
	}
	return !buffer_failed(out);
}
