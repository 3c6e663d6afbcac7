#include "cli/person.h"

#include "cli/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL_COLUMNS 12

void put_label(struct buffer *out, const char *label)
{
	buffer_printf(out, "%s%-*s%s", colour_on(COLOUR_DIM), LABEL_COLUMNS, label, colour_off(COLOUR_DIM));
}

static void put_coloured(struct buffer *out, enum colour colour, const char *text)
{
	buffer_printf(out, "%s%s%s", colour_on(colour), text, colour_off(colour));
}

static void put_line(struct buffer *out, const char *label, struct view text)
{
	if (text.len == 0)
		return;
	put_label(out, label);
	put_clean_lines(out, text, LABEL_COLUMNS);
	buffer_append_byte(out, '\n');
}

void put_person(struct buffer *out, const struct approver *by)
{
	put_clean(out, by->issuer);
	buffer_append_byte(out, ':');
	put_clean(out, by->subject);
	if (by->display.len > 0 && !view_equal(by->display, by->subject)) {
		buffer_append_text(out, " (");
		put_clean(out, by->display);
		buffer_append_byte(out, ')');
	}
}

/* ---- values ---- */

static void put_quoted(struct buffer *out, struct view text)
{
	buffer_append_byte(out, '"');
	put_clean(out, text);
	buffer_append_byte(out, '"');
}

/* As short as it can be and still the same double, and never mistaken for an integer. */
static void put_double(struct buffer *out, double value)
{
	char text[40];

	if (isnan(value) || isinf(value)) {
		buffer_append_text(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		double back = 0;
		if (sscanf(text, "%lf", &back) == 1 && memcmp(&back, &value, sizeof(back)) == 0)
			break;
	}
	buffer_append_text(out, text);
	if (strpbrk(text, ".e") == NULL)
		buffer_append_text(out, ".0");
}

void put_config_value(struct buffer *out, const struct config_entry *entry)
{
	switch (entry->kind) {
	case CONFIG_NULL:
		buffer_append_text(out, "null");
		break;
	case CONFIG_BOOLEAN:
		buffer_append_text(out, entry->value.boolean ? "true" : "false");
		break;
	case CONFIG_LONG:
		buffer_printf(out, "%" PRId64, entry->value.number);
		break;
	case CONFIG_DOUBLE:
		put_double(out, entry->value.real);
		break;
	case CONFIG_STRING:
		put_quoted(out, entry->value.string);
		break;
	case CONFIG_STRINGS:
		buffer_append_byte(out, '[');
		for (size_t i = 0; i < entry->value.strings.len; i++) {
			buffer_append_text(out, i > 0 ? ", " : "");
			put_quoted(out, entry->value.strings.items[i]);
		}
		buffer_append_byte(out, ']');
		break;
	}
}

/* ---- a row ---- */

static void put_time_line(struct buffer *out, const char *label, int64_t at, int64_t now)
{
	char when[96];

	put_label(out, label);
	buffer_append_text(out, format_when(at, now, when, sizeof(when)));
}

static void put_times(struct buffer *out, const struct checkpoint *row, int64_t now)
{
	put_time_line(out, "suspended", row->suspended_at, now);
	buffer_printf(out, ", suspend_seq %" PRId64 "\n", row->suspend_seq);
	if (row->expires_at != TIME_NONE) {
		put_time_line(out, "expires", row->expires_at, now);
		buffer_printf(out, ", then %s%s\n", on_expiry_name(row->on_expiry), row->held ? " (it is held)" : "");
	}
	if (row->has_verdict) {
		put_time_line(out, "decided", row->decided_at, now);
		buffer_append_text(out, ": ");
		put_coloured(out, verdict_colour(row->verdict), verdict_name(row->verdict));
		buffer_append_byte(out, '\n');
	}
	put_time_line(out, "changed", row->changed_at, now);
	buffer_append_byte(out, '\n');
}

static void put_lists(struct buffer *out, const struct checkpoint *row)
{
	if (row->approvers_len > 0) {
		put_label(out, "approvers");
		for (size_t i = 0; i < row->approvers_len; i++) {
			buffer_append_text(out, i > 0 ? ", " : "");
			put_clean(out, row->approvers[i]);
		}
		buffer_append_byte(out, '\n');
	}
	if (row->labels_len > 0) {
		put_label(out, "labels");
		for (size_t i = 0; i < row->labels_len; i++) {
			buffer_append_text(out, i > 0 ? ", " : "");
			put_clean(out, row->labels[i].key);
			buffer_append_byte(out, '=');
			put_clean(out, row->labels[i].value);
		}
		buffer_append_byte(out, '\n');
	}
}

static void put_digest(struct buffer *out, const struct checkpoint *row)
{
	put_label(out, "digest");
	for (size_t i = 0; i < DIGEST_LEN; i++)
		buffer_printf(out, "%02x", row->digest[i]);
	buffer_append_byte(out, '\n');
}

static void put_gate(struct buffer *out, const struct checkpoint *row, int64_t now)
{
	put_label(out, "session");
	put_clean(out, row->session_id);
	buffer_append_text(out, " of tenant ");
	put_clean(out, row->tenant);
	buffer_append_byte(out, '\n');
	put_line(out, "gate", row->gate_id);
	put_line(out, "title", row->title);
	put_label(out, "agent");
	put_clean(out, row->agent);
	buffer_append_byte(out, ' ');
	put_clean(out, row->agent_version);
	buffer_append_byte(out, '\n');
	if (row->has_risk) {
		put_label(out, "risk");
		put_coloured(out, risk_colour(row->risk), risk_name(row->risk));
		buffer_append_byte(out, '\n');
	}
	put_line(out, "asked by", row->requested_by);
	put_label(out, "approvals");
	buffer_printf(out, "%" PRId32 " of %" PRId32 "\n", row->approvals, row->required_approvals);
	put_lists(out, row);
	put_times(out, row, now);
	put_digest(out, row);
}

void person_checkpoint(struct buffer *out, const struct checkpoint *row, int64_t now)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	put_label(out, "checkpoint");
	buffer_printf(out, "%s%s%s  ", colour_on(COLOUR_BOLD), id, colour_off(COLOUR_BOLD));
	put_coloured(out, gate_state_colour(row->state), gate_state_name(row->state));
	buffer_append_byte(out, '\n');
	if (row->filled)
		put_gate(out, row, now);
	else
		put_line(out, "", view_of("decisions about it came, its suspend event has not"));
	put_line(out, "reason", row->reason);
	if (row->filled && !row->sealed.has_key)
		put_line(out, "erased", view_of("its key is gone: nothing can open its state any more"));
}

/* ---- a decision ---- */

static enum colour outcome_colour(enum outcome outcome)
{
	return outcome == OUTCOME_COUNTED   ? COLOUR_GREEN
	       : outcome == OUTCOME_REFUSED ? COLOUR_RED
	                                    : COLOUR_YELLOW;
}

void person_decision(struct buffer *out, const struct decision *decision, int64_t now)
{
	char when[96];

	buffer_printf(out, "%s  %-8s", format_when(decision->at.appended_at, now, when, sizeof(when)),
	              decision_kind_name(decision->kind));
	put_coloured(out, outcome_colour(decision->outcome), outcome_name(decision->outcome));
	buffer_append_text(out, "  by ");
	put_person(out, &decision->decided_by);
	buffer_append_text(out, " through ");
	put_clean(out, decision->source.system);
	buffer_append_text(out, decision->has_edits ? ", with edits\n" : "\n");
	if (decision->outcome_reason.len > 0) {
		buffer_append_text(out, "    refused: ");
		put_clean_lines(out, decision->outcome_reason, 4);
		buffer_append_byte(out, '\n');
	}
	if (decision->stated_reason.len > 0) {
		buffer_append_text(out, "    says: ");
		put_clean_lines(out, decision->stated_reason, 10);
		buffer_append_byte(out, '\n');
	}
}

/* ---- what an operator did ---- */

void person_audit(struct buffer *out, const struct audit_entry *entry, int64_t now)
{
	char when[96];

	buffer_printf(out, "%s  %s", format_when(entry->at, now, when, sizeof(when)), colour_on(COLOUR_BOLD));
	put_clean(out, entry->what);
	buffer_printf(out, "%s  by ", colour_off(COLOUR_BOLD));
	put_clean(out, entry->who);
	buffer_append_byte(out, '\n');
	if (entry->reason.len > 0) {
		buffer_append_text(out, "    says: ");
		put_clean_lines(out, entry->reason, 10);
		buffer_append_byte(out, '\n');
	}
	if (entry->details.len > 0) {
		buffer_append_text(out, "    then: ");
		put_clean_lines(out, entry->details, 10);
		buffer_append_byte(out, '\n');
	}
}

/* ---- what was sealed ---- */

static void put_step(struct buffer *out, const struct step *step)
{
	put_label(out, "step");
	put_clean(out, step->node);
	if (step->graph.len > 0) {
		buffer_append_text(out, " of ");
		put_clean(out, step->graph);
	}
	buffer_append_text(out, ", goes on at ");
	put_clean(out, step->resume_at);
	if (step->attempt > 0)
		buffer_printf(out, ", attempt %" PRId32, step->attempt);
	buffer_append_byte(out, '\n');
	for (size_t i = 0; i < step->path_len; i++) {
		if (i == 0)
			put_label(out, "path");
		buffer_append_text(out, i > 0 ? " > " : "");
		put_clean(out, step->path[i]);
	}
	buffer_append_text(out, step->path_len > 0 ? "\n" : "");
}

static void put_action(struct buffer *out, const struct action *action)
{
	if (!action->present)
		return;
	put_label(out, "action");
	put_clean(out, action->tool);
	buffer_append_text(out, ", risk ");
	put_coloured(out, risk_colour(action->risk), risk_name(action->risk));
	buffer_append_byte(out, '\n');
	put_line(out, "", action->summary);
	put_line(out, "arguments", action->arguments);
}

static void put_entry(struct buffer *out, size_t number, const struct history_entry *entry)
{
	buffer_printf(out, "%4zu  %s%-6s%s ", number, colour_on(COLOUR_BOLD), role_name(entry->role),
	              colour_off(COLOUR_BOLD));
	if (entry->name.len > 0) {
		put_clean(out, entry->name);
		buffer_append_text(out, ": ");
	}
	put_clean_lines(out, entry->content, 13);
	buffer_append_byte(out, '\n');
	for (size_t i = 0; i < entry->tool_calls_len; i++) {
		buffer_append_text(out, "             calls ");
		put_clean(out, entry->tool_calls[i].name);
		buffer_append_byte(out, ' ');
		put_clean_lines(out, entry->tool_calls[i].arguments, 13);
		buffer_append_byte(out, '\n');
	}
}

void person_history(struct buffer *out, const struct suspend_event *event)
{
	put_label(out, "history");
	buffer_printf(out, "%zu entries\n", event->history_len);
	for (size_t i = 0; i < event->history_len; i++)
		put_entry(out, i + 1, &event->history[i]);
}

static void put_maps(struct buffer *out, const struct suspend_event *event)
{
	for (size_t i = 0; i < event->config_len; i++) {
		put_label(out, i == 0 ? "config" : "");
		put_clean(out, event->config[i].key);
		buffer_append_text(out, " = ");
		put_config_value(out, &event->config[i]);
		buffer_append_byte(out, '\n');
	}
	for (size_t i = 0; i < event->tool_permissions_len; i++) {
		put_label(out, i == 0 ? "tools" : "");
		put_clean(out, event->tool_permissions[i].tool);
		buffer_printf(out, ": %s\n", permission_name(event->tool_permissions[i].permission));
	}
}

void person_suspend(struct buffer *out, const struct suspend_event *event)
{
	put_step(out, &event->step);
	put_action(out, &event->gate.action);
	person_history(out, event);
	put_maps(out, event);
	if (event->state.present) {
		put_label(out, "state");
		put_clean(out, event->state.schema);
		buffer_printf(out, ", %s, %zu bytes\n", encoding_name(event->state.encoding), event->state.body.len);
	}
}
