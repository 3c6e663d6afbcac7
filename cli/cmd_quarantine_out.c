/* cmd_quarantine_out.c - `fermata quarantine retry` and `drop`: the two ways out. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/find.h"
#include "cli/listing.h"
#include "cli/login.h"
#include "cli/row_json.h"
#include "cli/screen.h"
#include "store/store_quarantine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1 << 30)
#define PAGE_BYTES  ((size_t)64 << 20)
#define REASON_MAX  4096 /* bytes, as of a decision */

struct leading {
	struct cli *cli;
	struct store *store;
	struct arena *arena; /* what is found */
	struct arena *page;  /* of one deed */
	char who[512];
	int64_t now;
	int code; /* EXIT_NO once one could not be led out */
};

/* ---- what is said ---- */

static enum fate say_json(const struct checkpoint *row, bool dry_run, struct error *error)
{
	struct json_line *line = json_line_new();

	row_json_checkpoint(line, row);
	if (dry_run)
		json_line_flag(line, "dry_run", true);
	return json_line_write(line, error);
}

static const char *what_follows(const struct checkpoint *row, bool dropped)
{
	if (dropped)
		return "dropped: nothing of it is published";
	switch (row->state) {
	case GATE_PENDING:
		return "it waits for a decision again";
	case GATE_DECIDED:
		return "a worker tries again to publish its resume";
	case GATE_RESUMED:
		return "settled without a resume, as routes.*.on_reject = drop says";
	case GATE_SUPERSEDED:
	case GATE_QUARANTINED:
	case GATE_IN_DOUBT:
	case GATE_UNCLAIMED:
		break;
	}
	return "would be retried";
}

static void say_text(const struct checkpoint *row, bool dropped)
{
	struct buffer out;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	buffer_init(&out, ARENA_BYTES);
	buffer_printf(&out, "%s  ", id);
	put_clean(&out, row->session_id);
	buffer_printf(&out, "  %s%s%s: %s\n", gate_state_name(row->state), row->has_verdict ? ", " : "",
	              row->has_verdict ? verdict_name(row->verdict) : "", what_follows(row, dropped));
	screen_write(&out);
	buffer_done(&out);
}

static enum fate say(const struct leading *leading, const struct checkpoint *row, bool dropped,
                     struct error *error)
{
	if (leading->cli->json)
		return say_json(row, row->state == GATE_QUARANTINED, error);
	say_text(row, dropped);
	return FATE_OK;
}

/* ---- one deed ---- */

static bool settles(void *context, struct view tenant, struct view agent)
{
	return config_route_for(context, tenant, agent)->on_reject == ON_REJECT_DROP;
}

static enum fate do_deed(struct leading *leading, const struct uuid *id, bool drops,
                         struct deed_result *ret_result, struct error *error)
{
	struct operator_deed deed = {
		.checkpoint_id = *id,
		.who = view_of(leading->who),
		.reason = view_of(cli_value(leading->cli, "reason")),
		.now = clock_real_us(),
	};

	arena_reset(leading->page);
	return drops ? store_quarantine_drop(leading->store, &deed, leading->page, ret_result, error)
	             : store_quarantine_retry(leading->store, &deed, settles, leading->cli->config, leading->page,
	                                      ret_result, error);
}

/* Does it and says so; somebody else may have been first since it was found. */
static enum fate lead_out(struct leading *leading, const struct uuid *id, bool drops, struct error *error)
{
	struct deed_result result;
	char text[UUID_TEXT_LEN + 1];
	enum fate fate = do_deed(leading, id, drops, &result, error);

	if (fate != FATE_OK)
		return fate;
	if (result.done)
		return say(leading, result.checkpoint, drops, error);
	uuid_format(id, text);
	leading->code = cli_no("checkpoint %s is not quarantined any more: it is %s", text,
	                       result.checkpoint != NULL ? gate_state_name(result.checkpoint->state) : "gone");
	return FATE_OK;
}

/* ---- which ---- */

/* The one that is meant by an ID; NULL, having said why not. */
static const struct checkpoint *choose(struct leading *leading, const char *id, int *ret_code)
{
	struct error error = { .fate = FATE_OK };
	struct found found;

	if (find_in_state(leading->store, id, GATE_QUARANTINED, leading->arena, &found, &error) != FATE_OK)
		*ret_code = cli_fail(&error);
	else if (found.len == 0 || found.rows[0]->state != GATE_QUARANTINED)
		*ret_code = find_say_not_quarantined(leading->store, id, leading->arena);
	else if (found.len > 1)
		*ret_code = find_say_several(id, &found, "are quarantined");
	else
		return found.rows[0];
	return NULL;
}

static enum fate retry_one(struct leading *leading, const struct checkpoint *row, struct error *error)
{
	return cli_given(leading->cli, "dry-run") ? say(leading, row, false, error)
	                                          : lead_out(leading, &row->id, false, error);
}

static int retry_named(struct leading *leading)
{
	const char *id;

	for (size_t i = 0; (id = cli_argument(leading->cli, i)) != NULL; i++) {
		struct error error = { .fate = FATE_OK };
		int code = EXIT_YES;
		const struct checkpoint *row = choose(leading, id, &code);
		if (row == NULL && code != EXIT_NO)
			return code;
		if (row == NULL)
			leading->code = code;
		else if (retry_one(leading, row, &error) != FATE_OK)
			return cli_fail(&error);
	}
	return leading->code;
}

struct gathering {
	struct arena *arena;
	struct checkpoint **rows;
	size_t len, cap;
	bool failed;
};

static bool gather(void *context, const struct checkpoint *row)
{
	struct gathering *gathering = context;

	if (gathering->len == gathering->cap) {
		size_t cap = gathering->cap > 0 ? 2 * gathering->cap : 64;
		struct checkpoint **grown = arena_array(gathering->arena, cap, sizeof(struct checkpoint *));
		if (grown != NULL && gathering->len > 0)
			memcpy(grown, gathering->rows, gathering->len * sizeof(struct checkpoint *));
		gathering->rows = grown;
		gathering->cap = cap;
	}
	if (gathering->rows != NULL)
		gathering->rows[gathering->len] = checkpoint_copy(row, gathering->arena);
	gathering->failed = gathering->rows == NULL || gathering->rows[gathering->len] == NULL;
	gathering->len += gathering->failed ? 0 : 1;
	return !gathering->failed;
}

/* All of them are found first: what comes back meanwhile, still broken, is not retried without end. */
static enum fate gather_all(struct leading *leading, struct gathering *gathering, struct error *error)
{
	struct checkpoint_filter filter = { .has_state = true, .state = GATE_QUARANTINED };
	enum fate fate = listing_narrow(leading->cli, &filter, error);

	if (fate == FATE_OK)
		fate = store_checkpoints(leading->store, &filter, leading->page, gather, gathering, error);
	if (fate == FATE_OK && gathering->failed)
		return error_set(error, FATE_FATAL, ERR_MEMORY,
		                 "too many are quarantined for the memory of this command: give --limit");
	return fate;
}

static int retry_all(struct leading *leading)
{
	struct gathering gathering = { .arena = leading->arena };
	struct error error = { .fate = FATE_OK };
	enum fate fate = gather_all(leading, &gathering, &error);

	if (fate == FATE_OK && gathering.len == 0)
		return cli_no("nothing is quarantined%s", cli_given(leading->cli, "tenant") ||
		                                                  cli_given(leading->cli, "agent") ||
		                                                  cli_given(leading->cli, "session")
		                                              ? " that the options let through"
		                                              : "");
	for (size_t i = 0; fate == FATE_OK && i < gathering.len; i++)
		fate = retry_one(leading, gathering.rows[i], &error);
	return fate == FATE_OK ? leading->code : cli_fail(&error);
}

/* ---- asking first ---- */

static void put_question(struct buffer *out, const struct checkpoint *row, int64_t now)
{
	char id[UUID_TEXT_LEN + 1], since[48];

	uuid_format(&row->id, id);
	buffer_printf(out, "checkpoint %s of session ", id);
	put_clean(out, row->session_id);
	buffer_append_text(out, ": ");
	put_clean(out, row->title);
	buffer_printf(
		out, "\nquarantined %s ago: ", format_span(listing_span(row->changed_at, now), since, sizeof(since)));
	put_clean_lines(out, row->reason, 4);
	buffer_printf(
		out, "\nverdict: %s\nDrop it? Nothing of it is ever published, no decision counts any more. [y/N] ",
		row->has_verdict ? verdict_name(row->verdict) : "none yet");
}

/* EXIT_YES: it is to be dropped. */
static int ask(const struct leading *leading, const struct checkpoint *row)
{
	struct buffer out;
	char answer[16] = "";

	if (cli_given(leading->cli, "yes"))
		return EXIT_YES;
	if (!isatty(STDIN_FILENO))
		return cli_usage("there is nobody to ask whether it is to be dropped: --yes says so");
	buffer_init(&out, ARENA_BYTES);
	put_question(&out, row, leading->now);
	(void)fwrite(out.data, 1, out.len, stderr);
	buffer_done(&out);
	if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return EXIT_YES;
	return cli_no("it was not dropped");
}

static int drop_one(struct leading *leading)
{
	struct error error = { .fate = FATE_OK };
	int code = EXIT_YES;
	const struct checkpoint *row = choose(leading, cli_argument(leading->cli, 0), &code);

	if (row == NULL)
		return code;
	code = ask(leading, row);
	if (code != EXIT_YES)
		return code;
	return lead_out(leading, &row->id, true, &error) == FATE_OK ? leading->code : cli_fail(&error);
}

/* ---- the commands ---- */

static int run(struct cli *cli, int (*work)(struct leading *leading))
{
	struct leading leading = { .cli = cli,
		                       .arena = arena_new(ARENA_BYTES),
		                       .page = arena_new(PAGE_BYTES),
		                       .now = clock_real_us(),
		                       .code = EXIT_YES };
	struct error error = { .fate = FATE_OK };
	enum fate fate = leading.arena == NULL || leading.page == NULL
	                     ? error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database")
	                     : connect_store(cli, &leading.store, &error);

	login_at_host(leading.who, sizeof(leading.who));
	int code = fate == FATE_OK ? work(&leading) : cli_fail(&error);
	store_close(leading.store);
	arena_free(leading.page);
	arena_free(leading.arena);
	return code;
}

static const char *given_filter(const struct cli *cli)
{
	static const char *const filters[] = { "tenant", "agent", "session", "limit" };

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (cli_given(cli, filters[i]))
			return filters[i];
	return NULL;
}

int cmd_quarantine_retry(struct cli *cli)
{
	bool all = cli_given(cli, "all"), named = cli_argument(cli, 0) != NULL;
	const char *filter = given_filter(cli);

	if (all == named)
		return cli_usage(all ? "--all and an ID: it is one or the other"
		                     : "which are to be retried? Give IDs, or --all");
	if (!all && filter != NULL)
		return cli_usage("--%s narrows --all, and says nothing about an ID", filter);
	return run(cli, all ? retry_all : retry_named);
}

int cmd_quarantine_drop(struct cli *cli)
{
	const char *reason = cli_value(cli, "reason");

	if (reason == NULL || *reason == '\0')
		return cli_usage("why is it dropped? --reason TEXT is kept with it");
	if (strlen(reason) > REASON_MAX)
		return cli_usage("--reason is longer than %d bytes", REASON_MAX);
	return run(cli, drop_one);
}
