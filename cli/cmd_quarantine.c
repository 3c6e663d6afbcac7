/* cmd_quarantine.c - `fermata quarantine list` and `show`: what could not be opened or validated, and why. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/find.h"
#include "cli/listing.h"
#include "cli/person.h"
#include "cli/row_json.h"

#define ARENA_BYTES ((size_t)1 << 30)
#define TEXT_BYTES  ((size_t)256 << 20)

/* ---- list ---- */

static const char *const titles[] = { "CHECKPOINT", "SESSION", "AGENT", "SINCE", "VERDICT", "REASON" };
#define TITLES (sizeof(titles) / sizeof(titles[0]))

static void fill_cells(const struct checkpoint *row, int64_t now, struct listing_texts *texts,
                       struct cell *cells)
{
	clock_span(listing_span(row->changed_at, now), texts->text[0], sizeof(texts->text[0]));
	cells[0].text = view_of(texts->id);
	cells[1] = (struct cell){ row->session_id, COLOUR_BOLD };
	cells[2].text = row->agent;
	cells[3].text = view_of(texts->text[0]);
	cells[4] = (struct cell){ view_of(row->has_verdict ? verdict_name(row->verdict) : "-"),
		                      row->has_verdict ? verdict_colour(row->verdict) : COLOUR_NONE };
	cells[5].text = view_is_null(row->reason) ? VIEW_LITERAL("-") : row->reason;
}

int cmd_quarantine_list(struct cli *cli)
{
	static const struct listing_kind kind = {
		.titles = titles,
		.columns = TITLES,
		.filter = { .has_state = true, .state = GATE_QUARANTINED },
		.cells = fill_cells,
		.nothing = "nothing is quarantined",
	};

	return listing_run(cli, &kind);
}

/* ---- show ---- */

struct showing {
	struct cli *cli;
	struct store *store;
	struct arena *arena;
	struct buffer out;
	int64_t now;
};

/* What is kept about one checkpoint beside its row. */
struct kept {
	struct decision **decisions;
	size_t decisions_len;
	struct audit_entry *audits;
	size_t audits_len;
};

static void put_what_to_do(struct buffer *out, const struct checkpoint *row)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	put_label(out, "what to do");
	buffer_printf(
		out,
		"mend what the reason names (a key that is missing, a schema, a limit, the row out of a backup), "
		"then\n"
		"            fermata quarantine retry %s\n"
		"            %s. What is still broken comes back here with its reason.\n"
		"            To give it up: fermata quarantine drop %s --reason TEXT\n",
		id,
		row->has_verdict ? "and a worker tries again to publish its resume, once"
						 : "and it waits for a decision again",
		id);
}

static void show_text(struct showing *showing, const struct checkpoint *row, const struct kept *kept)
{
	struct buffer *out = &showing->out;

	person_checkpoint(out, row, showing->now);
	for (size_t i = 0; i < kept->decisions_len; i++) {
		if (i == 0) {
			put_label(out, "decisions");
			buffer_append_byte(out, '\n');
		}
		buffer_append_text(out, "  ");
		person_decision(out, kept->decisions[i], showing->now);
	}
	for (size_t i = 0; i < kept->audits_len; i++) {
		if (i == 0) {
			put_label(out, "operators");
			buffer_append_byte(out, '\n');
		}
		buffer_append_text(out, "  ");
		person_audit(out, &kept->audits[i], showing->now);
	}
	put_what_to_do(out, row);
	screen_write(out);
}

static enum fate show_json(struct showing *showing, const struct checkpoint *row, const struct kept *kept,
                           struct error *error)
{
	struct json_line *line = json_line_new();
	struct error ignored;
	enum fate fate;

	row_json_checkpoint(line, row);
	fate = row_json_decisions(kept->decisions, kept->decisions_len, &showing->out, error);
	json_line_raw(line, "decisions", buffer_view(&showing->out));
	buffer_reset(&showing->out);
	if (fate == FATE_OK)
		fate = row_json_audits(kept->audits, kept->audits_len, &showing->out, error);
	json_line_raw(line, "audit", buffer_view(&showing->out));
	buffer_reset(&showing->out);
	if (fate == FATE_OK)
		return json_line_write(line, error);
	(void)!json_line_end(line, &showing->out, &ignored);
	return fate;
}

static enum fate show_one(struct showing *showing, const struct checkpoint *row, struct error *error)
{
	struct kept kept;
	enum fate fate = store_decisions(showing->store, &row->id, showing->arena, &kept.decisions,
	                                 &kept.decisions_len, error);

	if (fate == FATE_OK)
		fate = store_audits(showing->store, &row->id, showing->arena, &kept.audits, &kept.audits_len, error);
	if (fate == FATE_OK && showing->cli->json)
		return show_json(showing, row, &kept, error);
	if (fate == FATE_OK)
		show_text(showing, row, &kept);
	return fate;
}

static int show_all(struct showing *showing, const char *id)
{
	struct error error = { .fate = FATE_OK };
	struct found found;

	if (find_in_state(showing->store, id, GATE_QUARANTINED, showing->arena, &found, &error) != FATE_OK)
		return cli_fail(&error);
	if (found.len == 0 || found.rows[0]->state != GATE_QUARANTINED)
		return find_say_not_so(showing->store, id, "quarantined", showing->arena);
	for (size_t i = 0; i < found.len; i++) {
		if (i > 0 && !showing->cli->json)
			buffer_append_byte(&showing->out, '\n');
		if (show_one(showing, found.rows[i], &error) != FATE_OK)
			return cli_fail(&error);
	}
	return EXIT_YES;
}

int cmd_quarantine_show(struct cli *cli)
{
	struct showing showing = { .cli = cli, .arena = arena_new(ARENA_BYTES), .now = clock_real_us() };
	struct error error = { .fate = FATE_OK };
	enum fate fate = showing.arena == NULL
	                     ? error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database")
	                     : connect_store(cli, &showing.store, &error);
	int code;

	buffer_init(&showing.out, TEXT_BYTES);
	code = fate == FATE_OK ? show_all(&showing, cli_argument(cli, 0)) : cli_fail(&error);
	store_close(showing.store);
	arena_free(showing.arena);
	buffer_done(&showing.out);
	return code;
}
