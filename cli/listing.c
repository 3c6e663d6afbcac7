#include "cli/listing.h"

#include "cli/connect.h"
#include "cli/row_json.h"

#include <stdio.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)256 << 20)

struct listing {
	const struct cli *cli;
	const struct listing_kind *kind;
	struct table table;
	int64_t now;
	size_t count;
	struct error error;
};

int64_t listing_span(int64_t since, int64_t now)
{
	int64_t span;

	return __builtin_sub_overflow(now, since, &span) || span < 0 ? 0 : span;
}

static enum fate list_json(struct listing *listing, const struct checkpoint *row)
{
	struct json_line *line = json_line_new();

	row_json_checkpoint(line, row);
	return json_line_write(line, &listing->error);
}

static enum fate list_row(struct listing *listing, const struct checkpoint *row)
{
	struct listing_texts texts;
	struct cell cells[TABLE_COLUMNS_MAX] = { { VIEW_NULL, COLOUR_NONE } };

	uuid_format(&row->id, texts.id);
	listing->kind->cells(row, listing->now, &texts, cells);
	return table_row(&listing->table, cells, &listing->error);
}

static bool each_row(void *context, const struct checkpoint *row)
{
	struct listing *listing = context;
	enum fate fate = listing->cli->json ? list_json(listing, row) : list_row(listing, row);

	listing->count++;
	return fate == FATE_OK && !ferror(stdout);
}

enum fate listing_narrow(const struct cli *cli, struct checkpoint_filter *filter, struct error *error)
{
	filter->tenant = view_of(cli_value(cli, "tenant"));
	filter->agent = view_of(cli_value(cli, "agent"));
	filter->session_id = view_of(cli_value(cli, "session"));
	return cli_number(cli, "limit", 0, &filter->limit, error);
}

static enum fate list(struct listing *listing, struct store *store, struct error *error)
{
	struct checkpoint_filter filter = listing->kind->filter;
	struct arena *arena;
	enum fate fate = listing_narrow(listing->cli, &filter, error);

	if (fate != FATE_OK)
		return fate;
	arena = arena_new(PAGE_BYTES);
	if (arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database");
	fate = store_checkpoints(store, &filter, arena, each_row, listing, error);
	arena_free(arena);
	if (fate == FATE_OK && listing->error.fate != FATE_OK) {
		*error = listing->error;
		fate = error->fate;
	}
	return fate;
}

int listing_run(struct cli *cli, const struct listing_kind *kind)
{
	struct listing listing = {
		.cli = cli, .kind = kind, .now = clock_real_us(), .error = { .fate = FATE_OK }
	};
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;
	enum fate fate = table_init(&listing.table, kind->titles, kind->columns, &error);

	if (fate == FATE_OK)
		fate = connect_store(cli, &store, &error);
	if (fate == FATE_OK)
		fate = list(&listing, store, &error);
	if (!cli->json && fate == FATE_OK) {
		table_flush(&listing.table);
		if (listing.count == 0 && isatty(STDOUT_FILENO))
			printf("%s\n", kind->nothing);
	}
	table_done(&listing.table);
	store_close(store);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
