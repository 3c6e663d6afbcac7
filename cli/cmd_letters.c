/* cmd_letters.c - `fermata dead-letters list` and `show`: what could not be understood, and why. */
#include "cli/cmd.h"
#include "cli/letter_trial.h"
#include "cli/letters.h"
#include "cli/person.h"
#include "cli/row_json.h"
#include "cli/table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_BYTES ((size_t)1 << 30)
#define PLACE_MAX  40

static char *place_of(const struct letter *letter, char text[PLACE_MAX])
{
	snprintf(text, PLACE_MAX, "%" PRId32 ":%" PRId64, letter->at.partition, letter->at.offset);
	return text;
}

/* TIME_NONE where the record had none. */
static int64_t original_time(const struct letter *letter)
{
	return letter->timestamp_ms < 0 || letter->timestamp_ms > INT64_MAX / 1000 ? TIME_NONE
	                                                                           : letter->timestamp_ms * 1000;
}

/* What a list and a letter alone say alike. */
static void put_members(struct json_line *line, const struct letter *letter)
{
	char place[PLACE_MAX];

	json_line_text(line, "place", view_of(place_of(letter, place)));
	json_line_time(line, "at", letter->at.appended_at);
	json_line_text(line, "code", letter->code);
	json_line_text(line, "reason", letter->reason);
	json_line_text(line, "stage", letter->stage);
	json_line_text(line, "topic", letter->topic);
	if (letter->known) {
		json_line_number(line, "partition", letter->partition);
		json_line_number(line, "offset", letter->offset);
	} else {
		json_line_text(line, "partition", VIEW_NULL);
		json_line_text(line, "offset", VIEW_NULL);
	}
	json_line_time(line, "timestamp", original_time(letter));
	if (letter->redrives >= 0)
		json_line_number(line, "redrive_count", letter->redrives);
	else
		json_line_text(line, "redrive_count", VIEW_NULL);
	if (view_is_null(letter->value))
		json_line_text(line, "value_bytes", VIEW_NULL);
	else
		json_line_number(line, "value_bytes", (int64_t)letter->value.len);
}

/* ---- list ---- */

struct listing {
	const struct cli *cli;
	struct table table;
	size_t left; /* that may still be shown */
	size_t count;
	struct error error;
};

static const char *const titles[] = { "PLACE", "CAME", "CODE", "FROM", "REDRIVEN", "REASON" };
#define TITLES (sizeof(titles) / sizeof(titles[0]))

static enum fate list_json(struct listing *listing, const struct letter *letter)
{
	struct json_line *line = json_line_new();

	put_members(line, letter);
	return json_line_write(line, &listing->error);
}

static enum fate list_row(struct listing *listing, const struct letter *letter)
{
	char place[PLACE_MAX], when[48], from[LETTER_ORIGIN_MAX] = "-", redriven[24] = "-";

	format_ago(letter->at.appended_at, listing->cli->started_at, when, sizeof(when));
	if (letter->known)
		snprintf(from, sizeof(from), "%.*s:%" PRId32 ":%" PRId64, (int)letter->topic.len,
		         (const char *)letter->topic.data, letter->partition, letter->offset);
	if (letter->redrives != 0)
		snprintf(redriven, sizeof(redriven), letter->redrives > 0 ? "%" PRId64 : "?", letter->redrives);
	const struct cell cells[TITLES] = {
		{ view_of(place_of(letter, place)), COLOUR_NONE },
		{ view_of(when), COLOUR_NONE },
		{ letter->known ? letter->code : view_of("?"), COLOUR_YELLOW },
		{ view_of(from), COLOUR_NONE },
		{ view_of(redriven), COLOUR_NONE },
		{ letter->known ? letter->reason : view_of("not written by Fermata: its headers do not say why"),
		  COLOUR_NONE },
	};
	return table_row(&listing->table, cells, &listing->error);
}

static bool list_each(void *context, const struct letter *letter)
{
	struct listing *listing = context;
	enum fate fate = listing->cli->json ? list_json(listing, letter) : list_row(listing, letter);

	listing->count++;
	return fate == FATE_OK && --listing->left > 0;
}

static enum fate list(struct listing *listing, struct error *error)
{
	struct letters_walk walk = {
		.cli = listing->cli, .doubles = cli_given(listing->cli, "all"), .each = list_each, .context = listing
	};
	enum fate fate = cli_number(listing->cli, "limit", SIZE_MAX, &listing->left, error);

	if (fate == FATE_OK)
		fate = letter_filter_take(listing->cli, &walk.filter, error);
	if (fate == FATE_OK)
		fate = letters_walk(&walk, error);
	if (fate == FATE_OK && listing->error.fate != FATE_OK) {
		*error = listing->error;
		fate = error->fate;
	}
	return fate;
}

int cmd_dead_letters_list(struct cli *cli)
{
	struct listing listing = { .cli = cli, .error = { .fate = FATE_OK } };
	struct error error = { .fate = FATE_OK };
	enum fate fate = table_init(&listing.table, titles, TITLES, &error);

	if (fate == FATE_OK)
		fate = list(&listing, &error);
	if (!cli->json && fate == FATE_OK) {
		table_flush(&listing.table);
		if (listing.count == 0 && isatty(STDOUT_FILENO))
			printf("no dead letter\n");
	}
	table_done(&listing.table);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}

/* ---- show ---- */

struct showing {
	const struct cli *cli;
	struct letter_trial trial;
	struct buffer out;
	struct error error;
};

static void put_line(struct buffer *out, const char *label, struct view text)
{
	put_label(out, label);
	put_clean(out, text);
	buffer_append_byte(out, '\n');
}

static void put_value_line(struct buffer *out, const struct letter *letter)
{
	char framing[96];

	put_label(out, "value");
	if (letter->value.len > 0)
		buffer_printf(out, "%zu bytes, framing: ", letter->value.len);
	buffer_append_text(out, letter_framing(letter->value, framing, sizeof(framing)));
	if (letter->known && letter_is_emptied(letter))
		buffer_append_text(out, ": it was left out, for the topic did not take it");
	buffer_append_byte(out, '\n');
}

static void put_headers(struct buffer *out, const struct letter *letter)
{
	for (size_t i = 0; i < letter->headers_len; i++) {
		put_label(out, i == 0 ? "headers" : "");
		put_clean(out, view_of(letter->headers[i].name));
		if (view_is_null(letter->headers[i].value)) {
			buffer_append_text(out, " (null)\n");
			continue;
		}
		buffer_append_text(out, " = ");
		put_clean(out, letter->headers[i].value);
		buffer_append_byte(out, '\n');
	}
}

/* What a worker would make of it now, and what stands in the way. */
static void put_trial(struct buffer *out, const struct letter *letter, const struct trial_result *result)
{
	if (result->decision_id.len > 0)
		put_line(out, "decision", result->decision_id);
	if (result->checkpoint_id.len > 0)
		put_line(out, "checkpoint", result->checkpoint_id);
	if (result->session_id.len > 0)
		put_line(out, "session", result->session_id);
	put_label(out, "now");
	if (result->answer == TRIAL_TAKEN)
		buffer_append_text(out, "it can be read\n");
	else
		buffer_printf(out, "%s: %s: %s\n",
		              result->answer == TRIAL_REFUSED ? "it would be refused" : "it cannot be told here",
		              error_code_name(result->why.code), result->why.message);
	put_line(out, "first", view_of(letter_change_first(letter->code)));
}

static void show_text(struct showing *showing, const struct letter *letter, const struct trial_result *result)
{
	struct buffer *out = &showing->out;
	int64_t now = showing->cli->started_at;
	char place[PLACE_MAX], when[96];

	put_line(out, "letter", view_of(place_of(letter, place)));
	put_line(out, "came", view_of(format_when(letter->at.appended_at, now, when, sizeof(when))));
	if (letter->known) {
		put_line(out, "code", letter->code);
		put_line(out, "reason", letter->reason);
		put_label(out, "from");
		buffer_printf(out, "%.*s, partition %" PRId32 ", offset %" PRId64 ", %s\n", (int)letter->topic.len,
		              (const char *)letter->topic.data, letter->partition, letter->offset,
		              format_when(original_time(letter), now, when, sizeof(when)));
	} else {
		put_line(out, "code", view_of("none: Fermata did not write it, its headers do not say why"));
	}
	put_label(out, "key");
	put_clean(out, view_is_null(letter->key) ? view_of("(null)") : letter->key);
	buffer_append_byte(out, '\n');
	put_value_line(out, letter);
	if (result != NULL)
		put_trial(out, letter, result);
	put_headers(out, letter);
	screen_write(out);
}

static enum fate put_json_headers(struct json_line *line, const struct letter *letter, struct error *error)
{
	struct buffer list;
	enum fate fate = FATE_OK;

	buffer_init(&list, TEXT_BYTES);
	for (size_t i = 0; i < letter->headers_len && fate == FATE_OK; i++) {
		struct json_line *header = json_line_new();
		buffer_append_byte(&list, i == 0 ? '[' : ',');
		json_line_text(header, "name", view_of(letter->headers[i].name));
		json_line_bytes(header, "value", letter->headers[i].value);
		fate = json_line_end(header, &list, error);
	}
	buffer_append_text(&list, letter->headers_len == 0 ? "[]" : "]");
	if (fate == FATE_OK && buffer_failed(&list))
		fate = buffer_refused(&list, error, "the headers are longer than there is room for");
	json_line_raw(line, "headers", fate == FATE_OK ? buffer_view(&list) : VIEW_LITERAL("null"));
	buffer_done(&list);
	return fate;
}

static enum fate show_json(const struct letter *letter, const struct trial_result *result,
                           struct error *error)
{
	struct json_line *line = json_line_new();
	char framing[96];
	bool refused = result != NULL && result->answer == TRIAL_REFUSED;

	put_members(line, letter);
	json_line_bytes(line, "key", letter->key);
	json_line_text(line, "framing", view_of(letter_framing(letter->value, framing, sizeof(framing))));
	json_line_text(line, "decision_id", result != NULL ? result->decision_id : VIEW_NULL);
	json_line_text(line, "checkpoint_id", result != NULL ? result->checkpoint_id : VIEW_NULL);
	json_line_text(line, "session_id", result != NULL ? result->session_id : VIEW_NULL);
	json_line_text(line, "now_refused", refused ? view_of(result->why.message) : VIEW_NULL);
	json_line_text(line, "change_first",
	               letter->known ? view_of(letter_change_first(letter->code)) : VIEW_NULL);
	enum fate fate = put_json_headers(line, letter, error);
	enum fate written = json_line_write(line, error);

	return fate != FATE_OK ? fate : written;
}

/* The bytes may be the plaintext of a session: the file is its owner's alone, and no other is written over. */
static enum fate write_value(const char *path, struct view value, struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	size_t done = 0;

	if (fd < 0)
		return error_set_errno(error, FATE_FATAL, errno, "could not make %.150s", path);
	while (done < value.len) {
		ssize_t len = write(fd, value.data + done, value.len - done);
		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			break;
		done += (size_t)len;
	}
	int failed = done < value.len ? errno : 0;
	if (close(fd) != 0 && failed == 0)
		failed = errno;
	return failed == 0 ? FATE_OK : error_set_errno(error, FATE_FATAL, failed, "could not write %.150s", path);
}

static enum fate show(struct showing *showing, const struct letter *letter, struct error *error)
{
	const char *path = cli_value(showing->cli, "value");
	struct trial_result result;
	enum fate fate = FATE_OK;

	if (path != NULL && view_is_null(letter->value))
		return error_set(error, FATE_REJECT, ERR_NO, "--value %.100s: the value of this letter is null",
		                 path);
	if (path != NULL)
		fate = write_value(path, letter->value, error);
	if (fate != FATE_OK)
		return fate;
	if (letter->known)
		letter_try(&showing->trial, letter, &result);
	if (showing->cli->json)
		return show_json(letter, letter->known ? &result : NULL, error);
	show_text(showing, letter, letter->known ? &result : NULL);
	return FATE_OK;
}

static bool show_each(void *context, const struct letter *letter)
{
	struct showing *showing = context;

	return show(showing, letter, &showing->error) == FATE_OK;
}

int cmd_dead_letters_show(struct cli *cli)
{
	struct showing showing = { .cli = cli, .error = { .fate = FATE_OK } };
	struct error error = { .fate = FATE_OK };
	struct letter_place place;
	enum fate fate = letter_place_parse(cli_argument(cli, 0), &place, &error);

	buffer_init(&showing.out, TEXT_BYTES);
	if (fate == FATE_OK)
		fate = letter_trial_open(&showing.trial, cli, &error);
	if (fate == FATE_OK)
		fate = letters_at(cli, &place, 1, show_each, &showing, &error);
	if (fate == FATE_OK && showing.error.fate != FATE_OK)
		error = showing.error;
	letter_trial_close(&showing.trial);
	buffer_done(&showing.out);
	return error.fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
