/* Records that other versions of Fermata wrote, under the schemas of today. */
#include "schemas/codec_inner.h"

#include "schemas/state_inner.h"
#include "schemas/texts.h"

#include <string.h>

const struct known_schema *older_of(const struct codec *codec, enum part whole, uint64_t fingerprint)
{
	const char *name = class_of(whole)->type->name;
	const struct known_schema *known = states_writer(codec->settings.states, name, fingerprint);

	/* One of another folder was not meant for this record. */
	return known && strcmp(known->name, name) == 0 ? known : NULL;
}

static enum fate migrate(struct codec *codec, enum part whole, const struct known_schema *known,
                         struct view body, struct view *ret_body, struct error *error)
{
	buffer_reset(&codec->migrated);
	enum fate fate = states_resolve(codec->settings.states, known, schema_texts[whole].text, body,
	                                &codec->migrated, error);
	if (fate != FATE_OK)
		return fate;
	*ret_body = codec->migrated.len > 0 ? buffer_view(&codec->migrated) : VIEW_LITERAL("");
	return FATE_OK;
}

enum fate older_migrate(struct codec *codec, enum part whole, const struct known_schema *known,
                        struct view body, struct view *ret_body, uint8_t ret_sha256[32], struct error *error)
{
	memcpy(ret_sha256, known->sha256, 32);
	return migrate(codec, whole, known, body, ret_body, error);
}

static void hex_of(const uint8_t sha256[32], char text[17])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 8; i++) {
		text[2 * i] = digits[sha256[i] >> 4];
		text[2 * i + 1] = digits[sha256[i] & 15];
	}
	text[16] = '\0';
}

enum fate codec_today(struct codec *codec, const uint8_t sha256[32], struct view body, struct view *ret_body,
                      struct error *error)
{
	const struct part_class *class = class_of(PART_SUSPEND);
	char hex[17];

	*ret_body = body;
	if (memcmp(sha256, class->sha256, 32) == 0)
		return FATE_OK;
	const struct known_schema *known = states_writer_of(codec->settings.states, class->type->name, sha256);
	hex_of(sha256, hex);
	if (!known)
		return error_set(
			error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
			"it is a SuspendEvent of another version, whose schema (SHA-256 %s...) is not in the folder "
			"%s of schemas.path: put it there, then retry",
			hex, class->type->name);
	enum fate fate = migrate(codec, PART_SUSPEND, known, body, ret_body, error);
	return fate == FATE_REJECT ? error_wrap(error, "a SuspendEvent of another version (SHA-256 %s...)", hex)
	                           : fate;
}
