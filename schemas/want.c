/* What is missing, compared and in words. */
#include "schemas/catalog_inner.h"
#include "schemas/fingerprint.h"

#include <stdio.h>
#include <string.h>

bool want_equal(const struct schema_want *a, const struct schema_want *b)
{
	const struct key left = key_of(a), right = key_of(b);

	return key_equal(&left, &right);
}

static void hex_of(const uint8_t *bytes, size_t len, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * len] = '\0';
}

static const char *guid_text(const uint8_t guid[16], char text[37])
{
	char hex[33];

	hex_of(guid, 16, hex);
	snprintf(text, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return text;
}

const char *want_text(const struct schema_want *want, char *text, size_t size)
{
	char hex[40];

	switch (want->kind) {
	case WANT_NOTHING:
		snprintf(text, size, "nothing");
		break;
	case WANT_ID:
		snprintf(text, size, "schema id %d", want->id);
		break;
	case WANT_GUID:
		snprintf(text, size, "schema GUID %s", guid_text(want->guid, hex));
		break;
	case WANT_FINGERPRINT:
		fingerprint_hex(want->fingerprint, hex);
		snprintf(text, size, "the schema of %.100s with fingerprint %s", want->name, hex);
		break;
	case WANT_SHA256:
		hex_of(want->sha256, 8, hex);
		snprintf(text, size, "the schema of a SuspendEvent with SHA-256 %s...", hex);
		break;
	case WANT_READER:
		snprintf(text, size, "the reader of %.100s", want->name);
		break;
	case WANT_STATE:
		fingerprint_hex(want->fingerprint, hex);
		snprintf(text, size, "the schema with fingerprint %s of a state %.100s", hex, want->name);
		break;
	}
	return text;
}
