/*
 * table.h - aligned columns. Rows are gathered a few hundred at a time, so that a listing of a million rows
 * needs no memory for them; columns only grow from one lot to the next.
 */
#ifndef FERMATA_CLI_TABLE_H
#define FERMATA_CLI_TABLE_H

#include "cli/screen.h"

#define TABLE_COLUMNS_MAX 10

struct cell {
	struct view text; /* of the caller; cleaned when it is taken */
	enum colour colour;
};

struct table {
	const char *const *titles;
	size_t columns;
	size_t width; /* of the terminal; 0: lines are not cut */
	bool titled;
	size_t columns_of[TABLE_COLUMNS_MAX];
	struct arena *arena;
	struct cell *cells; /* of the rows gathered */
	size_t rows;
	struct buffer out;
};

/* titles: `columns` of them, kept. The last column is cut to fit a terminal. */
FM_MUSTCHECK enum fate table_init(struct table *table, const char *const *titles, size_t columns,
                                  struct error *error);
/* Takes a row of `columns` cells. */
FM_MUSTCHECK enum fate table_row(struct table *table, const struct cell *cells, struct error *error);
/* Writes what is gathered to stdout, the titles before the first row. */
void table_flush(struct table *table);
void table_done(struct table *table);

#endif
