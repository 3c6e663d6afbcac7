/* cmd_config.c - `fermata config check`: the effective configuration, and where each value came from. */
#include "cli/cli.h"
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/row_json.h"
#include "cli/screen.h"
#include "worker/registry_settings.h"

#include <string.h>

struct printing {
	const struct cli *cli;
	size_t key_columns, value_columns;
	struct buffer out;
	struct error error;
};

#define VALUE_COLUMNS_MOST 48

static void measure(void *context, const struct config_setting *setting)
{
	struct printing *printing = context;
	size_t key = strlen(setting->key), value = text_columns(view_of(setting->value));

	if (key > printing->key_columns)
		printing->key_columns = key;
	if (value > printing->value_columns && value <= VALUE_COLUMNS_MOST)
		printing->value_columns = value;
}

/* What is not as it comes stands out. */
static void print_text(struct printing *printing, const struct config_setting *setting)
{
	bool ours = !strcmp(setting->origin, "default");
	enum colour colour = ours ? COLOUR_DIM : COLOUR_BOLD;
	size_t columns = text_columns(view_of(setting->value));
	struct buffer *out = &printing->out;

	buffer_printf(out, "%-*s = %s", (int)printing->key_columns, setting->key, colour_on(colour));
	put_clean(out, view_of(setting->value));
	buffer_append_text(out, colour_off(colour));
	for (size_t i = columns; i < printing->value_columns; i++)
		buffer_append_byte(out, ' ');
	buffer_printf(out, "  %s", colour_on(COLOUR_DIM));
	put_clean(out, view_of(setting->origin));
	buffer_printf(out, "%s\n", colour_off(COLOUR_DIM));
	screen_write(out);
}

static void print(void *context, const struct config_setting *setting)
{
	struct printing *printing = context;
	struct json_line *line;

	if (!printing->cli->json) {
		print_text(printing, setting);
		return;
	}
	line = json_line_new();
	json_line_text(line, "key", view_of(setting->key));
	json_line_text(line, "value", view_of(setting->value));
	json_line_text(line, "origin", view_of(setting->origin));
	(void)!json_line_write(line, &printing->error);
}

static enum fate ask_registry(const struct cli *cli, struct error *error)
{
	struct registry_settings settings;
	struct registry *registry = NULL;

	registry_settings_of(cli->config, &settings);
	if (settings.url == NULL)
		return FATE_OK;
	enum fate fate = registry_open(&registry, &settings, error);
	registry_close(registry);
	return fate;
}

/* What only a library can judge: its properties, its connection string. Nothing waits for a connection. */
static enum fate ask_libraries(const struct cli *cli, struct error *error)
{
	struct store_settings dsn = { .dsn = config_text(cli->config, PARAM_POSTGRES_DSN),
		                          .name = "fermata check" };
	struct producer_settings writing = { .client_id = "fermata-check" };
	struct producer *producer = NULL;
	struct reader *reader = NULL;
	struct store *store = NULL;
	enum fate fate = store_open(&store, &dsn, error);

	writing.properties = config_kafka(cli->config, KAFKA_PRODUCER, &writing.properties_len);
	if (fate == FATE_OK)
		fate = connect_reader(cli, false, &reader, error);
	if (fate == FATE_OK)
		fate = producer_open(&producer, &writing, error);
	if (fate == FATE_OK)
		fate = ask_registry(cli, error);
	store_close(store);
	reader_close(reader, 1000);
	producer_close(producer);
	return fate;
}

int cmd_config_check(struct cli *cli)
{
	struct printing printing = { .cli = cli, .error = { .fate = FATE_OK } };

	if (ask_libraries(cli, &printing.error) != FATE_OK)
		return cli_fail(&printing.error);
	buffer_init(&printing.out, (size_t)1 << 20);
	config_each(cli->config, measure, &printing);
	config_each(cli->config, print, &printing);
	buffer_done(&printing.out);
	return printing.error.fate == FATE_OK ? EXIT_YES : cli_fail(&printing.error);
}
