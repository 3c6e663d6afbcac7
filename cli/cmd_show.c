/* cmd_show.c - `fermata show`: a checkpoint, or the gates of a session, in clear or opened. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/find.h"
#include "cli/opened.h"
#include "cli/person.h"
#include "cli/row_json.h"
#include "cli/schemas.h"
#include "cli/screen.h"

#define ARENA_BYTES ((size_t)1 << 30)
#define TEXT_BYTES  ((size_t)1 << 30)

struct showing {
	struct cli *cli;
	struct store *store;
	struct vault *vault; /* only with --state */
	struct schemas schemas;
	struct arena *found;  /* the rows */
	struct arena *opened; /* of one row; wiped by its reset */
	struct buffer out;
	int64_t now;
};

static enum fate open_state(struct showing *showing, struct checkpoint *row, struct suspend_event *event,
                            struct error *error)
{
	char id[UUID_TEXT_LEN + 1];
	struct view sealed, body;
	enum fate fate;

	uuid_format(&row->id, id);
	fate = row->filled && row->sealed.has_key ? store_payload(showing->store, row, showing->opened, error)
	                                          : FATE_OK;
	if (fate == FATE_OK)
		fate = opened_unseal(showing->vault, row, showing->opened, &sealed, error);
	if (fate == FATE_OK)
		fate = opened_today(&showing->schemas, row, sealed, &body, error);
	if (fate == FATE_OK)
		fate = codec_read_suspend_body(showing->schemas.codec, body, showing->opened, event, error);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "checkpoint %s cannot be opened", id);
}

static enum fate show_json(struct showing *showing, const struct checkpoint *row,
                           struct decision *const *decisions, size_t len, const struct suspend_event *event,
                           struct error *error)
{
	struct json_line *line = json_line_new();
	struct error ignored;
	enum fate fate;

	row_json_checkpoint(line, row);
	fate = row_json_decisions(decisions, len, &showing->out, error);
	json_line_raw(line, "decisions", buffer_view(&showing->out));
	buffer_reset(&showing->out);
	if (fate == FATE_OK && event != NULL) {
		fate = suspend_to_json(event, &showing->out, error);
		json_line_raw(line, "suspend", buffer_view(&showing->out));
		buffer_reset(&showing->out);
	}
	if (fate == FATE_OK)
		return json_line_write(line, error);
	(void)!json_line_end(line, &showing->out, &ignored);
	return fate;
}

static void show_text(struct showing *showing, const struct checkpoint *row,
                      struct decision *const *decisions, size_t len, const struct suspend_event *event)
{
	person_checkpoint(&showing->out, row, showing->now);
	if (event != NULL)
		person_suspend(&showing->out, event);
	for (size_t i = 0; i < len; i++) {
		if (i == 0) {
			put_label(&showing->out, "decisions");
			buffer_append_byte(&showing->out, '\n');
		}
		buffer_append_text(&showing->out, "  ");
		person_decision(&showing->out, decisions[i], showing->now);
	}
	screen_write(&showing->out);
}

static enum fate show_one(struct showing *showing, struct checkpoint *row, struct error *error)
{
	bool open = cli_given(showing->cli, "state");
	struct suspend_event event;
	struct decision **decisions;
	size_t len;
	enum fate fate;

	arena_reset(showing->opened);
	fate = store_decisions(showing->store, &row->id, showing->opened, &decisions, &len, error);
	if (fate == FATE_OK && open)
		fate = open_state(showing, row, &event, error);
	if (fate != FATE_OK)
		return fate;
	if (showing->cli->json)
		return show_json(showing, row, decisions, len, open ? &event : NULL, error);
	show_text(showing, row, decisions, len, open ? &event : NULL);
	return FATE_OK;
}

/* The row of each that there is; the first that cannot be shown ends it. */
static int show_all(struct showing *showing, const char *id)
{
	struct error error = { .fate = FATE_OK };
	struct found found;

	if (find_checkpoints(showing->store, id, false, showing->found, &found, &error) != FATE_OK)
		return cli_fail(&error);
	if (found.len == 0)
		return find_say_unknown(id);
	for (size_t i = 0; i < found.len; i++) {
		if (i > 0 && !showing->cli->json)
			buffer_append_byte(&showing->out, '\n');
		if (show_one(showing, found.rows[i], &error) != FATE_OK)
			return cli_fail(&error);
	}
	return EXIT_YES;
}

static enum fate open_all(struct showing *showing, struct error *error)
{
	showing->found = arena_new(ARENA_BYTES);
	showing->opened = arena_new(ARENA_BYTES);
	buffer_init(&showing->out, TEXT_BYTES);
	if (showing->found == NULL || showing->opened == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database");
	if (cli_given(showing->cli, "state") && connect_vault(showing->cli, &showing->vault, error) != FATE_OK)
		return error->fate;
	enum fate fate = connect_store(showing->cli, &showing->store, error);
	if (fate == FATE_OK && cli_given(showing->cli, "state"))
		fate = schemas_open(showing->cli, showing->store, &showing->schemas, error);
	return fate;
}

int cmd_show(struct cli *cli)
{
	struct showing showing = { .cli = cli, .now = clock_real_us() };
	struct error error = { .fate = FATE_OK };
	int code;

	code =
		open_all(&showing, &error) == FATE_OK ? show_all(&showing, cli_argument(cli, 0)) : cli_fail(&error);
	store_close(showing.store);
	vault_close(showing.vault);
	schemas_close(&showing.schemas);
	arena_free(showing.opened);
	arena_free(showing.found);
	buffer_done(&showing.out);
	return code;
}
