/* cmd_suspend.c - `fermata suspend`: lines of JSON become suspend events. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/event_headers.h"
#include "cli/lines.h"
#include "cli/row_json.h"
#include "cli/schemas.h"
#include "cli/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_FLIGHT   1024
#define ARENA_BYTES ((size_t)1 << 30)

enum progress { PROGRESS_SENT, PROGRESS_DURABLE, PROGRESS_FAILED };

/* A record between its line and the word of Kafka. */
struct sent {
	size_t line;
	char key[UUID_TEXT_LEN + 1];   /* lower case */
	char shown[UUID_TEXT_LEN + 1]; /* as it was given */
	char *session_id;              /* owned; only for --json */
	enum progress progress;
	struct error error;
};

struct sender {
	struct cli *cli;
	const char *topic;
	struct producer *producer;
	struct schemas schemas;
	struct arena *arena;
	struct buffer value;
	struct lines lines;
	struct sent *ring; /* of IN_FLIGHT, in the order of the lines */
	size_t head, len;
	int code; /* the exit code so far */
};

/* Kafka away is worse than a bad line. */
static void remember_failure(struct sender *sender, size_t line, struct error *error)
{
	int code;

	if (kafka_away(sender->cli, error) != FATE_OK)
		(void)error_wrap(error, "line %zu", line);
	code = cli_fail(error);
	code = code == EXIT_USAGE ? EXIT_NO : code;
	if (code > sender->code)
		sender->code = code;
}

static void on_report(void *context, const struct outgoing *sent, int64_t offset, const struct error *error)
{
	struct sent *item = sent->tag;

	(void)context;
	(void)offset;
	item->progress = error == NULL ? PROGRESS_DURABLE : PROGRESS_FAILED;
	if (error != NULL)
		item->error = *error;
}

/* ---- what Kafka has said ---- */

static void print_durable(struct sender *sender, const struct sent *item)
{
	struct error error = { .fate = FATE_OK };
	bool written = true;
	int code;

	if (!sender->cli->json) {
		printf("%s\n", item->shown);
	} else {
		struct json_line *line = json_line_new();
		json_line_text(line, "checkpoint_id", view_of(item->shown));
		json_line_text(line, "session_id", view_of(item->session_id));
		written = json_line_write(line, &error) == FATE_OK;
	}
	code = cli_sent(written, "checkpoint", item->shown); /* at once: who waits for the id may be a program */
	if (code > sender->code)
		sender->code = code;
}

/* Prints, in the order of the lines, what is settled. */
static void print_settled(struct sender *sender)
{
	while (sender->len > 0 && sender->ring[sender->head].progress != PROGRESS_SENT) {
		struct sent *item = &sender->ring[sender->head];
		if (item->progress == PROGRESS_DURABLE)
			print_durable(sender, item);
		else
			remember_failure(sender, item->line, &item->error);
		free(item->session_id);
		*item = (struct sent){ 0 };
		sender->head = (sender->head + 1) % IN_FLIGHT;
		sender->len--;
	}
}

static void wait_for_kafka(struct sender *sender, int timeout_ms)
{
	producer_poll(sender->producer, timeout_ms);
	print_settled(sender);
}

/* ---- one line ---- */

static void warn_conflict(size_t line, const struct suspend_filled *filled)
{
	if (!filled->checkpoint_id && (filled->salt || filled->suspended_at))
		cli_warn(
			"line %zu: checkpoint_id is given without %s: sent again it would be other bytes under the same "
			"id, a conflict; give both, or neither",
			line,
			filled->salt && filled->suspended_at ? "salt and suspended_at"
			: filled->salt                       ? "salt"
												 : "suspended_at");
}

static enum fate hand_over(struct sender *sender, const struct suspend_event *event, struct sent *item,
                           struct error *error)
{
	struct event_headers headers;
	struct outgoing outgoing = {
		.topic = sender->topic,
		.partition = PARTITION_BY_KEY,
		.key = view_of(item->key),
		.value = buffer_view(&sender->value),
		.timestamp_us = TIME_NONE,
		.tag = item,
	};
	int64_t until = clock_mono_ms() + 3 * KAFKA_PATIENCE_MS;
	enum fate fate;

	event_headers_fill(&headers, &event->checkpoint_id, "fermata.v1.SuspendEvent", event->suspended_at);
	outgoing.headers = headers.list;
	outgoing.headers_len = headers.len;
	while ((fate = producer_send(sender->producer, &outgoing, error)) == FATE_RETRY &&
	       clock_mono_ms() < until)
		producer_poll(sender->producer, 100);
	return fate;
}

/* A free place behind those that are under way. Waits for the oldest when there is none. */
static struct sent *next_place(struct sender *sender)
{
	while (sender->len == IN_FLIGHT)
		wait_for_kafka(sender, 100);
	return &sender->ring[(sender->head + sender->len) % IN_FLIGHT];
}

static enum fate send_event(struct sender *sender, const struct suspend_event *event, size_t line,
                            struct error *error)
{
	struct sent *item = next_place(sender);
	enum fate fate;

	buffer_reset(&sender->value);
	fate = codec_put_suspend(sender->schemas.codec, event, &sender->value, error);
	if (fate != FATE_OK)
		return fate;
	*item = (struct sent){ .line = line };
	uuid_format(&event->checkpoint_id, item->key);
	memcpy(item->shown, event->checkpoint_id_text.data, UUID_TEXT_LEN);
	if (sender->cli->json)
		item->session_id = strndup((const char *)event->session_id.data, event->session_id.len);
	fate = hand_over(sender, event, item, error);
	if (fate == FATE_OK)
		sender->len++;
	else
		free(item->session_id);
	return fate;
}

static bool is_blank(struct view line)
{
	for (size_t i = 0; i < line.len; i++)
		if (strchr(" \t\r", line.data[i]) == NULL || line.data[i] == '\0')
			return false;
	return true;
}

static void take_line(struct sender *sender, struct view line)
{
	struct error error = { .fate = FATE_OK };
	struct suspend_event event;
	struct suspend_filled filled;
	size_t number = sender->lines.number;
	enum fate fate;

	if (is_blank(line))
		return;
	arena_reset(sender->arena);
	fate = suspend_from_json(line, sender->arena, &event, &filled, &error);
	if (fate == FATE_OK)
		fate = send_event(sender, &event, number, &error);
	if (fate == FATE_OK)
		warn_conflict(number, &filled);
	else
		remember_failure(sender, number, &error);
}

/* ---- all lines ---- */

static void say_too_long(struct sender *sender)
{
	struct error error;

	(void)error_set(&error, FATE_REJECT, ERR_TOO_LARGE,
	                "the line has more than %zu bytes: a record may have limits.record_bytes",
	                sender->lines.ceiling);
	remember_failure(sender, sender->lines.number, &error);
}

static int send_all(struct sender *sender)
{
	struct error error = { .fate = FATE_OK };
	enum lines_event event;
	struct view line;

	while ((event = lines_next(&sender->lines, sender->len > 0 ? 0 : -1, &line)) != LINES_END) {
		if (event == LINES_FAILED) {
			(void)error_set_errno(&error, FATE_FATAL, errno, "could not read the input");
			sender->code = cli_fail(&error);
			break;
		}
		if (event == LINES_LINE)
			take_line(sender, line);
		else if (event == LINES_TOO_LONG)
			say_too_long(sender);
		wait_for_kafka(sender, event == LINES_NOTHING ? 5 : 0);
	}
	while (sender->len > 0)
		wait_for_kafka(sender, 100);
	return sender->code;
}

/* A byte of the record may take six characters of JSON. */
static size_t line_bytes(const struct config *config)
{
	return 6 * (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + 65536;
}

static enum fate open_input(struct sender *sender, struct error *error)
{
	const char *file = cli_argument(sender->cli, 0);
	int fd = STDIN_FILENO;
	struct stat facts;

	if (file != NULL && strcmp(file, "-") != 0)
		fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		(void)error_set_errno(error, FATE_FATAL, errno, "could not open %s", file);
		error->code = ERR_USAGE;
		return FATE_FATAL;
	}
	if (fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode)) {
		if (fd != STDIN_FILENO)
			close(fd);
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "%s is a directory: give a file with one JSON object a line, or - for stdin",
		                 fd != STDIN_FILENO ? file : "standard input");
	}
	lines_init(&sender->lines, fd, line_bytes(sender->cli->config));
	return FATE_OK;
}

static enum fate open_sender(struct sender *sender, struct error *error)
{
	sender->topic = config_text(sender->cli->config, PARAM_TOPICS_SUSPENDS);
	sender->arena = arena_new(ARENA_BYTES);
	sender->ring = calloc(IN_FLIGHT, sizeof(*sender->ring));
	/* More than the codec lets pass, so that it is the codec that says what the limit is. */
	buffer_init(&sender->value, line_bytes(sender->cli->config));
	if (sender->arena == NULL || sender->ring == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the records");
	if (open_input(sender, error) != FATE_OK ||
	    schemas_open(sender->cli, NULL, &sender->schemas, error) != FATE_OK ||
	    schemas_write(&sender->schemas, RECORD_SUSPEND, sender->topic, error) != FATE_OK)
		return error->fate;
	return connect_producer(sender->cli, sender->topic, on_report, sender, &sender->producer, error);
}

static void close_sender(struct sender *sender)
{
	producer_close(sender->producer);
	schemas_close(&sender->schemas);
	arena_free(sender->arena);
	buffer_done(&sender->value);
	if (sender->lines.fd > STDIN_FILENO)
		close(sender->lines.fd);
	lines_done(&sender->lines);
	free(sender->ring);
}

int cmd_suspend(struct cli *cli)
{
	struct sender sender = { .cli = cli };
	struct error error = { .fate = FATE_OK };
	int code;

	signal(SIGPIPE, SIG_IGN); /* a reader of ids that goes away is no reason to leave records in mid-air */
	if (isatty(STDIN_FILENO) && cli_argument(cli, 0) == NULL)
		cli_warn("reading suspend events from the terminal, one JSON object a line; Ctrl-D ends");
	code = open_sender(&sender, &error) == FATE_OK ? send_all(&sender) : cli_fail(&error);
	close_sender(&sender);
	return code;
}
