#include "cli/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LOT        256
#define CELL_MAX   ((size_t)4096)
#define LOT_BYTES  ((size_t)16 << 20)
#define GAP        2
#define LAST_LEAST 12 /* columns that the last one keeps on a narrow terminal */
#define MOST       40 /* columns of the others on a terminal */

enum fate table_init(struct table *table, const char *const *titles, size_t columns, struct error *error)
{
	assert(columns > 0 && columns <= TABLE_COLUMNS_MAX);
	*table = (struct table){ .titles = titles, .columns = columns, .width = screen_width() };
	table->arena = arena_new(LOT_BYTES);
	table->cells = calloc(LOT * columns, sizeof(*table->cells));
	buffer_init(&table->out, LOT_BYTES);
	if (table->arena == NULL || table->cells == NULL) {
		table_done(table);
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a table");
	}
	for (size_t i = 0; i < columns; i++)
		table->columns_of[i] = strlen(titles[i]);
	return FATE_OK;
}

/* A clean copy, cut so that no cell can fill the lot. */
static enum fate take_cell(struct table *table, const struct cell *from, struct cell *to, struct error *error)
{
	struct buffer clean;

	buffer_init(&clean, CELL_MAX * 12);
	put_clean(&clean,
	          (struct view){ from->text.data, from->text.len < CELL_MAX ? from->text.len : CELL_MAX });
	to->text = buffer_failed(&clean) ? VIEW_NULL : arena_copy(table->arena, buffer_view(&clean));
	to->colour = from->colour;
	buffer_done(&clean);
	return to->text.data != NULL
	           ? FATE_OK
	           : error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a row of the table");
}

enum fate table_row(struct table *table, const struct cell *cells, struct error *error)
{
	struct cell *row;

	if (table->rows == LOT || arena_used(table->arena) > LOT_BYTES / 2)
		table_flush(table);
	row = &table->cells[table->rows * table->columns];
	for (size_t i = 0; i < table->columns; i++) {
		enum fate fate = take_cell(table, &cells[i], &row[i], error);
		if (fate != FATE_OK)
			return fate;
		size_t columns = text_columns(row[i].text);
		if (table->width > 0 && columns > MOST)
			columns = MOST;
		if (columns > table->columns_of[i])
			table->columns_of[i] = columns;
	}
	table->rows++;
	return FATE_OK;
}

/* What is left of the terminal's line for the last column. */
static size_t last_width(const struct table *table)
{
	size_t used = 0;

	if (table->width == 0)
		return SIZE_MAX;
	for (size_t i = 0; i + 1 < table->columns; i++)
		used += table->columns_of[i] + GAP;
	return used + LAST_LEAST < table->width ? table->width - used : LAST_LEAST;
}

static void put_blanks(struct buffer *out, size_t count)
{
	while (count-- > 0)
		buffer_append_byte(out, ' ');
}

/* A text in its colour, cut so that it takes at most so many columns; returns how many it takes. */
static size_t put_cell(struct buffer *out, const struct cell *cell, size_t most)
{
	struct view text = cell->text;
	size_t columns = text_columns(text);
	bool cut = columns > most;

	if (cut) {
		text.len = text_cut(text, most - 1);
		columns = text_columns(text) + 1;
	}
	buffer_append_text(out, colour_on(cell->colour));
	buffer_append_view(out, text);
	buffer_append_text(out, cut ? "\u2026" : "");
	buffer_append_text(out, colour_off(cell->colour));
	return columns;
}

static void put_row(struct table *table, const struct cell *row)
{
	size_t last = table->columns - 1;

	for (size_t i = 0; i < last; i++) {
		size_t taken = put_cell(&table->out, &row[i], table->columns_of[i]);
		put_blanks(&table->out, table->columns_of[i] - taken + GAP);
	}
	(void)put_cell(&table->out, &row[last], last_width(table));
	buffer_append_byte(&table->out, '\n');
}

static void put_titles(struct table *table)
{
	struct cell row[TABLE_COLUMNS_MAX];

	for (size_t i = 0; i < table->columns; i++)
		row[i] = (struct cell){ view_of(table->titles[i]), COLOUR_DIM };
	put_row(table, row);
}

void table_flush(struct table *table)
{
	if (table->rows > 0 && !table->titled) {
		put_titles(table);
		table->titled = true;
	}
	for (size_t i = 0; i < table->rows; i++) {
		put_row(table, &table->cells[i * table->columns]);
		screen_write(&table->out);
	}
	table->rows = 0;
	arena_reset(table->arena);
}

void table_done(struct table *table)
{
	arena_free(table->arena);
	free(table->cells);
	buffer_done(&table->out);
	table->arena = NULL;
	table->cells = NULL;
}
