#include "cli/way_out.h"

#include "cli/connect.h"
#include "cli/find.h"
#include "cli/listing.h"
#include "cli/login.h"
#include "cli/row_json.h"
#include "cli/screen.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1 << 30)
#define PAGE_BYTES  ((size_t)64 << 20)
#define REASON_MAX  4096 /* bytes, as of a decision */

struct leading {
	struct cli *cli;
	const struct way_out *way;
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

static void say_text(const struct way_out *way, const struct checkpoint *row, bool dry_run)
{
	struct buffer out;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	buffer_init(&out, ARENA_BYTES);
	buffer_printf(&out, "%s  ", id);
	put_clean(&out, row->session_id);
	buffer_printf(&out, "  %s%s%s: ", gate_state_name(row->state), row->has_verdict ? ", " : "",
	              row->has_verdict ? verdict_name(row->verdict) : "");
	if (dry_run)
		buffer_printf(&out, "would be %s\n", way->done);
	else
		buffer_printf(&out, "%s\n", way->follows[row->state] != NULL ? way->follows[row->state] : way->done);
	screen_write(&out);
	buffer_done(&out);
}

static enum fate say(const struct leading *leading, const struct checkpoint *row, bool dry_run,
                     struct error *error)
{
	if (leading->cli->json)
		return say_json(row, dry_run, error);
	say_text(leading->way, row, dry_run);
	return FATE_OK;
}

/* ---- one deed ---- */

/* Does it and says so; somebody else may have been first since it was found. */
static enum fate lead_out(struct leading *leading, const struct uuid *id, struct error *error)
{
	struct operator_deed deed = {
		.checkpoint_id = *id,
		.who = view_of(leading->who),
		.reason = view_of(cli_value(leading->cli, "reason")),
		.now = clock_real_us(),
	};
	struct deed_result result;
	char text[UUID_TEXT_LEN + 1];

	arena_reset(leading->page);
	enum fate fate = leading->way->deed(leading->cli, leading->store, &deed, leading->page, &result, error);
	if (fate != FATE_OK)
		return fate;
	if (result.done) {
		if (result.checkpoint->state ==
		    GATE_QUARANTINED) /* tried, and what it stands on is still not there */
			leading->code = EXIT_NO;
		return say(leading, result.checkpoint, false, error);
	}
	uuid_format(id, text);
	leading->code = cli_no("checkpoint %s is not %s any more: it is %s", text, leading->way->word,
	                       result.checkpoint != NULL ? gate_state_name(result.checkpoint->state) : "gone");
	return FATE_OK;
}

/* ---- asking first ---- */

static void put_question(struct buffer *out, const struct way_out *way, const struct checkpoint *row,
                         int64_t now)
{
	char id[UUID_TEXT_LEN + 1], since[48];

	uuid_format(&row->id, id);
	buffer_printf(out, "checkpoint %s of session ", id);
	put_clean(out, row->session_id);
	buffer_append_text(out, ": ");
	put_clean(out, row->title);
	buffer_printf(out, "\n%s for %s: ", way->word,
	              clock_span(listing_span(row->changed_at, now), since, sizeof(since)));
	put_clean_lines(out, row->reason, 4);
	buffer_printf(out, "\nverdict: %s\n%s [y/N] ", row->has_verdict ? verdict_name(row->verdict) : "none yet",
	              way->question);
}

/* Is it to be? Nobody who could be asked is the same as nothing said: way_out_run has looked at that. */
static bool asked(const struct leading *leading, const struct checkpoint *row)
{
	struct buffer out;
	char answer[16] = "";

	if (leading->way->question == NULL || cli_given(leading->cli, "yes"))
		return true;
	buffer_init(&out, ARENA_BYTES);
	put_question(&out, leading->way, row, leading->now);
	(void)fwrite(out.data, 1, out.len, stderr);
	buffer_done(&out);
	return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

/* ---- one ---- */

static enum fate do_one(struct leading *leading, const struct checkpoint *row, struct error *error)
{
	char id[UUID_TEXT_LEN + 1];

	if (leading->way->all && cli_given(leading->cli, "dry-run"))
		return say(leading, row, true, error);
	if (asked(leading, row))
		return lead_out(leading, &row->id, error);
	uuid_format(&row->id, id);
	leading->code = cli_no("checkpoint %s was not %s", id, leading->way->done);
	return FATE_OK;
}

/* ---- which ---- */

/* The one that is meant by an ID; NULL, having said why not. */
static const struct checkpoint *choose(struct leading *leading, const char *id, int *ret_code)
{
	struct error error = { .fate = FATE_OK };
	struct found found;

	if (find_in_state(leading->store, id, leading->way->from, leading->arena, &found, &error) != FATE_OK)
		*ret_code = cli_fail(&error);
	else if (found.len == 0 || found.rows[0]->state != leading->way->from)
		*ret_code = find_say_not_so(leading->store, id, leading->way->word, leading->arena);
	else if (found.len > 1)
		*ret_code = find_say_several(id, &found, leading->way->several);
	else
		return found.rows[0];
	return NULL;
}

static int do_named(struct leading *leading)
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
		else if (do_one(leading, row, &error) != FATE_OK)
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

/* All of them are found first: what comes back meanwhile is not led out without end. */
static enum fate gather_all(struct leading *leading, struct gathering *gathering, struct error *error)
{
	struct checkpoint_filter filter = { .has_state = true, .state = leading->way->from };
	enum fate fate = listing_narrow(leading->cli, &filter, error);

	if (fate == FATE_OK)
		fate = store_checkpoints(leading->store, &filter, leading->page, gather, gathering, error);
	if (fate == FATE_OK && gathering->failed)
		return error_set(error, FATE_FATAL, ERR_MEMORY,
		                 "too many are %s for the memory of this command: give --limit", leading->way->word);
	return fate;
}

static int do_all(struct leading *leading)
{
	struct gathering gathering = { .arena = leading->arena };
	struct error error = { .fate = FATE_OK };
	enum fate fate = gather_all(leading, &gathering, &error);

	if (fate == FATE_OK && gathering.len == 0)
		return cli_no("nothing is %s%s", leading->way->word,
		              cli_given(leading->cli, "tenant") || cli_given(leading->cli, "agent") ||
		                      cli_given(leading->cli, "session")
		                  ? " that the options let through"
		                  : "");
	for (size_t i = 0; fate == FATE_OK && i < gathering.len; i++)
		fate = do_one(leading, gathering.rows[i], &error);
	return fate == FATE_OK ? leading->code : cli_fail(&error);
}

/* ---- the whole ---- */

static int run(struct cli *cli, const struct way_out *way, int (*work)(struct leading *leading))
{
	struct leading leading = { .cli = cli,
		                       .way = way,
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

static int check_which(const struct cli *cli, const struct way_out *way, bool *ret_all)
{
	bool all = cli_given(cli, "all"), named = cli_argument(cli, 0) != NULL;
	const char *filter = given_filter(cli);

	*ret_all = all;
	if (all == named)
		return all ? cli_usage("--all and an ID: it is one or the other")
		           : cli_usage("which are to be %s? Give IDs, or --all", way->done);
	if (!all && filter != NULL)
		return cli_usage("--%s narrows --all, and says nothing about an ID", filter);
	return EXIT_YES;
}

static int check_reason(const struct cli *cli, const struct way_out *way)
{
	const char *reason = cli_value(cli, "reason");

	if (way->wants_reason && (reason == NULL || *reason == '\0'))
		return cli_usage("why is it %s? --reason TEXT is kept with it", way->done);
	if (reason != NULL && strlen(reason) > REASON_MAX)
		return cli_usage("--reason is longer than %d bytes", REASON_MAX);
	return EXIT_YES;
}

int way_out_run(struct cli *cli, const struct way_out *way)
{
	bool all = false, dry_run = way->all && cli_given(cli, "dry-run");
	int code = way->all ? check_which(cli, way, &all) : EXIT_YES;

	if (code == EXIT_YES && !dry_run)
		code = check_reason(cli, way);
	if (code == EXIT_YES && !dry_run && way->question != NULL && !cli_given(cli, "yes") &&
	    !isatty(STDIN_FILENO))
		code = cli_usage("there is nobody to ask whether it is to be %s: --yes says so", way->done);
	return code == EXIT_YES ? run(cli, way, all ? do_all : do_named) : code;
}
