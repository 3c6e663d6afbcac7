/* cmd_resumes.c - `fermata resumes`: what executors are given. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/person.h"
#include "cli/schemas.h"
#include "cli/screen.h"
#include "cli/topic_tail.h"
#include "schemas/json.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_BYTES ((size_t)1 << 30)

struct reading {
	struct cli *cli;
	struct schemas schemas;
	struct arena *arena;
	struct buffer out;
	size_t left; /* records still to be shown */
	size_t unreadable;
	struct error away; /* the registry, if it is: fate OK otherwise */
};

static void put_decisions(struct buffer *out, const struct resume_event *event)
{
	for (size_t i = 0; i < event->decisions_len; i++) {
		const struct resume_decision *decision = &event->decisions[i];
		buffer_printf(out, "    %s by ", decision_kind_name(decision->decision));
		put_person(out, &decision->decided_by);
		if (decision->reason.len > 0) {
			buffer_append_text(out, ": ");
			put_clean_lines(out, decision->reason, 6);
		}
		buffer_append_byte(out, '\n');
	}
}

static void put_edits(struct buffer *out, const struct edits *edits)
{
	if (!edits->present)
		return;
	for (size_t i = 0; i < edits->config_len; i++) {
		buffer_append_text(out, "    edited: ");
		put_clean(out, edits->config[i].key);
		buffer_append_text(out, " = ");
		put_config_value(out, &edits->config[i]);
		buffer_append_byte(out, '\n');
	}
	if (edits->action_arguments.data != NULL) {
		buffer_append_text(out, "    edited arguments: ");
		put_clean_lines(out, edits->action_arguments, 6);
		buffer_append_byte(out, '\n');
	}
}

static void put_resume(struct buffer *out, const struct resume_event *event, int64_t now)
{
	const struct suspend_event *suspend = &event->suspend;
	char when[96], id[UUID_TEXT_LEN + 1];

	uuid_format(&event->resume_id, id);
	buffer_printf(out, "%s  %s%s%s  %s", format_when(event->resumed_at, now, when, sizeof(when)),
	              colour_on(verdict_colour(event->verdict)), verdict_name(event->verdict),
	              colour_off(verdict_colour(event->verdict)), colour_on(COLOUR_BOLD));
	put_clean(out, suspend->session_id);
	buffer_printf(out, "%s  %s\n    ", colour_off(COLOUR_BOLD), id);
	put_clean(out, suspend->agent);
	buffer_append_byte(out, ' ');
	put_clean(out, suspend->agent_version);
	buffer_append_text(out, " goes on at ");
	put_clean(out, suspend->step.resume_at);
	buffer_printf(out, ", %zu entries of history; gate ", suspend->history_len);
	put_clean(out, suspend->gate.gate_id);
	buffer_append_text(out, ": ");
	put_clean(out, suspend->gate.title);
	buffer_append_byte(out, '\n');
	put_decisions(out, event);
	put_edits(out, &event->edits);
}

static enum fate show(struct reading *reading, const struct record *record, struct error *error)
{
	struct resume_event event;
	unsigned tries = 0;
	enum fate fate;

	do {
		schemas_header(&reading->schemas, record);
		fate = codec_take_resume(reading->schemas.codec, record->value, reading->arena, &event, error);
	} while (schemas_more(&reading->schemas, &tries, &fate, error));
	if (fate != FATE_OK)
		return fate;
	if (!reading->cli->json) {
		put_resume(&reading->out, &event, clock_real_us());
		screen_write(&reading->out);
		return FATE_OK;
	}
	fate = resume_to_json(&event, &reading->out, error);
	if (fate == FATE_OK)
		screen_write_json(&reading->out);
	return fate;
}

static bool each_record(void *context, const struct record *record)
{
	struct reading *reading = context;
	struct error error = { .fate = FATE_OK };

	arena_reset(reading->arena);
	if (show(reading, record, &error) == FATE_OK)
		return --reading->left > 0;
	buffer_reset(&reading->out);
	if (error.code == ERR_SERVICE) {
		reading->away = error;
		return false;
	}
	reading->unreadable++;
	cli_warn("%s, partition %" PRId32 ", offset %" PRId64 " is no resume that can be read: %s",
	         record->at.topic, record->at.partition, record->at.offset, error.message);
	return true;
}

static enum fate read_topics(struct reading *reading, struct error *error)
{
	struct topic_tail tail = { .cli = reading->cli,
		                       .follow = cli_given(reading->cli, "follow"),
		                       .each = each_record,
		                       .context = reading };
	enum fate fate = cli_number(reading->cli, "limit", SIZE_MAX, &reading->left, error);

	if (fate == FATE_OK)
		fate = schemas_open(reading->cli, NULL, &reading->schemas, error);
	tail.topics = config_resumes_topics(reading->cli->config, &tail.topics_len);
	if (fate == FATE_OK)
		fate = topic_tail_read(&tail, error);
	if (fate != FATE_OK || reading->away.fate == FATE_OK)
		return fate;
	*error = reading->away;
	return error->fate;
}

int cmd_resumes(struct cli *cli)
{
	struct reading reading = { .cli = cli, .arena = arena_new(TEXT_BYTES) };
	struct error error = { .fate = FATE_OK };
	enum fate fate;

	buffer_init(&reading.out, TEXT_BYTES);
	fate = reading.arena != NULL ? read_topics(&reading, &error)
	                             : error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for records");
	schemas_close(&reading.schemas);
	arena_free(reading.arena);
	buffer_done(&reading.out);
	if (fate != FATE_OK)
		return cli_fail(&error);
	return reading.unreadable > 0 ? EXIT_NO : EXIT_YES;
}
