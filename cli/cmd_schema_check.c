/* cmd_schema_check.c - `fermata schema check`: is it a schema, and does what is there get along with it? */
#include "cli/checking.h"
#include "cli/cmd.h"
#include "cli/row_json.h"
#include "schemas/fingerprint.h"

#include <stdio.h>

static enum fate say_schema(const struct checking *checking, struct error *error)
{
	char hex[FINGERPRINT_HEX_LEN + 1];

	if (!checking->cli->json) {
		printf("%s: a schema\n", checking->file.path);
		return FATE_OK;
	}
	struct json_line *line = json_line_new();
	fingerprint_hex(checking->file.fingerprint, hex);
	json_line_text(line, "check", view_of("schema"));
	json_line_text(line, "file", view_of(checking->file.path));
	json_line_text(line, "name", view_of(schema_file_name(&checking->file)));
	json_line_text(line, "crc64", view_of(hex));
	return json_line_write(line, error);
}

/* mode: NULL when none was given. */
static enum fate check(struct checking *checking, const enum compat_mode *mode, struct error *error)
{
	const struct cli *cli = checking->cli;
	enum fate fate = schema_file_load(cli_argument(cli, 0), &checking->file, error);

	if (fate == FATE_OK)
		fate = say_schema(checking, error);
	if (fate == FATE_OK && cli_given(cli, "against"))
		fate = check_against(checking, mode != NULL ? *mode : COMPAT_BACKWARD, error);
	if (fate == FATE_OK && cli_given(cli, "against-registry"))
		fate = check_registry(checking, mode, error);
	if (fate == FATE_OK && cli_given(cli, "pending"))
		fate = check_pending(checking, error);
	return fate;
}

int cmd_schema_check(struct cli *cli)
{
	struct error error = { .fate = FATE_OK };
	struct checking checking = { .cli = cli };
	enum compat_mode mode;
	const char *wanted = cli_value(cli, "mode");

	if (wanted != NULL && !compat_mode_parse(view_of(wanted), &mode))
		return cli_usage("--mode %s: it is one of NONE, BACKWARD, BACKWARD_TRANSITIVE, FORWARD, "
		                 "FORWARD_TRANSITIVE, FULL and FULL_TRANSITIVE",
		                 wanted);
	if (wanted != NULL && !cli_given(cli, "against") && !cli_given(cli, "against-registry"))
		return cli_usage("--mode is for --against OLD.avsc and --against-registry");
	if (cli_given(cli, "subject") && !cli_given(cli, "against-registry"))
		return cli_usage("--subject is for --against-registry");
	enum fate fate = check(&checking, wanted != NULL ? &mode : NULL, &error);
	schema_file_done(&checking.file);
	if (fate != FATE_OK)
		return cli_fail(&error);
	return checking.wrong > 0 ? EXIT_NO : EXIT_YES;
}
