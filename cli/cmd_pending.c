/* cmd_pending.c - `fermata pending`: the gates that wait. */
#include "cli/cmd.h"
#include "cli/listing.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const titles[] = { "CHECKPOINT", "SESSION", "GATE",     "AGENT", "RISK",
	                                  "WAITS FOR",  "EXPIRES", "APPROVED", "TITLE" };
#define TITLES (sizeof(titles) / sizeof(titles[0]))

static void fill_cells(const struct checkpoint *row, int64_t now, struct listing_texts *texts,
                       struct cell *cells)
{
	char *since = texts->text[0], *expires = texts->text[1], *approved = texts->text[2];
	bool trouble = row->state != GATE_PENDING;

	clock_span(listing_span(row->suspended_at, now), since, sizeof(texts->text[0]));
	format_ago(row->expires_at, now, expires, sizeof(texts->text[1]));
	snprintf(approved, sizeof(texts->text[2]), "%" PRId32 " of %" PRId32, row->approvals,
	         row->required_approvals);
	cells[0].text = view_of(texts->id);
	cells[1] = (struct cell){ row->session_id, COLOUR_BOLD };
	cells[2].text = row->gate_id;
	cells[3].text = row->agent;
	cells[4] = (struct cell){ view_of(row->has_risk ? risk_name(row->risk) : "-"),
		                      row->has_risk ? risk_colour(row->risk) : COLOUR_NONE };
	cells[5] = (struct cell){ view_of(trouble ? gate_state_name(row->state) : since),
		                      trouble ? COLOUR_RED : COLOUR_NONE };
	cells[6].text = view_of(row->held ? "held" : expires);
	cells[7].text = view_of(approved);
	cells[8].text = row->title;
}

int cmd_pending(struct cli *cli)
{
	static const struct listing_kind kind = {
		.titles = titles,
		.columns = TITLES,
		.filter = { .open_only = true },
		.cells = fill_cells,
		.nothing = "no gate waits for a decision",
	};

	return listing_run(cli, &kind);
}
