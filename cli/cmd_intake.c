/* cmd_intake.c - `fermata intake let-through`: a partition that is stopped, for most of its records become dead letters,
 * is to go on all the same. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/login.h"
#include "cli/row_json.h"
#include "store/store_intake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool take_number(const char *text, int64_t max, int64_t *ret_number)
{
	char *end;

	errno = 0;
	long long number = strtoll(text, &end, 10);
	*ret_number = number;
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && number <= max;
}

static int take_words(struct cli *cli, struct let_through *what)
{
	const char *count = cli_value(cli, "count"), *until = cli_value(cli, "until");
	int64_t partition;

	if ((count == NULL) == (until == NULL))
		return cli_usage("how far? --count N or --until OFFSET says so");
	if (!take_number(cli_argument(cli, 1), INT32_MAX, &partition))
		return cli_usage("%s is no partition", cli_argument(cli, 1));
	if (count != NULL && (!take_number(count, INT64_MAX, &what->count) || what->count == 0))
		return cli_usage("--count %s: a number from 1 on", count);
	if (until != NULL && !take_number(until, INT64_MAX, &what->until))
		return cli_usage("--until %s: an offset", until);
	what->topic = cli_argument(cli, 0);
	what->partition = (int32_t)partition;
	what->reason = view_of(cli_value(cli, "reason"));
	return EXIT_YES;
}

static int say(const struct cli *cli, const struct let_through *what, const struct let_through_result *result)
{
	struct error error = { .fate = FATE_OK };
	struct json_line *line;

	if (!cli->json) {
		printf("%s [%" PRId32 "] goes on at offset %" PRId64
		       ": what becomes a dead letter below offset %" PRId64 " is let through\n",
		       what->topic, what->partition, result->next, result->until);
		return EXIT_YES;
	}
	line = json_line_new();
	json_line_text(line, "topic", view_of(what->topic));
	json_line_number(line, "partition", what->partition);
	json_line_number(line, "next", result->next);
	json_line_number(line, "until", result->until);
	return json_line_write(line, &error) == FATE_OK ? EXIT_YES : cli_fail(&error);
}

static int say_no(const struct let_through *what, const struct let_through_result *result)
{
	if (!result->known)
		return cli_no("no worker has ever read %s [%" PRId32 "] into this database", what->topic,
		              what->partition);
	if (what->count == 0 && what->until <= result->next)
		return cli_no("%s [%" PRId32 "] stands at offset %" PRId64 ": --until must lie behind it",
		              what->topic, what->partition, result->next);
	return cli_no("%s [%" PRId32 "] is not stopped: there is nothing to let through", what->topic,
	              what->partition);
}

int cmd_intake_let_through(struct cli *cli)
{
	struct let_through what = { .now = clock_real_us() };
	struct let_through_result result;
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;
	char who[512];
	int code = take_words(cli, &what);

	if (code != EXIT_YES)
		return code;
	login_at_host(who, sizeof(who));
	what.who = view_of(who);
	enum fate fate = connect_store(cli, &store, &error);
	if (fate == FATE_OK)
		fate = store_let_through(store, &what, &result, &error);
	store_close(store);
	if (fate != FATE_OK)
		return cli_fail(&error);
	return result.done ? say(cli, &what, &result) : say_no(&what, &result);
}
