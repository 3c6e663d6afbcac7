/* cmd_resolve.c - `fermata schema resolve`: one datum, or a batch of lines. */
#include "cli/cli.h"
#include "cli/cmd.h"
#include "cli/lines.h"
#include "cli/screen.h"
#include "cli/whole.h"
#include "schemas/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX (2 * RESOLVE_LINE_MAX)

/* What was answered goes out before waiting: somebody may send the next line only then. */
static enum lines_event next_line(struct lines *lines, struct view *ret_line)
{
	enum lines_event event = lines_next(lines, 0, ret_line);

	if (event != LINES_NOTHING)
		return event;
	(void)fflush(stdout);
	return lines_next(lines, -1, ret_line);
}

static bool is_blank(struct view line)
{
	for (size_t i = 0; i < line.len; i++)
		if (strchr(" \t\r", line.data[i]) == NULL || line.data[i] == '\0')
			return false;
	return true;
}

static enum fate answer(struct resolver *resolver, struct view line, struct buffer *out, struct error *error)
{
	if (is_blank(line))
		return FATE_OK;
	buffer_reset(out);
	enum fate fate = resolve_line(resolver, line, out, error);
	if (fate == FATE_OK)
		screen_write_json(out);
	return fate;
}

static enum fate run_batch(struct resolver *resolver, struct buffer *out, struct error *error)
{
	enum fate fate = FATE_OK;
	struct lines lines;
	struct view line;

	lines_init(&lines, STDIN_FILENO, RESOLVE_LINE_MAX);
	while (fate == FATE_OK) {
		enum lines_event event = next_line(&lines, &line);
		if (event == LINES_END)
			break;
		if (event == LINES_FAILED)
			fate = error_set_errno(error, FATE_FATAL, errno, "could not read stdin");
		else if (event == LINES_TOO_LONG)
			fate = error_set(error, FATE_REJECT, ERR_NO, "line %zu has more than %zu bytes", lines.number,
			                 RESOLVE_LINE_MAX);
		else
			fate = answer(resolver, line, out, error);
	}
	lines_done(&lines);
	return fate;
}

static enum fate run_one(struct resolver *resolver, const struct cli *cli, struct buffer *out,
                         struct error *error)
{
	struct buffer writer, reader, body;
	enum fate fate;

	buffer_init(&writer, 2 * SCHEMA_TEXT_MAX);
	buffer_init(&reader, 2 * SCHEMA_TEXT_MAX);
	buffer_init(&body, 2 * RESOLVE_BYTES_MAX);
	fate = whole_read(cli_value(cli, "writer"), SCHEMA_TEXT_MAX, &writer, error);
	if (fate == FATE_OK)
		fate = whole_read(cli_value(cli, "reader"), SCHEMA_TEXT_MAX, &reader, error);
	if (fate == FATE_OK)
		fate = whole_read("-", RESOLVE_BYTES_MAX, &body, error);
	if (fate == FATE_OK)
		fate = resolve_datum(resolver, buffer_view(&writer), buffer_view(&reader), buffer_view(&body), out,
		                     error);
	if (fate == FATE_OK)
		screen_write_json(out);
	buffer_done(&writer);
	buffer_done(&reader);
	buffer_done(&body);
	return fate;
}

int cmd_schema_resolve(struct cli *cli)
{
	struct error error = { .fate = FATE_OK };
	struct resolver *resolver = NULL;
	struct buffer out;
	bool batch = cli_given(cli, "batch");
	enum fate fate;

	if (batch == (cli_given(cli, "writer") || cli_given(cli, "reader")))
		return cli_usage("give --writer FILE and --reader FILE, or --batch");
	if (!batch && (!cli_given(cli, "writer") || !cli_given(cli, "reader")))
		return cli_usage("both --writer FILE and --reader FILE are needed");
	buffer_init(&out, ANSWER_MAX);
	fate = resolver_new(&resolver, &error);
	if (fate == FATE_OK)
		fate = batch ? run_batch(resolver, &out, &error) : run_one(resolver, cli, &out, &error);
	resolver_free(resolver);
	buffer_done(&out);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
