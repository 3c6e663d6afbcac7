/* cmd_redrive.c - `fermata dead-letters redrive`: back to where they came from, once. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/redrive.h"
#include "cli/row_json.h"
#include "cli/screen.h"
#include "cli/signals.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_DEFAULT     100
#define REDRIVES_DEFAULT 3
#define PLACE_MAX        40
#define WHY_MAX          300
#define CODES_MAX        16

/* How many of a code there were, for the end of a dry run. */
struct tally {
	char code[32];
	size_t count;
};

struct redriving {
	struct cli *cli;
	struct letter_filter filter;
	struct letter_place *places; /* with places_len 0: all that the filter lets through */
	size_t places_len;
	bool dry;
	struct redrive_rules rules;
	struct redrive_sender sender;
	struct letter_trial trial;
	struct text_set chosen; /* origins of those that are sent in this run: of doubles one is */
	struct text_set topics; /* of a dry run: those that were seen to be there */
	size_t matched, sent, left, done;
	struct tally tallies[CODES_MAX];
	size_t tallies_len;
	struct buffer out;
	struct error error;
};

/* ---- what is said about each ---- */

/* What became, or would become, of a letter. */
struct saying {
	const struct letter *letter;
	const char *action;               /* "sent", "send" (a dry run), "left", "done" */
	struct view topic;                /* where to; null where it does not go */
	const struct redrive_item *where; /* NULL unless it was sent */
	const char *why;                  /* NULL where it goes */
	const struct trial_result *trial; /* NULL but in a dry run */
};

static enum fate say_json(const struct saying *saying, struct error *error)
{
	const struct letter *letter = saying->letter;
	const struct trial_result *trial = saying->trial;
	struct json_line *line = json_line_new();
	char place[PLACE_MAX];

	snprintf(place, sizeof(place), "%" PRId32 ":%" PRId64, letter->at.partition, letter->at.offset);
	json_line_text(line, "place", view_of(place));
	json_line_text(line, "code", letter->code);
	json_line_text(line, "action", view_of(saying->action));
	json_line_text(line, "to", saying->topic);
	if (saying->where != NULL) {
		json_line_number(line, "to_partition", saying->where->partition);
		json_line_number(line, "to_offset", saying->where->offset);
	}
	json_line_text(line, "why", view_of(saying->why));
	if (trial != NULL) {
		json_line_text(line, "now_refused",
		               trial->answer == TRIAL_REFUSED ? view_of(trial->why.message) : VIEW_NULL);
		json_line_text(line, "change_first", view_of(letter_change_first(letter->code)));
	}
	return json_line_write(line, error);
}

static void put_trial(struct buffer *out, const struct trial_result *trial)
{
	if (trial->answer == TRIAL_TAKEN)
		buffer_append_text(out, "; it can be read now");
	else
		buffer_printf(out, "; %s: %s: %s",
		              trial->answer == TRIAL_REFUSED ? "it would be refused again"
		                                             : "whether it can be read is not "
		                                               "known here",
		              error_code_name(trial->why.code), trial->why.message);
}

static void say_text(struct redriving *redriving, const struct saying *saying)
{
	const struct letter *letter = saying->letter;
	struct buffer *out = &redriving->out;

	buffer_printf(out, "%" PRId32 ":%" PRId64 "  ", letter->at.partition, letter->at.offset);
	put_clean(out, view_is_null(letter->code) ? view_of("?") : letter->code);
	if (saying->why != NULL) {
		buffer_printf(out, "  %s: ", !strcmp(saying->action, "done") ? "not again" : "left alone");
		put_clean(out, view_of(saying->why));
	} else {
		buffer_append_text(out, saying->where != NULL ? "  is at " : "  would go to ");
		put_clean(out, saying->topic);
	}
	if (saying->where != NULL)
		buffer_printf(out, ":%" PRId32 ":%" PRId64, saying->where->partition, saying->where->offset);
	if (saying->trial != NULL)
		put_trial(out, saying->trial);
	buffer_append_byte(out, '\n');
	screen_write(out);
}

static enum fate say(struct redriving *redriving, const struct saying *saying)
{
	if (redriving->cli->json)
		return say_json(saying, &redriving->error);
	say_text(redriving, saying);
	return FATE_OK;
}

/* ---- a batch ---- */

static enum fate say_item(struct redriving *redriving, const struct redrive_item *item)
{
	struct saying saying = { .letter = &item->letter, .action = "sent", .topic = view_of(item->topic) };

	if (item->acknowledged) {
		redriving->sent++;
		saying.where = item;
		return say(redriving, &saying);
	}
	saying.topic = VIEW_NULL;
	saying.action = item->passed_over ? "done" : "left";
	saying.why = item->passed_over ? "somebody else has redriven it just now" : item->why.message;
	redriving->done += item->passed_over;
	redriving->left += !item->passed_over;
	return say(redriving, &saying);
}

/* What of it was acknowledged is told also when the rest was not. */
static enum fate flush(struct redriving *redriving)
{
	struct redrive_sender *sender = &redriving->sender;
	struct error failed = { .fate = FATE_OK };
	enum fate fate = redrive_flush(sender, &failed), said = FATE_OK;

	for (size_t i = 0; i < sender->len && said == FATE_OK; i++)
		if (fate == FATE_OK || sender->items[i].acknowledged)
			said = say_item(redriving, &sender->items[i]);
	redrive_forget(sender);
	(void)fflush(stdout);
	if (fate != FATE_OK)
		redriving->error = failed;
	return fate != FATE_OK ? fate : said;
}

/* ---- a letter ---- */

static void count_code(struct redriving *redriving, struct view code)
{
	for (size_t i = 0; i < redriving->tallies_len; i++)
		if (view_equal_text(code, redriving->tallies[i].code)) {
			redriving->tallies[i].count++;
			return;
		}
	if (redriving->tallies_len == CODES_MAX || code.len >= sizeof(redriving->tallies[0].code))
		return;
	struct tally *tally = &redriving->tallies[redriving->tallies_len++];
	snprintf(tally->code, sizeof(tally->code), "%.*s", (int)code.len, (const char *)code.data);
	tally->count = 1;
}

/* Where none is, the sending would end, too. */
static enum fate check_topic(struct redriving *redriving, struct view topic)
{
	char name[256];
	bool fresh = false;
	enum fate fate = text_set_add(&redriving->topics, topic, &fresh, &redriving->error);

	if (fate != FATE_OK || !fresh)
		return fate;
	snprintf(name, sizeof(name), "%.*s", (int)topic.len, (const char *)topic.data);
	return connect_topic(redriving->cli, name, &redriving->error);
}

static enum fate rehearse(struct redriving *redriving, const struct letter *letter, struct view topic)
{
	struct trial_result result;
	struct saying saying = { .letter = letter, .action = "send", .topic = topic, .trial = &result };
	enum fate fate = check_topic(redriving, topic);

	if (fate != FATE_OK)
		return fate;
	letter_try(&redriving->trial, letter, &result);
	redriving->sent++;
	count_code(redriving, letter->code);
	return say(redriving, &saying);
}

static enum fate send(struct redriving *redriving, const struct letter *letter, struct view topic)
{
	bool fresh = false;
	char origin[LETTER_ORIGIN_MAX];
	enum fate fate =
		text_set_add(&redriving->chosen, view_of(letter_origin(letter, origin)), &fresh, &redriving->error);

	if (fate != FATE_OK || !fresh) /* a double of one that goes already */
		return fate;
	if (redriving->dry)
		return rehearse(redriving, letter, topic);
	if (redrive_is_full(&redriving->sender, letter->key.len + letter->value.len))
		fate = flush(redriving);
	return fate == FATE_OK ? redrive_add(&redriving->sender, letter, topic, &redriving->error) : fate;
}

static enum fate take(struct redriving *redriving, const struct letter *letter)
{
	char why[WHY_MAX] = "";
	struct saying saying = { .letter = letter };
	enum redrive_choice choice = redrive_choose(&redriving->rules, letter, &saying.topic, why, sizeof(why));

	redriving->matched++;
	if (choice == REDRIVE_SEND)
		return send(redriving, letter, saying.topic);
	saying.action = choice == REDRIVE_DONE ? "done" : "left";
	saying.why = why;
	redriving->done += choice == REDRIVE_DONE;
	redriving->left += choice == REDRIVE_LEAVE;
	/* Of all those that went before only their number is told, unless they are asked for. */
	if (choice == REDRIVE_DONE && redriving->places_len == 0 && !redriving->dry)
		return FATE_OK;
	return say(redriving, &saying);
}

static bool each_letter(void *context, const struct letter *letter)
{
	struct redriving *redriving = context;

	return !signals_came() && take(redriving, letter) == FATE_OK && !signals_came();
}

/* ---- which ---- */

static enum fate walk(struct redriving *redriving, struct error *error)
{
	struct letters_walk all = { .cli = redriving->cli,
		                        .filter = redriving->filter,
		                        .doubles = true, /* one of them may be whole where another is not */
		                        .each = each_letter,
		                        .context = redriving };

	if (redriving->places_len == 0)
		return letters_walk(&all, error);
	return letters_at(redriving->cli, redriving->places, redriving->places_len, each_letter, redriving,
	                  error);
}

static enum fate take_places(struct redriving *redriving, struct error *error)
{
	const struct cli *cli = redriving->cli;
	size_t len = cli->parsed->arguments_len;
	bool filtered = cli_given(cli, "code") || cli_given(cli, "topic") || cli_given(cli, "since") ||
	                cli_given(cli, "until");

	if (len == 0 && !cli_given(cli, "all"))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"which letters? Give their places, or --all (with --code, --topic, --since, --until); "
			"--dry-run shows what would be done");
	if (len > 0 && (filtered || cli_given(cli, "all")))
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "places are given, or --all with filters, not both of them");
	redriving->places = calloc(len + 1, sizeof(*redriving->places));
	if (redriving->places == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for %zu places", len);
	for (; redriving->places_len < len; redriving->places_len++) {
		enum fate fate = letter_place_parse(cli_argument(cli, redriving->places_len),
		                                    &redriving->places[redriving->places_len], error);
		if (fate != FATE_OK)
			return fate;
	}
	return letter_filter_take(cli, &redriving->filter, error);
}

/* What the worker alone writes, or what the letters would follow themselves in, is no place for them. */
static enum fate take_target(struct redriving *redriving, struct error *error)
{
	const struct config *config = redriving->cli->config;
	const char *to = cli_value(redriving->cli, "to");
	size_t len;
	const char *const *resumes = config_resumes_topics(config, &len);
	bool taken = false;

	redriving->rules.to = to;
	if (to == NULL)
		return FATE_OK;
	for (size_t i = 0; i < len; i++)
		taken = taken || !strcmp(resumes[i], to);
	if (taken || !strcmp(to, config_text(config, PARAM_TOPICS_GATES)) ||
	    !strcmp(to, config_text(config, PARAM_TOPICS_DEAD_LETTERS)))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"--to %.100s: only the worker writes there (topics.suspends, topics.approvals or a topic "
			"of your own)",
			to);
	return FATE_OK;
}

static enum fate take_options(struct redriving *redriving, struct error *error)
{
	const struct cli *cli = redriving->cli;
	size_t most = REDRIVES_DEFAULT;

	redriving->dry = cli_given(cli, "dry-run");
	redriving->rules = (struct redrive_rules){
		.suspends = config_text(cli->config, PARAM_TOPICS_SUSPENDS),
		.approvals = config_text(cli->config, PARAM_TOPICS_APPROVALS),
		.record_bytes = (size_t)config_number(cli->config, PARAM_LIMITS_RECORD_BYTES),
		.again = cli_given(cli, "again"),
		.done = &redriving->sender.done,
	};
	redriving->sender.again = redriving->rules.again;
	enum fate fate = cli_number(cli, "rate", RATE_DEFAULT, &redriving->sender.rate, error);
	if (fate == FATE_OK)
		fate = cli_number(cli, "max-redrives", REDRIVES_DEFAULT, &most, error);
	redriving->rules.max_redrives = (int64_t)most;
	if (fate == FATE_OK)
		fate = take_target(redriving, error);
	return fate == FATE_OK ? take_places(redriving, error) : fate;
}

/* ---- all of it ---- */

static void say_summary(const struct redriving *redriving)
{
	printf("%zu %s, %zu left alone, %zu redriven before\n", redriving->sent,
	       redriving->dry ? "would be sent" : "sent", redriving->left, redriving->done);
	for (size_t i = 0; i < redriving->tallies_len; i++)
		printf("%s (%zu): %s\n", redriving->tallies[i].code, redriving->tallies[i].count,
		       letter_change_first(view_of(redriving->tallies[i].code)));
}

static int answer(const struct redriving *redriving)
{
	if (!redriving->cli->json && redriving->matched > 0)
		say_summary(redriving);
	if (signals_came())
		return cli_no("stopped after %zu letters; run it again for the rest", redriving->sent);
	if (redriving->matched == 0)
		return cli_no("no dead letter is among those that were asked for");
	if (redriving->left > 0)
		return EXIT_NO;
	return redriving->places_len > 0 && redriving->sent == 0 ? EXIT_NO : EXIT_YES;
}

static enum fate redrive(struct redriving *redriving, struct error *error)
{
	enum fate fate = take_options(redriving, error);

	if (fate == FATE_OK)
		fate = text_set_init(&redriving->chosen, error);
	if (fate == FATE_OK)
		fate = text_set_init(&redriving->topics, error);
	if (fate == FATE_OK)
		fate = letter_trial_open(&redriving->trial, redriving->cli, error);
	if (fate == FATE_OK)
		fate = redrive_open(&redriving->sender, redriving->cli, error);
	if (fate != FATE_OK)
		return fate;
	signals_catch();
	signal(SIGPIPE, SIG_IGN); /* who does not read what was sent must not keep it from being recorded */
	fate = walk(redriving, error);
	if (redriving->error.fate == FATE_OK && !signals_came()) /* also before a place where there is none */
		(void)!flush(redriving);
	if (redriving->error.fate == FATE_OK)
		return fate;
	*error = redriving->error;
	return error->fate;
}

int cmd_dead_letters_redrive(struct cli *cli)
{
	struct redriving *redriving = calloc(1, sizeof(*redriving));
	struct error error = { .fate = FATE_OK };
	int code;

	if (redriving == NULL) {
		(void)error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory to redrive");
		return cli_fail(&error);
	}
	redriving->cli = cli;
	buffer_init(&redriving->out, (size_t)1 << 20);
	code = redrive(redriving, &error) == FATE_OK ? answer(redriving) : cli_fail(&error);
	redrive_close(&redriving->sender);
	letter_trial_close(&redriving->trial);
	text_set_done(&redriving->chosen);
	text_set_done(&redriving->topics);
	buffer_done(&redriving->out);
	free(redriving->places);
	free(redriving);
	return code;
}
