/*
 * contract_tool - our codec for the tests in Python.
 *
 *     contract_tool write SEED COUNT   prints COUNT random records of each kind: TYPE, the value in hex, and
 *                                      its listing, with tabs between
 *     contract_tool read               reads lines of TYPE, a tab and the value in hex; prints for each its
 *                                      listing, or "!", the code and the message with tabs between
 */
#include "schemas/codec.h"
#include "schemas/json.h"
#include "tests/contract/random_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

union event {
	struct suspend_event suspend;
	struct approval_event approval;
	struct resume_event resume;
	struct gate_event gate;
};

static const char *const names[] = { "SuspendEvent", "ApprovalEvent", "ResumeEvent", "GateEvent" };

static struct codec *codec;
static struct arena *arena;

static enum fate take(enum record_type type, struct view value, union event *event, struct error *error)
{
	struct view body;

	switch (type) {
	case RECORD_SUSPEND:
		return codec_take_suspend(codec, value, arena, &event->suspend, &body, error);
	case RECORD_APPROVAL:
		return codec_take_approval(codec, value, arena, &event->approval, &body, error);
	case RECORD_RESUME:
		return codec_take_resume(codec, value, arena, &event->resume, error);
	case RECORD_GATE:
		return codec_take_gate(codec, value, arena, &event->gate, error);
	}
	return FATE_FATAL;
}

static enum fate print(enum record_type type, const union event *event, struct buffer *out,
                       struct error *error)
{
	switch (type) {
	case RECORD_SUSPEND:
		return suspend_to_json(&event->suspend, out, error);
	case RECORD_APPROVAL:
		return approval_to_json(&event->approval, out, error);
	case RECORD_RESUME:
		return resume_to_json(&event->resume, out, error);
	case RECORD_GATE:
		return gate_to_json(&event->gate, out, error);
	}
	return FATE_FATAL;
}

static enum fate make_resume(struct dice *dice, struct resume_event *event, struct buffer *out,
                             struct error *error)
{
	struct buffer suspend;

	random_resume(dice, event);
	buffer_init(&suspend, SIZE_MAX);
	enum fate fate = codec_put_suspend(codec, &event->suspend, &suspend, error);
	if (fate == FATE_OK)
		fate =
			codec_put_resume(codec, event, (struct view){ suspend.data + 10, suspend.len - 10 }, out, error);
	buffer_done(&suspend);
	return fate;
}

static enum fate make(enum record_type type, struct dice *dice, union event *event, struct buffer *out,
                      struct error *error)
{
	switch (type) {
	case RECORD_SUSPEND:
		random_suspend(dice, &event->suspend);
		return codec_put_suspend(codec, &event->suspend, out, error);
	case RECORD_APPROVAL:
		random_approval(dice, &event->approval);
		return codec_put_approval(codec, &event->approval, out, error);
	case RECORD_RESUME:
		return make_resume(dice, &event->resume, out, error);
	case RECORD_GATE:
		random_gate(dice, &event->gate);
		return codec_put_gate(codec, &event->gate, out, error);
	}
	return FATE_FATAL;
}

static void die(const struct error *error)
{
	fprintf(stderr, "contract_tool: %s\n", error->message);
	exit(1);
}

static void write_one(enum record_type type, struct dice *dice)
{
	struct error error;
	union event event;
	struct buffer value, line;

	buffer_init(&value, SIZE_MAX);
	buffer_init(&line, SIZE_MAX);
	if (make(type, dice, &event, &value, &error) != FATE_OK || print(type, &event, &line, &error) != FATE_OK)
		die(&error);
	printf("%s\t", names[type]);
	for (size_t i = 0; i < value.len; i++)
		printf("%02x", value.data[i]);
	printf("\t%.*s\n", (int)line.len, (const char *)line.data);
	buffer_done(&value);
	buffer_done(&line);
	arena_reset(arena);
}

/* In place; gives the number of bytes. */
static size_t unhex(char *text)
{
	size_t len = 0;

	for (unsigned byte; sscanf(text + 2 * len, "%2x", &byte) == 1; len++)
		text[len] = (char)byte;
	return len;
}

static void read_one(char *line)
{
	struct error error;
	union event event;
	struct buffer out;
	char *hex = strchr(line, '\t');
	int type = 0;

	while (type < RECORD_GATE && strncmp(line, names[type], (size_t)(hex - line)) != 0)
		type++;
	struct view value = { (uint8_t *)hex + 1, unhex(hex + 1) };
	buffer_init(&out, SIZE_MAX);
	if (take((enum record_type)type, value, &event, &error) != FATE_OK)
		printf("!\t%s\t%s\n", error_code_name(error.code), error.message);
	else if (print((enum record_type)type, &event, &out, &error) != FATE_OK)
		die(&error);
	else
		printf("%.*s\n", (int)out.len, (const char *)out.data);
	buffer_done(&out);
	arena_reset(arena);
}

static int read_all(void)
{
	char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, stdin) > 0) {
		if (strchr(line, '\t'))
			read_one(line);
	}
	free(line);
	return 0;
}

static int write_all(uint64_t seed, unsigned long count)
{
	struct dice dice = { seed, arena };

	for (unsigned long i = 0; i < count; i++) {
		for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++)
			write_one((enum record_type)type, &dice);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct error error;
	struct codec_settings settings = { 0 };
	int code = 2;

	arena = arena_new((size_t)256 << 20);
	if (!arena || codec_new(&codec, &settings, &error) != FATE_OK)
		return 70;
	if (argc == 2 && strcmp(argv[1], "read") == 0)
		code = read_all();
	else if (argc == 4 && strcmp(argv[1], "write") == 0)
		code = write_all(strtoull(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	codec_free(codec);
	arena_free(arena);
	return code;
}
