#include "cli/bench_say.h"

#include "cli/row_json.h"
#include "cli/screen.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OFTEN_MS  200
#define SELDOM_MS 10000
#define TAKE_BACK "\r\033[K" /* to the beginning of the line, which is cleared */
#define CELL      64

void bench_say_init(struct bench_saying *saying, bool json)
{
	*saying = (struct bench_saying){ .json = json, .terminal = isatty(STDERR_FILENO) == 1 };
}

char *bench_size_text(size_t size, bool spaced, char *text, size_t cap)
{
	const char *blank = spaced ? " " : "";

	if (size % ((size_t)1 << 20) == 0)
		snprintf(text, cap, "%zu%sMiB", size >> 20, blank);
	else if (size % 1024 == 0)
		snprintf(text, cap, "%zu%sKiB", size >> 10, blank);
	else
		snprintf(text, cap, "%zu%sB", size, blank);
	return text;
}

/* ---- how far it is ---- */

void bench_say_progress(struct bench_saying *saying, size_t size, const char *doing, int64_t done, int64_t of)
{
	int64_t now_ms = clock_mono_ms();
	bool other = strcmp(doing, saying->doing) != 0;
	char text[32];

	if (!other && now_ms - saying->said_ms < (saying->terminal ? OFTEN_MS : SELDOM_MS))
		return;
	saying->said_ms = now_ms;
	snprintf(saying->doing, sizeof(saying->doing), "%s", doing);
	fprintf(stderr, "%s%s: %s", saying->terminal ? TAKE_BACK : "",
	        size > 0 ? bench_size_text(size, true, text, sizeof(text)) : "fermata bench", doing);
	if (of > 0)
		fprintf(stderr, ", %" PRId64 " of %" PRId64, done, of);
	if (!saying->terminal)
		fputc('\n', stderr);
	(void)fflush(stderr);
}

void bench_say_over(struct bench_saying *saying)
{
	if (saying->terminal && saying->doing[0] != '\0')
		fputs(TAKE_BACK, stderr);
	saying->doing[0] = '\0';
}

/* ---- to machines ---- */

static void put_real(struct json_line *line, const char *name, double value)
{
	char text[40];

	snprintf(text, sizeof(text), "%.*f", value < 100 ? 3 : 1, value);
	json_line_raw(line, name, view_of(text));
}

static enum fate say_json(const struct bench_figure *figure, struct error *error)
{
	struct json_line *line = json_line_new();
	bool goal = figure->goal > 0, limit = figure->limit > 0;

	json_line_text(line, "phase", view_of(bench_phase_name(figure->phase)));
	json_line_number(line, "size", (int64_t)figure->size);
	json_line_text(line, "what", view_of(figure->what));
	put_real(line, "value", figure->value);
	json_line_text(line, "unit", view_of(figure->unit));
	json_line_number(line, "count", figure->count);
	put_real(line, "seconds", figure->seconds);
	if (limit) {
		json_line_text(line, "limit_of", view_of(figure->limit_of));
		put_real(line, "limit", figure->limit);
		put_real(line, "ratio", bench_ratio(figure));
	}
	if (goal) {
		json_line_text(line, "goal_is", view_of(figure->goal_at_most ? "at_most" : "at_least"));
		json_line_text(line, "goal_of", view_of(figure->goal_of_value ? "value" : "ratio"));
		put_real(line, "goal", figure->goal);
		json_line_flag(line, "met", bench_goal_met(figure));
	}
	return json_line_write(line, error);
}

enum fate bench_say_figure(struct bench_saying *saying, const struct bench_figure *figure,
                           struct error *error)
{
	enum fate fate;

	if (!saying->json) {
		if (saying->len < SAYING_FIGURES_MAX)
			saying->figures[saying->len++] = *figure;
		return FATE_OK;
	}
	fate = say_json(figure, error);
	(void)fflush(stdout);
	return fate;
}

/* ---- to people ---- */

/* 1234567 as 1,234,567; what is below 100 with a digit or two behind the point. */
static void put_value(char text[CELL], double value, const char *unit)
{
	char digits[32];
	size_t len, at = 0;

	if (value < 100) {
		snprintf(text, CELL, "%.*f%s%s", value < 10 ? 2 : 1, value, unit[0] == '/' ? "" : " ", unit);
		return;
	}
	snprintf(digits, sizeof(digits), "%.0f", value);
	len = strlen(digits);
	for (size_t i = 0; i < len && at + 2 < CELL; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	snprintf(text + at, CELL - at, "%s%s", unit[0] == '/' ? "" : " ", unit);
}

static void put_goal(char text[CELL], const struct bench_figure *figure)
{
	const char *relation = figure->goal_at_most ? "<=" : ">=";
	char goal[CELL];

	if (figure->goal <= 0) {
		text[0] = '\0';
		return;
	}
	if (figure->goal_of_value)
		put_value(goal, figure->goal, figure->unit);
	else
		snprintf(goal, sizeof(goal), "%.1f", figure->goal);
	snprintf(text, CELL, "%s %.40s %s", relation, goal, bench_goal_met(figure) ? "met" : "missed");
}

static enum fate put_row(struct table *table, const struct bench_figure *figure, struct error *error)
{
	char size[CELL], value[CELL], ratio[CELL] = "", goal[CELL], limit[CELL], beside[2 * CELL] = "";
	bool met = bench_goal_met(figure);

	put_value(value, figure->value, figure->unit);
	put_goal(goal, figure);
	if (figure->limit > 0) {
		snprintf(ratio, sizeof(ratio), "%.2f", bench_ratio(figure));
		put_value(limit, figure->limit, figure->unit);
		snprintf(beside, sizeof(beside), "%s, %s", limit, figure->limit_of);
	}
	const struct cell cells[] = {
		{ view_of(bench_size_text(figure->size, true, size, sizeof(size))), COLOUR_NONE },
		{ view_of(figure->what), COLOUR_NONE },
		{ view_of(value), COLOUR_BOLD },
		{ view_of(ratio), COLOUR_NONE },
		{ view_of(goal), figure->goal <= 0 ? COLOUR_NONE
		                 : met             ? COLOUR_GREEN
		                                   : COLOUR_YELLOW },
		{ view_of(beside), COLOUR_DIM },
	};
	return table_row(table, cells, error);
}

enum fate bench_say_table(const struct bench_saying *saying, struct error *error)
{
	static const char *const titles[] = { "SIZE", "WHAT", "MEASURED", "RATIO", "GOAL", "BESIDE" };
	struct table table;
	enum fate fate;

	if (saying->json || saying->len == 0)
		return FATE_OK;
	fate = table_init(&table, titles, sizeof(titles) / sizeof(titles[0]), error);
	if (fate != FATE_OK)
		return fate;
	for (size_t i = 0; i < saying->len && fate == FATE_OK; i++)
		fate = put_row(&table, &saying->figures[i], error);
	if (fate == FATE_OK)
		table_flush(&table);
	table_done(&table);
	return fate;
}
