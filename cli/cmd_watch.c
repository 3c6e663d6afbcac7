/* cmd_watch.c - `fermata watch`: the gates as they change. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/person.h"
#include "cli/row_json.h"
#include "cli/schemas.h"
#include "cli/screen.h"
#include "cli/seen.h"
#include "cli/topic_tail.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_BYTES ((size_t)1 << 30)

struct watching {
	struct cli *cli;
	struct schemas schemas;
	struct error away; /* the registry, if it is: fate OK otherwise */
	struct arena *arena;
	struct seen seen;
	struct buffer out;
};

static void put_gate(struct buffer *out, const struct gate_event *event)
{
	char id[UUID_TEXT_LEN + 1], clock[48], when[48];
	enum colour colour = gate_state_colour(event->state);
	int64_t now = clock_real_us();

	uuid_format(&event->checkpoint_id, id);
	buffer_printf(out, "%s  %s  %s%-11s%s  %s", format_clock(event->at, clock, sizeof(clock)), id,
	              colour_on(colour), gate_state_name(event->state), colour_off(colour),
	              colour_on(COLOUR_BOLD));
	put_clean(out, event->session_id);
	buffer_printf(out, "%s  ", colour_off(COLOUR_BOLD));
	put_clean(out, event->gate_id);
	buffer_append_text(out, ": ");
	put_clean(out, event->title);
	if (event->has_risk)
		buffer_printf(out, "  %s%s%s", colour_on(risk_colour(event->risk)), risk_name(event->risk),
		              colour_off(risk_colour(event->risk)));
	if (event->state == GATE_PENDING) {
		buffer_printf(out, "  %" PRId32 " of %" PRId32 " approvals", event->approvals,
		              event->required_approvals);
		if (event->expires_at != TIME_NONE)
			buffer_printf(out, ", expires %s", format_ago(event->expires_at, now, when, sizeof(when)));
	}
	if (event->reason.len > 0) {
		buffer_append_text(out, "  ");
		put_clean(out, event->reason);
	}
	buffer_append_byte(out, '\n');
}

/* The checkpoint was purged or erased: the key is all that there is. */
static enum fate show_tombstone(struct watching *watching, struct view key, struct error *error)
{
	struct json_line *line;

	if (watching->cli->json) {
		line = json_line_new();
		json_line_text(line, "checkpoint_id", key);
		json_line_text(line, "state", VIEW_NULL);
		return json_line_write(line, error);
	}
	char clock[48];
	buffer_printf(&watching->out, "%s  ", format_clock(clock_real_us(), clock, sizeof(clock)));
	put_clean(&watching->out, key);
	buffer_append_text(&watching->out, "  gone: purged or erased\n");
	return FATE_OK;
}

static enum fate show(struct watching *watching, const struct record *record, struct error *error)
{
	struct gate_event event;
	unsigned tries = 0;
	enum fate fate;

	if (record->value.data == NULL)
		return show_tombstone(watching, record->key, error);
	do {
		schemas_header(&watching->schemas, record);
		fate = codec_take_gate(watching->schemas.codec, record->value, watching->arena, &event, error);
	} while (schemas_more(&watching->schemas, &tries, &fate, error));
	if (fate != FATE_OK || !seen_raise(&watching->seen, &event.checkpoint_id, event.version))
		return fate;
	if (!watching->cli->json) {
		put_gate(&watching->out, &event);
		return FATE_OK;
	}
	fate = gate_to_json(&event, &watching->out, error);
	if (fate == FATE_OK)
		screen_write_json(&watching->out);
	return fate;
}

static bool each_record(void *context, const struct record *record)
{
	struct watching *watching = context;
	struct error error = { .fate = FATE_OK };

	arena_reset(watching->arena);
	if (show(watching, record, &error) == FATE_OK) {
		screen_write(&watching->out);
		return true;
	}
	buffer_reset(&watching->out);
	if (error.code == ERR_SERVICE) {
		watching->away = error;
		return false;
	}
	cli_warn("%s, partition %" PRId32 ", offset %" PRId64 " is no gate event that can be read: %s",
	         record->at.topic, record->at.partition, record->at.offset, error.message);
	return true;
}

static enum fate watch(struct watching *watching, struct error *error)
{
	const char *topic = config_text(watching->cli->config, PARAM_TOPICS_GATES);
	struct topic_tail tail = { .cli = watching->cli,
		                       .topics = &topic,
		                       .topics_len = 1,
		                       .from_now = !cli_given(watching->cli, "from-start"),
		                       .follow = true,
		                       .each = each_record,
		                       .context = watching };
	enum fate fate = schemas_open(watching->cli, NULL, &watching->schemas, error);

	if (fate == FATE_OK)
		fate = topic_tail_read(&tail, error);
	if (fate != FATE_OK || watching->away.fate == FATE_OK)
		return fate;
	*error = watching->away;
	return error->fate;
}

int cmd_watch(struct cli *cli)
{
	struct watching watching = { .cli = cli, .arena = arena_new(TEXT_BYTES) };
	struct error error = { .fate = FATE_OK };
	enum fate fate;

	buffer_init(&watching.out, TEXT_BYTES);
	fate = watching.arena != NULL ? watch(&watching, &error)
	                              : error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for records");
	schemas_close(&watching.schemas);
	arena_free(watching.arena);
	buffer_done(&watching.out);
	seen_done(&watching.seen);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
