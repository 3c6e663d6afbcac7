#include "cli/bench_say.h"

#include "cli/row_json.h"
#include "cli/screen.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OFTEN_MS  200
#define SELDOM_MS 10000
#define TAKE_BACK "\r\033[K" /* to the beginning of the line, which is cleared */
#define CELL      64

#define EMPTY_TABLES "on empty tables"
#define SETTLED_GOAL 0.9

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

static enum fate say_json(const struct bench_saying *saying, const struct bench_figure *figure,
                          struct error *error)
{
	struct json_line *line = json_line_new();
	bool goal = figure->goal > 0, limit = figure->limit > 0;

	json_line_text(line, "phase", view_of(bench_phase_name(figure->phase)));
	json_line_number(line, "size", (int64_t)figure->size);
	json_line_text(line, "what", view_of(figure->what));
	put_real(line, "value", figure->value);
	json_line_text(line, "unit", view_of(figure->unit));
	json_line_number(line, "round", saying->round);
	json_line_number(line, "settled", figure->settled);
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

/* ---- what is kept ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_kind(const struct bench_figure *a, const struct bench_figure *b)
{
	return a->size == b->size && a->phase == b->phase && a->settled == b->settled &&
	       same_text(a->what, b->what) && same_text(a->limit_of, b->limit_of);
}

static void keep(struct bench_saying *saying, const struct bench_figure *figure)
{
	struct bench_row *row = saying->rows;

	while (row < saying->rows + saying->len && !same_kind(&row->rounds[0], figure))
		row++;
	if (row == saying->rows + SAYING_ROWS_MAX || row->len == SAYING_ROUNDS_MAX)
		return;
	if (row == saying->rows + saying->len)
		saying->len++;
	row->rounds[row->len++] = *figure;
}

enum fate bench_say_figure(struct bench_saying *saying, const struct bench_figure *figure,
                           struct error *error)
{
	enum fate fate;

	keep(saying, figure);
	if (!saying->json)
		return FATE_OK;
	fate = say_json(saying, figure, error);
	(void)fflush(stdout);
	return fate;
}

/* The same figure of this round on empty tables, or NULL. */
static const struct bench_figure *on_empty(const struct bench_saying *saying,
                                           const struct bench_figure *figure)
{
	struct bench_figure wanted = *figure;

	wanted.settled = 0;
	for (size_t i = 0; i < saying->len; i++) {
		const struct bench_row *row = &saying->rows[i];
		if (same_kind(&row->rounds[0], &wanted) && row->len >= (size_t)saying->round)
			return &row->rounds[saying->round - 1];
	}
	return NULL;
}

enum fate bench_say_settled(struct bench_saying *saying, size_t size, uint32_t settled, struct error *error)
{
	const char *last = "";
	size_t len = saying->len;
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < len && fate == FATE_OK; i++) {
		struct bench_figure figure = saying->rows[i].rounds[saying->rows[i].len - 1];
		const struct bench_figure *empty = on_empty(saying, &figure);
		/* A figure may be there several times, beside several limits. */
		if (figure.size != size || figure.settled != settled || figure.aside || empty == NULL ||
		    strcmp(last, figure.what) == 0)
			continue;
		last = figure.what;
		figure.limit = empty->value;
		figure.limit_of = EMPTY_TABLES;
		figure.goal_at_most = figure.unit[0] != '/';
		figure.goal = figure.goal_at_most ? 1 / SETTLED_GOAL : SETTLED_GOAL;
		figure.goal_of_value = false;
		fate = bench_say_figure(saying, &figure, error);
	}
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
	char what[2 * CELL];
	bool met = bench_goal_met(figure);

	put_value(value, figure->value, figure->unit);
	put_goal(goal, figure);
	snprintf(what, sizeof(what), "%s%s", figure->what, figure->settled > 0 ? " (settled)" : "");
	if (figure->limit > 0) {
		snprintf(ratio, sizeof(ratio), "%.2f", bench_ratio(figure));
		put_value(limit, figure->limit, figure->unit);
		snprintf(beside, sizeof(beside), "%s, %s", limit, figure->limit_of);
	}
	const struct cell cells[] = {
		{ view_of(bench_size_text(figure->size, true, size, sizeof(size))), COLOUR_NONE },
		{ view_of(what), COLOUR_NONE },
		{ view_of(value), COLOUR_BOLD },
		{ view_of(ratio), COLOUR_NONE },
		{ view_of(goal), figure->goal <= 0 ? COLOUR_NONE
		                 : met             ? COLOUR_GREEN
		                                   : COLOUR_YELLOW },
		{ view_of(beside), COLOUR_DIM },
	};
	return table_row(table, cells, error);
}

static int compare(const void *a, const void *b)
{
	const struct bench_figure *x = a, *y = b;
	double first = x->limit > 0 ? bench_ratio(x) : x->value,
		   second = y->limit > 0 ? bench_ratio(y) : y->value;

	return (first > second) - (first < second);
}

enum fate bench_say_table(struct bench_saying *saying, struct error *error)
{
	static const char *const titles[] = { "SIZE", "WHAT", "MEASURED", "RATIO", "GOAL", "BESIDE" };
	struct table table;
	enum fate fate;

	if (saying->json || saying->len == 0)
		return FATE_OK;
	fate = table_init(&table, titles, sizeof(titles) / sizeof(titles[0]), error);
	if (fate != FATE_OK)
		return fate;
	for (size_t i = 0; i < saying->len && fate == FATE_OK; i++) {
		struct bench_row *row = &saying->rows[i];
		qsort(row->rounds, row->len, sizeof(row->rounds[0]), compare);
		fate = put_row(&table, &row->rounds[row->len / 2], error);
	}
	if (fate == FATE_OK)
		table_flush(&table);
	table_done(&table);
	return fate;
}
