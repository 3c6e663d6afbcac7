/* cmd_erase.c - `fermata erase`: what is sealed of a session is made unreadable for good. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/login.h"
#include "cli/row_json.h"
#include "cli/screen.h"
#include "store/store_erase.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)16 << 20)
#define PAGE_BYTES  ((size_t)64 << 20)
#define PAGE_ROWS   200
#define REASON_MAX  4096 /* bytes, as of a decision */

struct erasing {
	struct cli *cli;
	struct store *store;
	struct arena *arena;
	struct arena *page; /* of one page of rows */
	struct buffer out;
	char who[512];
	struct view session_id;
	struct view tenant;
	size_t erased; /* that had something to erase */
};

/* ---- what is said ---- */

static enum fate say_json(struct erasing *erasing, const struct erased *erased, bool dry_run,
                          struct error *error)
{
	const struct checkpoint *row = erased->checkpoint;
	struct json_line *line = json_line_new();
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	json_line_text(line, "checkpoint_id", view_of(id));
	json_line_text(line, "session_id", erasing->session_id);
	json_line_text(line, "tenant", erasing->tenant);
	json_line_text(line, "gate_id", row->gate_id);
	json_line_text(line, "was", view_of(gate_state_name(erased->was)));
	json_line_text(line, "state", view_of(gate_state_name(dry_run ? erased->was : row->state)));
	json_line_flag(line, "was_erased", erased->was_erased);
	json_line_flag(line, "erased", erased->was_erased || !dry_run);
	return json_line_write(line, error);
}

static void say_text(struct erasing *erasing, const struct erased *erased, bool dry_run)
{
	const struct checkpoint *row = erased->checkpoint;
	struct buffer *out = &erasing->out;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	buffer_printf(out, "%s  gate ", id);
	put_clean(out, row->gate_id);
	buffer_printf(out, "  %s: ", gate_state_name(erased->was));
	if (erased->was_erased)
		buffer_append_text(out, "was erased before");
	else
		buffer_append_text(out, dry_run ? "would be erased" : "erased");
	if (erased->was != row->state)
		buffer_append_text(out, ", and never be published");
	buffer_append_byte(out, '\n');
	screen_write(out);
}

/* What this command cannot reach, said plainly. */
static void say_end(struct erasing *erasing, bool dry_run)
{
	if (erasing->cli->json)
		return;
	buffer_printf(&erasing->out, "%zu checkpoint%s of session ", erasing->erased,
	              erasing->erased == 1 ? "" : "s");
	put_clean(&erasing->out, erasing->session_id);
	buffer_printf(&erasing->out, "%s erased.\n", dry_run ? " would be" : "");
	if (!dry_run)
		buffer_append_text(
			&erasing->out,
			"What stood in clear is still there: ids, title, labels, who asked, who decided and why.\n"
			"Copies stay until they age out: in Kafka's topics (suspends, approvals, resumes, dead letters, "
			"and\n"
			"gates until it is compacted), in backups of the database and in its write-ahead log. If the\n"
			"database is rebuilt from the topics before, erase the session again.\n");
	screen_write(&erasing->out);
}

static enum fate say(struct erasing *erasing, const struct erased *erased, bool dry_run, struct error *error)
{
	erasing->erased += !erased->was_erased;
	if (erasing->cli->json)
		return say_json(erasing, erased, dry_run, error);
	say_text(erasing, erased, dry_run);
	return FATE_OK;
}

/* ---- doing it ---- */

static enum fate erase_all(struct erasing *erasing, bool dry_run, struct error *error)
{
	struct erase_page page = {
		.tenant = erasing->tenant,
		.session_id = erasing->session_id,
		.rows = PAGE_ROWS,
		.dry_run = dry_run,
		.who = view_of(erasing->who),
		.reason = view_of(cli_value(erasing->cli, "reason")),
		.now = clock_real_us(),
	};
	struct erase_result result = { .end = false };

	erasing->erased = 0;
	while (!result.end) {
		arena_reset(erasing->page);
		enum fate fate = store_erase(erasing->store, &page, erasing->page, &result, error);
		for (size_t i = 0; i < result.len && fate == FATE_OK; i++)
			fate = say(erasing, &result.items[i], dry_run, error);
		if (fate != FATE_OK)
			return fate;
		page.from = result.next;
	}
	return FATE_OK;
}

/* EXIT_YES: it is to be done. Where nobody can be asked, the command itself is the answer. */
static int ask(struct erasing *erasing)
{
	char answer[16] = "";
	struct error error = { .fate = FATE_OK };

	if (cli_given(erasing->cli, "yes") || !isatty(STDIN_FILENO))
		return EXIT_YES;
	if (erase_all(erasing, true, &error) != FATE_OK)
		return cli_fail(&error);
	fprintf(stderr, "Erase %zu of these? It cannot be undone. [y/N] ", erasing->erased);
	if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return EXIT_YES;
	return cli_no("nothing was erased");
}

/* ---- whose ---- */

static int refuse_several(struct erasing *erasing, const struct view *tenants, size_t len)
{
	for (size_t i = 0; i < len && i < 8; i++) {
		buffer_append_text(&erasing->out, i > 0 ? ", " : "");
		buffer_append(&erasing->out, tenants[i].data, tenants[i].len);
	}
	return cli_no("%zu tenants have a session %.*s: say which with --tenant: %.*s%s", len,
	              (int)erasing->session_id.len, (const char *)erasing->session_id.data, (int)erasing->out.len,
	              (const char *)erasing->out.data, len > 8 ? ", ..." : "");
}

static int choose(struct erasing *erasing)
{
	struct error error = { .fate = FATE_OK };
	struct view *tenants;
	size_t len;

	if (store_session_tenants(erasing->store, erasing->session_id, erasing->arena, &tenants, &len, &error) !=
	    FATE_OK)
		return cli_fail(&error);
	erasing->tenant = view_of(cli_value(erasing->cli, "tenant"));
	if (view_is_null(erasing->tenant) && len > 1)
		return refuse_several(erasing, tenants, len);
	if (view_is_null(erasing->tenant) && len == 1)
		erasing->tenant = tenants[0];
	for (size_t i = 0; i < len; i++)
		if (view_equal(tenants[i], erasing->tenant))
			return EXIT_YES;
	return cli_no("session %.*s was never saved%s%s: nothing is stored under that name",
	              (int)erasing->session_id.len, (const char *)erasing->session_id.data,
	              view_is_null(erasing->tenant) ? "" : " by tenant ",
	              view_is_null(erasing->tenant) ? "" : (const char *)erasing->tenant.data);
}

static int erase(struct erasing *erasing)
{
	struct error error = { .fate = FATE_OK };
	bool dry_run = cli_given(erasing->cli, "dry-run");
	int code = choose(erasing);

	if (code == EXIT_YES && !dry_run)
		code = ask(erasing);
	if (code != EXIT_YES)
		return code;
	if (erase_all(erasing, dry_run, &error) != FATE_OK)
		return cli_fail(&error);
	say_end(erasing, dry_run);
	return EXIT_YES;
}

int cmd_erase(struct cli *cli)
{
	const char *reason = cli_value(cli, "reason");
	if (reason != NULL && strlen(reason) > REASON_MAX)
		return cli_usage("--reason is longer than %d bytes", REASON_MAX);
	struct erasing erasing = { .cli = cli,
		                       .session_id = view_of(cli_argument(cli, 0)),
		                       .arena = arena_new(ARENA_BYTES),
		                       .page = arena_new(PAGE_BYTES) };
	struct error error = { .fate = FATE_OK };

	buffer_init(&erasing.out, ARENA_BYTES);
	login_at_host(erasing.who, sizeof(erasing.who));
	enum fate fate = erasing.arena == NULL || erasing.page == NULL
	                     ? error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database")
	                     : connect_store(cli, &erasing.store, &error);
	int code = fate == FATE_OK ? erase(&erasing) : cli_fail(&error);

	store_close(erasing.store);
	arena_free(erasing.arena);
	arena_free(erasing.page);
	buffer_done(&erasing.out);
	return code;
}
