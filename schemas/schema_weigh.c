/*
 * How much memory would jansson take for the tree of a JSON text? An object of two characters takes 230 bytes
 * there, so a text that is within bounds may have a tree that is not. One pass, nothing is kept; the text need
 * not be JSON.
 */
#include "schemas/schema_parser.h"

/* Measured with jansson 2.14 on 64-bit glibc, and rounded up. */
#define OBJECT_BYTES 240
#define ARRAY_BYTES  144
#define STRING_BYTES 48 /* its characters aside */
#define MEMBER_BYTES 64
#define VALUE_BYTES  40

/* Behind the string that begins at i. */
static size_t skip_string(struct view text, size_t i)
{
	for (i++; i < text.len && text.data[i] != '"'; i++)
		i += text.data[i] == '\\';
	return i + 1;
}

size_t schema_weigh(struct view text)
{
	size_t weight = VALUE_BYTES;

	for (size_t i = 0; i < text.len; i++) {
		size_t end = i;
		switch (text.data[i]) {
		case '"':
			end = skip_string(text, i) - 1;
			weight += STRING_BYTES + (end - i);
			break;
		case '{':
			weight += OBJECT_BYTES;
			break;
		case '[':
			weight += ARRAY_BYTES;
			break;
		case ':':
			weight += MEMBER_BYTES;
			break;
		case ',':
			weight += VALUE_BYTES;
			break;
		default:
			break;
		}
		i = end;
	}
	return weight;
}
