/* cmd_replay.c - `fermata replay`. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/moment.h"
#include "cli/row_json.h"
#include "cli/screen.h"
#include "worker/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct replaying {
	const struct cli *cli;
	struct error error; /* of the output */
};

/* ---- what was asked for ---- */

static bool is_number(const char *text)
{
	return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static enum fate take_from(const struct cli *cli, struct replay_options *options, struct error *error)
{
	const char *from = cli_value(cli, "from");

	if (from == NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "from where? --from 0, --from 12345 (an offset), or a time: --from 2h, --from "
		                 "2026-11-30T06:45Z");
	options->by_time = !is_number(from);
	if (options->by_time)
		return moment_parse("from", from, clock_real_us(), &options->from, error);
	errno = 0;
	options->from = strtoll(from, NULL, 10);
	if (errno != 0)
		return error_set(error, FATE_FATAL, ERR_USAGE, "--from %.40s: there is no such offset", from);
	return FATE_OK;
}

static enum fate take_partition(const struct cli *cli, struct replay_options *options, struct error *error)
{
	const char *partition = cli_value(cli, "partition");

	options->partition = -1;
	if (partition == NULL)
		return FATE_OK;
	errno = 0;
	long number = is_number(partition) ? strtol(partition, NULL, 10) : -1;
	if (errno != 0 || number < 0 || number > INT32_MAX)
		return error_set(error, FATE_FATAL, ERR_USAGE, "--partition %.40s: it is to be a number from 0 on",
		                 partition);
	options->partition = (int32_t)number;
	return FATE_OK;
}

static enum fate take_options(const struct cli *cli, struct replay_options *options, struct error *error)
{
	enum fate fate = take_from(cli, options, error);

	if (fate == FATE_OK)
		fate = take_partition(cli, options, error);
	options->topic = cli_value(cli, "topic");
	options->dry_run = cli_given(cli, "dry-run");
	if (fate == FATE_OK && options->topic == NULL)
		fate = error_set(error, FATE_FATAL, ERR_USAGE, "which topic? --topic %s, for one",
		                 config_text(cli->config, PARAM_TOPICS_SUSPENDS));
	return fate;
}

/* The signals are blocked (COMMAND_SIGNALS): has one come? */
static bool signalled(void *context)
{
	sigset_t set;

	(void)context;
	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

/* ---- what was found ---- */

static void put_id(struct json_line *line, const char *name, const struct uuid *id)
{
	char text[UUID_TEXT_LEN + 1];

	if (id != NULL)
		uuid_format(id, text);
	json_line_text(line, name, id == NULL ? VIEW_NULL : view_of(text));
}

static enum fate say_json(const struct replay_finding *finding, struct error *error)
{
	struct json_line *line = json_line_new();

	json_line_text(line, "what", view_of(replay_what_name(finding->what)));
	json_line_text(line, "topic", view_of(finding->at.topic));
	json_line_number(line, "partition", finding->at.partition);
	json_line_number(line, "offset", finding->at.offset);
	json_line_time(line, "timestamp", finding->at.appended_at);
	put_id(line, "checkpoint_id", finding->checkpoint_id);
	put_id(line, "decision_id", finding->decision_id);
	json_line_text(line, "text", view_of(finding->text));
	return json_line_write(line, error);
}

static void say_text(const struct replay_finding *finding)
{
	struct buffer out;
	char id[UUID_TEXT_LEN + 1];

	buffer_init(&out, 4096);
	buffer_printf(&out, "%s [%" PRId32 "] offset %" PRId64, finding->at.topic, finding->at.partition,
	              finding->at.offset);
	if (finding->checkpoint_id != NULL) {
		uuid_format(finding->checkpoint_id, id);
		buffer_printf(&out, ", checkpoint %s", id);
	}
	if (finding->decision_id != NULL) {
		uuid_format(finding->decision_id, id);
		buffer_printf(&out, ", decision %s", id);
	}
	buffer_append_text(&out, ": ");
	put_clean(&out, view_of(finding->text));
	buffer_append_byte(&out, '\n');
	screen_write(&out);
	buffer_done(&out);
}

static void each(void *context, const struct replay_finding *finding)
{
	struct replaying *replaying = context;

	if (replaying->error.fate != FATE_OK)
		return;
	if (replaying->cli->json)
		(void)!say_json(finding, &replaying->error);
	else
		say_text(finding);
}

/* ---- what it comes to ---- */

struct total {
	const char *what;
	const char *name;
	int64_t count;
};

#define TOTALS_MAX 40

static size_t add_total(struct total *totals, size_t len, const char *what, const char *name, int64_t count)
{
	totals[len] = (struct total){ what, name, count };
	return len + 1;
}

static size_t fill_totals(const struct replay_report *report, struct total *totals)
{
	size_t len = add_total(totals, 0, "read", "records", report->records);

	len = add_total(totals, len, "read", "same", report->same);
	len = add_total(totals, len, "read", "again", report->again);
	len = add_total(totals, len, "read", "purged", report->purged);
	for (int i = 0; i < REPLAY_WHATS; i++)
		len = add_total(totals, len, "found", replay_what_name((enum replay_what)i), report->found[i]);
	len = add_total(totals, len, "written", "marked", report->marked);
	for (int i = 0; i < GATE_STATE_COUNT; i++)
		len = add_total(totals, len, "written", gate_state_name((enum gate_state)i), report->states[i]);
	for (int i = 0; i <= OUTCOME_REFUSED; i++)
		len = add_total(totals, len, "written", outcome_name((enum outcome)i), report->outcomes[i]);
	return len;
}

static enum fate say_total(const struct cli *cli, const struct total *total, struct error *error)
{
	struct json_line *line;

	if (!cli->json) {
		if (total->count > 0)
			printf("  %-8s %-14s %9" PRId64 "\n", total->what, total->name, total->count);
		return FATE_OK;
	}
	line = json_line_new();
	json_line_text(line, "what", view_of(total->what));
	json_line_text(line, "name", view_of(total->name));
	json_line_number(line, "count", total->count);
	return json_line_write(line, error);
}

static enum fate say_totals(const struct cli *cli, const struct replay_report *report, bool dry_run,
                            struct error *error)
{
	struct total totals[TOTALS_MAX];
	size_t len = fill_totals(report, totals);
	int64_t missing =
		report->found[REPLAY_MISSING] + report->found[REPLAY_UNFILLED] + report->found[REPLAY_NOT_MARKED];
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = say_total(cli, &totals[i], error);
	if (cli->json)
		return fate;
	if (report->records == 0)
		printf("nothing was read: no record of the topic stands there, up to where the workers are\n");
	if (dry_run && missing > 0)
		printf("nothing was written: without --dry-run, what is missing is put in\n");
	if (report->states[GATE_IN_DOUBT] > 0)
		printf(
			"whether what is IN_DOUBT was published cannot be known: `fermata in-doubt list`, then `fermata "
			"in-doubt resume ID` or `fermata in-doubt drop ID --reason TEXT`\n");
	return fate;
}

int cmd_replay(struct cli *cli)
{
	struct replaying replaying = { .cli = cli, .error = { .fate = FATE_OK } };
	struct replay_options options = { .each = each, .stop = signalled, .context = &replaying };
	struct replay_report report;
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;
	enum fate fate = take_options(cli, &options, &error);

	if (fate == FATE_OK)
		fate = connect_store(cli, &store, &error); /* says what to do where there is none */
	store_close(store);
	if (fate == FATE_OK) {
		fate = replay_run(cli->config, &options, &report, &error);
		if (fate != FATE_OK && strstr(error.message, "PostgreSQL") == NULL)
			fate = kafka_away(cli, &error);
	}
	if (fate == FATE_OK)
		fate = say_totals(cli, &report, options.dry_run, &error);
	if (fate == FATE_OK && replaying.error.fate != FATE_OK)
		return cli_fail(&replaying.error);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
