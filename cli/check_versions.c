/* check_versions.c - `fermata schema check`: one schema beside its older versions. */
#include "cli/checking.h"
#include "cli/row_json.h"
#include "cli/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define REASONS_BYTES ((size_t)1 << 20)

static const struct {
	const char *name;
	enum colour colour;
} results[] = {
	[CHECK_OK] = { "ok", COLOUR_GREEN },
	[CHECK_WARNING] = { "warning", COLOUR_YELLOW },
	[CHECK_WRONG] = { "wrong", COLOUR_RED },
};

void check_say(const struct checking *checking, enum check_result result, const char *fmt, ...)
{
	char *text = NULL;
	struct buffer out;
	va_list args;

	if (checking->cli->json)
		return;
	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	buffer_init(&out, (size_t)1 << 20);
	buffer_printf(&out, "%s%-7s%s  ", colour_on(results[result].colour), results[result].name,
	              colour_off(results[result].colour));
	put_clean(&out, view_of(text));
	buffer_append_byte(&out, '\n');
	screen_write(&out);
	buffer_done(&out);
	free(text);
}

/* One of the two directions between the file and an older version. */
struct side {
	const char *check;
	enum compat_mode mode;
	bool forward; /* the older version reads what the file writes */
	const char *reader;
	const char *writer;
};

/* ---- for people ---- */

static void say_reasons(const struct checking *checking, enum check_result result, const struct side *side,
                        const char *verb, const struct compat_reason *reasons, size_t count)
{
	for (size_t i = 0; i < count && i < COMPAT_REASONS_MAX; i++)
		check_say(checking, result, "%s %s %s: %s: %s", side->reader, verb, side->writer, reasons[i].path,
		          reasons[i].why);
	if (count > COMPAT_REASONS_MAX)
		check_say(checking, result, "%s %s %s: and %zu reasons more", side->reader, verb, side->writer,
		          count - COMPAT_REASONS_MAX);
}

static void say_side(const struct checking *checking, const struct side *side,
                     const struct compat_report *report)
{
	if (report->reasons_count == 0)
		check_say(checking, CHECK_OK, "%s reads all that %s writes (%s)", side->reader, side->writer,
		          compat_mode_name(side->mode));
	say_reasons(checking, CHECK_WRONG, side, report->never ? "reads nothing of" : "does not read all of",
	            report->reasons, report->reasons_count);
	say_reasons(checking, CHECK_WARNING, side, "may not read all of", report->warnings,
	            report->warnings_count);
}

/* ---- as JSON ---- */

static enum fate put_reasons(struct json_line *line, const char *name, const struct compat_reason *reasons,
                             size_t count, struct error *error)
{
	enum fate fate = FATE_OK;
	struct buffer out;

	buffer_init(&out, REASONS_BYTES);
	buffer_append_byte(&out, '[');
	for (size_t i = 0; i < count && i < COMPAT_REASONS_MAX && fate == FATE_OK; i++) {
		struct json_line *reason = json_line_new();
		buffer_append_text(&out, i > 0 ? "," : "");
		json_line_text(reason, "path", view_of(reasons[i].path));
		json_line_text(reason, "why", view_of(reasons[i].why));
		fate = json_line_end(reason, &out, error);
	}
	buffer_append_byte(&out, ']');
	json_line_raw(line, name, buffer_view(&out));
	buffer_done(&out);
	return fate;
}

static enum fate print_side(const struct side *side, const struct compat_report *report, struct error *error)
{
	struct json_line *line = json_line_new();

	json_line_text(line, "check", view_of(side->check));
	json_line_text(line, "mode", view_of(compat_mode_name(side->mode)));
	json_line_text(line, "direction", view_of(side->forward ? "FORWARD" : "BACKWARD"));
	json_line_text(line, "reader", view_of(side->reader));
	json_line_text(line, "writer", view_of(side->writer));
	json_line_flag(line, "compatible", report->reasons_count == 0);
	json_line_flag(line, "never", report->never);
	json_line_number(line, "reasons_count", (int64_t)report->reasons_count);
	json_line_number(line, "warnings_count", (int64_t)report->warnings_count);
	enum fate fate = put_reasons(line, "reasons", report->reasons, report->reasons_count, error);
	if (fate == FATE_OK)
		fate = put_reasons(line, "warnings", report->warnings, report->warnings_count, error);
	enum fate written = json_line_write(line, error);
	return fate == FATE_OK ? written : fate;
}

/* ---- judging ---- */

static enum fate judge(struct checking *checking, const struct side *side, const struct schema *old,
                       struct error *error)
{
	struct compat_report report;
	const struct schema *new = checking->file.schema;
	enum fate fate = compat_check(side->forward ? new : old, side->forward ? old : new, &report, error);

	if (fate != FATE_OK)
		return error_wrap(error, "%.80s and %.80s", side->reader, side->writer);
	checking->wrong += report.reasons_count > 0 ? 1 : 0;
	if (checking->cli->json)
		return print_side(side, &report, error);
	say_side(checking, side, &report);
	return FATE_OK;
}

enum fate check_versions(struct checking *checking, const char *check, enum compat_mode mode,
                         const struct check_version *versions, size_t len, struct error *error)
{
	const char *path = checking->file.path;
	enum fate fate = FATE_OK;

	if (mode == COMPAT_NONE)
		check_say(checking, CHECK_OK, "NONE: nothing is asked of %s", path);
	for (size_t i = 0; i < len && fate == FATE_OK; i++) {
		const char *old = versions[i].name;
		const struct side backward = { check, mode, false, path, old },
						  forward = { check, mode, true, old, path };
		bool last = i == len - 1;
		if (compat_mode_backward(mode, last))
			fate = judge(checking, &backward, versions[i].schema, error);
		if (fate == FATE_OK && compat_mode_forward(mode, last))
			fate = judge(checking, &forward, versions[i].schema, error);
	}
	return fate;
}

static enum fate load_all(const struct cli *cli, struct schema_file *files, struct check_version *versions,
                          size_t len, struct error *error)
{
	for (size_t i = 0; i < len; i++) {
		enum fate fate = schema_file_load(cli_value_at(cli, "against", i), &files[i], error);
		if (fate != FATE_OK)
			return fate;
		versions[i] = (struct check_version){ files[i].path, files[i].schema };
	}
	return FATE_OK;
}

enum fate check_against(struct checking *checking, enum compat_mode mode, struct error *error)
{
	size_t len = 0;

	while (cli_value_at(checking->cli, "against", len) != NULL)
		len++;
	struct schema_file *files = calloc(len + 1, sizeof(*files));
	struct check_version *versions = calloc(len + 1, sizeof(*versions));
	enum fate fate = files != NULL && versions != NULL
	                     ? load_all(checking->cli, files, versions, len, error)
	                     : error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %zu schemas", len);
	if (fate == FATE_OK)
		fate = check_versions(checking, "against", mode, versions, len, error);
	for (size_t i = 0; i < len && files != NULL; i++)
		schema_file_done(&files[i]);
	free(files);
	free(versions);
	return fate;
}
