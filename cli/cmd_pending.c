/* cmd_pending.c - `fermata pending`: the gates that wait. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/row_json.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)256 << 20)

struct listing {
	const struct cli *cli;
	struct table table;
	int64_t now;
	size_t count;
	struct error error;
};

static const char *const titles[] = { "CHECKPOINT", "SESSION", "GATE",     "AGENT", "RISK",
	                                  "WAITS FOR",  "EXPIRES", "APPROVED", "TITLE" };
#define TITLES (sizeof(titles) / sizeof(titles[0]))

static enum fate list_json(struct listing *listing, const struct checkpoint *row)
{
	struct json_line *line = json_line_new();

	row_json_checkpoint(line, row);
	return json_line_write(line, &listing->error);
}

static enum fate list_row(struct listing *listing, const struct checkpoint *row)
{
	char id[UUID_TEXT_LEN + 1], since[48], expires[48], approved[32];
	bool trouble = row->state != GATE_PENDING;
	int64_t waited;

	uuid_format(&row->id, id);
	if (__builtin_sub_overflow(listing->now, row->suspended_at, &waited) || waited < 0)
		waited = 0;
	format_span(waited, since, sizeof(since));
	format_ago(row->expires_at, listing->now, expires, sizeof(expires));
	snprintf(approved, sizeof(approved), "%" PRId32 " of %" PRId32, row->approvals, row->required_approvals);
	const struct cell cells[TITLES] = {
		{ view_of(id), COLOUR_NONE },
		{ row->session_id, COLOUR_BOLD },
		{ row->gate_id, COLOUR_NONE },
		{ row->agent, COLOUR_NONE },
		{ view_of(row->has_risk ? risk_name(row->risk) : "-"),
		  row->has_risk ? risk_colour(row->risk) : COLOUR_NONE },
		{ view_of(trouble ? gate_state_name(row->state) : since), trouble ? COLOUR_RED : COLOUR_NONE },
		{ view_of(row->held ? "held" : expires), COLOUR_NONE },
		{ view_of(approved), COLOUR_NONE },
		{ row->title, COLOUR_NONE },
	};
	return table_row(&listing->table, cells, &listing->error);
}

static bool each_row(void *context, const struct checkpoint *row)
{
	struct listing *listing = context;
	enum fate fate = listing->cli->json ? list_json(listing, row) : list_row(listing, row);

	listing->count++;
	return fate == FATE_OK && !ferror(stdout);
}

static enum fate fill_filter(const struct cli *cli, struct checkpoint_filter *filter, struct error *error)
{
	*filter = (struct checkpoint_filter){
		.open_only = true,
		.tenant = view_of(cli_value(cli, "tenant")),
		.agent = view_of(cli_value(cli, "agent")),
		.session_id = view_of(cli_value(cli, "session")),
	};
	return cli_number(cli, "limit", 0, &filter->limit, error);
}

static enum fate list(struct listing *listing, struct store *store, struct error *error)
{
	struct checkpoint_filter filter;
	struct arena *arena;
	enum fate fate = fill_filter(listing->cli, &filter, error);

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

int cmd_pending(struct cli *cli)
{
	struct listing listing = { .cli = cli, .now = clock_real_us(), .error = { .fate = FATE_OK } };
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;
	enum fate fate = table_init(&listing.table, titles, TITLES, &error);

	if (fate == FATE_OK)
		fate = connect_store(cli, &store, &error);
	if (fate == FATE_OK)
		fate = list(&listing, store, &error);
	if (!cli->json && fate == FATE_OK) {
		table_flush(&listing.table);
		if (listing.count == 0 && isatty(STDOUT_FILENO))
			printf("no gate waits for a decision\n");
	}
	table_done(&listing.table);
	store_close(store);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
