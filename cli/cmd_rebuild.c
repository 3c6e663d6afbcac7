/* cmd_rebuild.c - `fermata rebuild`. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/rebuild_say.h"
#include "worker/rebuild.h"
#include "worker/survey.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The topics of --resumes; the caller frees. */
static enum fate fill_topics(const struct cli *cli, const char ***ret_topics, size_t *ret_len,
                             struct error *error)
{
	const char *topic;

	*ret_topics = NULL;
	*ret_len = 0;
	while ((topic = cli_value_at(cli, "resumes", *ret_len)) != NULL) {
		const char **grown = reallocarray(*ret_topics, *ret_len + 1, sizeof(*grown));
		if (grown == NULL)
			return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the names of topics");
		grown[(*ret_len)++] = topic;
		*ret_topics = grown;
	}
	return FATE_OK;
}

/* The signals are blocked (COMMAND_SIGNALS): has one come? */
static bool signalled(void *context)
{
	sigset_t set;

	(void)context;
	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1);
}

/* Whether the database is empty is looked at when there is one. */
static void look_at_database(const struct cli *cli)
{
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;
	struct contents contents;
	int64_t rows = 0;

	if (connect_store(cli, &store, &error) != FATE_OK ||
	    store_contents(store, &contents, &error) != FATE_OK) {
		cli_warn("the database was not looked at: %s", error.message);
		store_close(store);
		return;
	}
	for (int i = 0; i < GATE_STATE_COUNT; i++)
		rows += contents.states[i];
	if (rows > 0)
		cli_warn(
			"the database is not empty, it holds %lld checkpoints: without --dry-run, rebuild would refuse, "
			"unless it was interrupted there",
			(long long)rows);
	store_close(store);
}

static enum fate dry_run(const struct cli *cli, const struct rebuild_options *options, struct error *error)
{
	struct survey survey;
	enum fate fate;

	look_at_database(cli);
	fate = survey_run(cli->config, options, signalled, NULL, &survey, error);
	if (fate == FATE_OK)
		fate = rebuild_say_survey(cli, &survey, error);
	survey_done(&survey);
	return fate;
}

static enum fate rebuild(const struct cli *cli, const struct rebuild_options *asked, struct error *error)
{
	struct rebuild_saying saying = { .json = cli->json, .terminal = isatty(STDERR_FILENO) == 1 };
	struct rebuild_options options = *asked;
	struct rebuild_report report;
	struct store *store = NULL;
	enum fate fate = connect_store(cli, &store, error); /* says what to do where there is none */

	store_close(store);
	if (fate != FATE_OK)
		return fate;
	options.progress = rebuild_say_progress;
	options.context = &saying;
	fate = rebuild_run(cli->config, &options, &report, error);
	rebuild_say_over(&saying, &report.progress);
	if (fate == FATE_OK && report.interrupted)
		fate = error_set(error, FATE_RETRY, ERR_STALE,
		                 "interrupted: start `fermata rebuild` again, it goes on where it stopped");
	else if (fate == FATE_OK)
		fate = rebuild_say_report(cli, &report, error);
	rebuild_report_done(&report);
	return fate;
}

int cmd_rebuild(struct cli *cli)
{
	struct error error = { .fate = FATE_OK };
	struct rebuild_options options = { .progress = NULL };
	const char **topics = NULL;
	enum fate fate = fill_topics(cli, &topics, &options.resumes_topics_len, &error);

	options.resumes_topics = topics;
	if (fate == FATE_OK)
		fate = rebuild_check(cli->config, &options, &error);
	if (fate == FATE_OK)
		fate = cli_given(cli, "dry-run") ? dry_run(cli, &options, &error) : rebuild(cli, &options, &error);
	free(topics);
	if (fate != FATE_OK && strstr(error.message, "PostgreSQL") == NULL &&
	    strstr(error.message, "database") == NULL)
		fate = kafka_away(cli, &error);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
