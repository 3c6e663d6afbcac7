/* cmd_admin.c - the small commands that set an installation up, and the worker's. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/demo.h"
#include "cli/row_json.h"
#include "worker/worker.h"

#include <stdio.h>

/* ---- worker ---- */

int cmd_worker(struct cli *cli)
{
	struct worker_options options = {
		.drain = cli_given(cli, "drain"),
		.adopt_group = cli_given(cli, "adopt-group"),
	};

	return worker_run(cli->config, &options);
}

/* ---- migrate ---- */

static enum fate say_versions(const struct cli *cli, int from, int to, struct error *error)
{
	struct json_line *line;

	if (cli->json) {
		line = json_line_new();
		json_line_number(line, "from", from);
		json_line_number(line, "to", to);
		return json_line_write(line, error);
	}
	if (from == to)
		printf("the database has version %d of the schema already\n", to);
	else
		printf("the database went from version %d of the schema to version %d\n", from, to);
	return FATE_OK;
}

int cmd_migrate(struct cli *cli)
{
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;
	int from, to;
	enum fate fate = connect_store_bare(cli, &store, &error);

	if (fate == FATE_OK)
		fate = store_migrate(store, &from, &to, &error);
	if (fate == FATE_OK)
		fate = say_versions(cli, from, to, &error);
	store_close(store);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}

/* ---- keys generate ---- */

int cmd_keys_generate(struct cli *cli)
{
	const char *path = config_text(cli->config, PARAM_VAULT_KEYRING_FILE);
	struct error error = { .fate = FATE_OK };
	char id[KEK_ID_MAX + 1];
	struct json_line *line;

	if (path == NULL)
		return cli_usage(
			"vault.keyring_file is not set: say where the keys are to be, in the configuration or as "
			"-X vault.keyring_file=/etc/fermata/keyring");
	if (vault_keyring_generate(path, id, &error) != FATE_OK)
		return cli_fail(&error);
	if (!cli->json) {
		printf(
			"wrote %s with key %s. Keep a copy of it in a safe place: what is sealed with it cannot be read "
			"without it.\n",
			path, id);
		return EXIT_YES;
	}
	line = json_line_new();
	json_line_text(line, "keyring_file", view_of(path));
	json_line_text(line, "key_id", view_of(id));
	return json_line_write(line, &error) == FATE_OK ? EXIT_YES : cli_fail(&error);
}

/* ---- demo and dev ---- */

int cmd_demo(struct cli *cli)
{
	return demo_main(cli->config, cli->raw_argc, cli->raw_argv);
}

int cmd_dev(struct cli *cli)
{
	return dev_main(cli->config, cli->raw_argc, cli->raw_argv);
}
