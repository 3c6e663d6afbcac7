/* cmd_in_doubt.c - `fermata in-doubt list`, `resume` and `drop`: of what is decided it cannot be known whether it was
 * published, and somebody says. */
#include "cli/cmd.h"
#include "cli/listing.h"
#include "cli/way_out.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- list ---- */

static const char *const titles[] = { "CHECKPOINT", "SESSION", "AGENT",    "DECIDED",
	                                  "VERDICT",    "RESUMES", "PARTITION" };
#define TITLES (sizeof(titles) / sizeof(titles[0]))

/* Where its resume would be, in which whoever has to say may look. */
static void fill_cells(const struct checkpoint *row, int64_t now, struct listing_texts *texts,
                       struct cell *cells)
{
	cells[0].text = view_of(texts->id);
	cells[1] = (struct cell){ row->session_id, COLOUR_BOLD };
	cells[2].text = row->agent;
	cells[3].text = view_of(format_ago(row->decided_at, now, texts->text[0], sizeof(texts->text[0])));
	cells[4] = (struct cell){ view_of(row->has_verdict ? verdict_name(row->verdict) : "-"),
		                      row->has_verdict ? verdict_colour(row->verdict) : COLOUR_NONE };
	cells[5].text = row->resumes_topic;
	snprintf(texts->text[1], sizeof(texts->text[1]), "%" PRId32, row->resumes_partition);
	cells[6].text = view_of(texts->text[1]);
}

int cmd_in_doubt_list(struct cli *cli)
{
	static const struct listing_kind kind = {
		.titles = titles,
		.columns = TITLES,
		.filter = { .has_state = true, .state = GATE_IN_DOUBT },
		.cells = fill_cells,
		.nothing = "nothing is in doubt",
	};

	return listing_run(cli, &kind);
}

/* ---- resume, drop ---- */

static enum fate resume(struct cli *cli, struct store *store, const struct operator_deed *deed,
                        struct arena *arena, struct deed_result *ret_result, struct error *error)
{
	(void)cli;
	return store_doubt_resume(store, deed, arena, ret_result, error);
}

static enum fate drop(struct cli *cli, struct store *store, const struct operator_deed *deed,
                      struct arena *arena, struct deed_result *ret_result, struct error *error)
{
	(void)cli;
	return store_doubt_drop(store, deed, arena, ret_result, error);
}

int cmd_in_doubt_resume(struct cli *cli)
{
	static const struct way_out way = {
		.from = GATE_IN_DOUBT,
		.word = "in doubt",
		.several = "are in doubt",
		.done = "resumed",
		.deed = resume,
		.follows = { [GATE_DECIDED] = "a worker publishes its resume", [GATE_QUARANTINED] = NOT_MENDED },
		.all = true,
	};

	return way_out_run(cli, &way);
}

int cmd_in_doubt_drop(struct cli *cli)
{
	static const struct way_out way = {
		.from = GATE_IN_DOUBT,
		.word = "in doubt",
		.several = "are in doubt",
		.done = "dropped",
		.deed = drop,
		.follows = { [GATE_RESUMED] = "dropped: nothing of it is published" },
		.all = true,
		.wants_reason = true,
		.question = "Drop it? It is settled as published, and nothing of it is ever published from here.",
	};

	return way_out_run(cli, &way);
}
