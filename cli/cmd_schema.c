/* cmd_schema.c - `fermata schema fingerprint`. */
#include "cli/cli.h"
#include "cli/cmd.h"
#include "cli/row_json.h"
#include "cli/schema_file.h"
#include "schemas/fingerprint.h"

#include <stdio.h>

static const char *hex(const uint8_t *bytes, size_t len, char *text)
{
	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static enum fate print_fingerprints(const struct cli *cli, struct view canonical, struct error *error)
{
	uint8_t md5[16], sha256[32];
	char crc_hex[FINGERPRINT_HEX_LEN + 1], md5_hex[33], sha256_hex[65];
	struct json_line *line;

	fingerprint_hex(fingerprint_crc64(canonical), crc_hex);
	fingerprint_md5(canonical, md5);
	fingerprint_sha256(canonical, sha256);
	hex(md5, sizeof(md5), md5_hex);
	hex(sha256, sizeof(sha256), sha256_hex);
	if (!cli->json) {
		printf("crc64   %s\nmd5     %s\nsha256  %s\n", crc_hex, md5_hex, sha256_hex);
		return FATE_OK;
	}
	line = json_line_new();
	json_line_text(line, "canonical", canonical);
	json_line_text(line, "crc64", view_of(crc_hex));
	json_line_text(line, "md5", view_of(md5_hex));
	json_line_text(line, "sha256", view_of(sha256_hex));
	return json_line_write(line, error);
}

int cmd_schema_fingerprint(struct cli *cli)
{
	struct error error = { .fate = FATE_OK };
	struct schema_file file;
	struct buffer canonical;
	enum fate fate = schema_file_load(cli_argument(cli, 0), &file, &error);

	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	if (fate == FATE_OK)
		fate = schema_canonical(file.schema, &canonical, &error);
	if (fate == FATE_OK)
		fate = print_fingerprints(cli, buffer_view(&canonical), &error);
	schema_file_done(&file);
	buffer_done(&canonical);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
