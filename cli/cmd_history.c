/* cmd_history.c - `fermata history`: what happened to a checkpoint, or to a session, in the order of time. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/find.h"
#include "cli/person.h"
#include "cli/row_json.h"
#include "cli/screen.h"

#include <stdlib.h>

#define ARENA_BYTES ((size_t)1 << 30)
#define TEXT_BYTES  ((size_t)256 << 20)

/* A state that a checkpoint came to, a decision about it, or what an operator did to it. */
struct happening {
	int64_t at;
	size_t order; /* among those of one time */
	const struct checkpoint *row;
	const struct decision *decision; /* or NULL */
	const struct audit_entry *audit; /* or NULL */
	enum gate_state state;           /* where both are */
};

struct telling {
	struct cli *cli;
	struct store *store;
	struct arena *arena;
	struct happening *list;
	size_t len, cap;
	struct buffer out;
	int64_t now;
};

/* ---- gathering ---- */

static enum fate add(struct telling *telling, struct happening happening, struct error *error)
{
	if (telling->len == telling->cap) {
		size_t cap = telling->cap > 0 ? 2 * telling->cap : 64;
		struct happening *grown = reallocarray(telling->list, cap, sizeof(*grown));
		if (grown == NULL)
			return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the history");
		telling->list = grown;
		telling->cap = cap;
	}
	happening.order = telling->len;
	telling->list[telling->len++] = happening;
	return FATE_OK;
}

static enum fate add_state(struct telling *telling, const struct checkpoint *row, enum gate_state state,
                           int64_t at, struct error *error)
{
	return at == TIME_NONE ? FATE_OK
	                       : add(telling, (struct happening){ .at = at, .row = row, .state = state }, error);
}

static enum fate add_audits(struct telling *telling, const struct checkpoint *row, struct error *error)
{
	struct audit_entry *entries;
	size_t len;
	enum fate fate = store_audits(telling->store, &row->id, telling->arena, &entries, &len, error);

	for (size_t i = 0; fate == FATE_OK && i < len; i++)
		fate =
			add(telling, (struct happening){ .at = entries[i].at, .row = row, .audit = &entries[i] }, error);
	return fate;
}

/* The row knows when it came, when it was decided and when it last changed; decisions and deeds are kept whole. */
static enum fate gather(struct telling *telling, const struct checkpoint *row, struct error *error)
{
	struct decision **decisions;
	size_t len;
	enum fate fate = store_decisions(telling->store, &row->id, telling->arena, &decisions, &len, error);

	if (fate == FATE_OK && row->filled)
		fate = add_state(telling, row, GATE_PENDING, row->appended_at, error);
	for (size_t i = 0; fate == FATE_OK && i < len; i++)
		fate = add(
			telling,
			(struct happening){ .at = decisions[i]->at.appended_at, .row = row, .decision = decisions[i] },
			error);
	if (fate == FATE_OK && row->has_verdict)
		fate = add_state(telling, row, GATE_DECIDED, row->decided_at, error);
	if (fate == FATE_OK)
		fate = add_audits(telling, row, error);
	if (fate == FATE_OK && row->state != GATE_DECIDED && !(row->filled && row->state == GATE_PENDING))
		fate = add_state(telling, row, row->state, row->changed_at, error);
	return fate;
}

static int by_time(const void *a, const void *b)
{
	const struct happening *first = a, *second = b;

	if (first->at != second->at)
		return first->at < second->at ? -1 : 1;
	return first->order < second->order ? -1 : first->order > second->order;
}

/* ---- telling ---- */

static enum fate tell_state_json(const struct happening *happening, struct error *error)
{
	const struct checkpoint *row = happening->row;
	struct json_line *line = json_line_new();
	char id[UUID_TEXT_LEN + 1];
	bool last = happening->state == row->state;

	uuid_format(&row->id, id);
	json_line_text(line, "checkpoint_id", view_of(id));
	json_line_text(line, "session_id", row->filled ? row->session_id : VIEW_NULL);
	json_line_text(line, "gate_id", row->filled ? row->gate_id : VIEW_NULL);
	json_line_text(line, "state", view_of(gate_state_name(happening->state)));
	json_line_text(line, "verdict",
	               row->has_verdict && happening->state != GATE_PENDING ? view_of(verdict_name(row->verdict))
	                                                                    : VIEW_NULL);
	json_line_text(line, "reason", last ? row->reason : VIEW_NULL);
	json_line_time(line, "at", happening->at);
	return json_line_write(line, error);
}

static enum fate tell_json(struct telling *telling, const struct happening *happening, struct error *error)
{
	enum fate fate;

	if (happening->audit != NULL)
		fate = row_json_audit(happening->audit, &telling->out, error);
	else if (happening->decision != NULL)
		fate = row_json_decision(happening->decision, &telling->out, error);
	else
		return tell_state_json(happening, error);
	if (fate == FATE_OK)
		screen_write_json(&telling->out);
	return fate;
}

static void tell_state(struct telling *telling, const struct happening *happening)
{
	const struct checkpoint *row = happening->row;
	struct buffer *out = &telling->out;
	enum colour colour = gate_state_colour(happening->state);
	char when[96];

	buffer_printf(out, "%s  %s%s%s", format_when(happening->at, telling->now, when, sizeof(when)),
	              colour_on(colour), gate_state_name(happening->state), colour_off(colour));
	if (happening->state == GATE_DECIDED)
		buffer_printf(out, "  %s", verdict_name(row->verdict));
	if (happening->state == GATE_PENDING && row->filled) {
		buffer_append_text(out, "  the suspend event came: ");
		put_clean(out, row->title);
	}
	buffer_append_byte(out, '\n');
	if (happening->state == row->state && row->reason.len > 0) {
		buffer_append_text(out, "    reason: ");
		put_clean_lines(out, row->reason, 12);
		buffer_append_byte(out, '\n');
	}
}

/* Whose history follows, where it is another's than before. */
static void tell_whose(struct telling *telling, const struct checkpoint *row)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	buffer_printf(&telling->out, "%scheckpoint %s%s", colour_on(COLOUR_BOLD), id, colour_off(COLOUR_BOLD));
	if (row->filled) {
		buffer_append_text(&telling->out, " of session ");
		put_clean(&telling->out, row->session_id);
		buffer_append_text(&telling->out, ", gate ");
		put_clean(&telling->out, row->gate_id);
	}
	buffer_append_byte(&telling->out, '\n');
}

static enum fate tell_all(struct telling *telling, struct error *error)
{
	qsort(telling->list, telling->len, sizeof(*telling->list), by_time);
	for (size_t i = 0; i < telling->len; i++) {
		const struct happening *happening = &telling->list[i];
		if (telling->cli->json) {
			enum fate fate = tell_json(telling, happening, error);
			if (fate != FATE_OK)
				return fate;
			continue;
		}
		if (i == 0 || happening->row != telling->list[i - 1].row)
			tell_whose(telling, happening->row);
		buffer_append_text(&telling->out, "  ");
		if (happening->audit != NULL)
			person_audit(&telling->out, happening->audit, telling->now);
		else if (happening->decision != NULL)
			person_decision(&telling->out, happening->decision, telling->now);
		else
			tell_state(telling, happening);
		screen_write(&telling->out);
	}
	return FATE_OK;
}

static int tell(struct telling *telling, const char *id)
{
	struct error error = { .fate = FATE_OK };
	struct found found = { 0 };
	enum fate fate = connect_store(telling->cli, &telling->store, &error);

	if (fate == FATE_OK)
		fate = find_checkpoints(telling->store, id, false, telling->arena, &found, &error);
	if (fate == FATE_OK && found.len == 0)
		return find_say_unknown(id);
	for (size_t i = 0; fate == FATE_OK && i < found.len; i++)
		fate = gather(telling, found.rows[i], &error);
	if (fate == FATE_OK)
		fate = tell_all(telling, &error);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}

int cmd_history(struct cli *cli)
{
	struct telling telling = { .cli = cli, .arena = arena_new(ARENA_BYTES), .now = clock_real_us() };
	int code;

	buffer_init(&telling.out, TEXT_BYTES);
	code = telling.arena != NULL ? tell(&telling, cli_argument(cli, 0)) : EXIT_AGAIN;
	store_close(telling.store);
	arena_free(telling.arena);
	buffer_done(&telling.out);
	free(telling.list);
	return code;
}
