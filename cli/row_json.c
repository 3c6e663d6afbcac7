#include "cli/row_json.h"

#include "cli/screen.h"

#define LINE_MAX_BYTES ((size_t)256 << 20)

static void put_id(struct json_line *line, const char *name, const struct uuid *id)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(id, text);
	json_line_text(line, name, view_of(text));
}

/* Until the suspend event came there is nothing, which is not the empty string. */
static struct view known(const struct checkpoint *row, struct view text)
{
	return row->filled ? text : VIEW_NULL;
}

static void put_gate(struct json_line *line, const struct checkpoint *row)
{
	json_line_text(line, "session_id", known(row, row->session_id));
	json_line_text(line, "gate_id", known(row, row->gate_id));
	json_line_text(line, "tenant", known(row, row->tenant));
	json_line_text(line, "agent", known(row, row->agent));
	json_line_text(line, "agent_version", known(row, row->agent_version));
	json_line_text(line, "title", known(row, row->title));
	json_line_text(line, "risk", row->filled && row->has_risk ? view_of(risk_name(row->risk)) : VIEW_NULL);
	json_line_text(line, "requested_by", known(row, row->requested_by));
	if (!row->filled)
		return;
	json_line_number(line, "required_approvals", row->required_approvals);
	json_line_texts(line, "approvers", row->approvers, row->approvers_len);
	json_line_map(line, "labels", row->labels, row->labels_len);
	json_line_number(line, "suspend_seq", row->suspend_seq);
	json_line_number(line, "suspended_at", row->suspended_at); /* always one: any long is a time here */
	json_line_time(line, "appended_at", row->appended_at);
	json_line_time(line, "expires_at", row->expires_at);
	json_line_text(line, "on_expiry", view_of(on_expiry_name(row->on_expiry)));
	json_line_bytes(line, "digest", (struct view){ row->digest, DIGEST_LEN });
}

void row_json_checkpoint(struct json_line *line, const struct checkpoint *row)
{
	put_id(line, "checkpoint_id", &row->id);
	json_line_text(line, "state", view_of(gate_state_name(row->state)));
	put_gate(line, row);
	json_line_number(line, "approvals", row->approvals);
	json_line_text(line, "verdict", row->has_verdict ? view_of(verdict_name(row->verdict)) : VIEW_NULL);
	json_line_time(line, "decided_at", row->decided_at);
	json_line_text(line, "reason", row->reason);
	json_line_time(line, "at", row->changed_at);
	json_line_number(line, "version", row->version);
	json_line_flag(line, "held", row->held);
	json_line_flag(line, "erased", row->filled && !row->sealed.has_key);
}

/* {"issuer":…,"subject":…,"display":…} as a member. */
static enum fate put_approver(struct json_line *line, const struct approver *by, struct error *error)
{
	struct json_line *inner = json_line_new();
	struct buffer out;
	enum fate fate;

	buffer_init(&out, LINE_MAX_BYTES);
	json_line_text(inner, "issuer", by->issuer);
	json_line_text(inner, "subject", by->subject);
	json_line_text(inner, "display", by->display);
	fate = json_line_end(inner, &out, error);
	if (fate == FATE_OK)
		json_line_raw(line, "decided_by", buffer_view(&out));
	buffer_done(&out);
	return fate;
}

static enum fate put_source(struct json_line *line, const struct source *source, struct error *error)
{
	struct json_line *inner = json_line_new();
	struct buffer out;
	enum fate fate;

	buffer_init(&out, LINE_MAX_BYTES);
	json_line_text(inner, "system", source->system);
	json_line_text(inner, "ref", source->ref);
	json_line_text(inner, "delivery_id", source->delivery_id);
	fate = json_line_end(inner, &out, error);
	if (fate == FATE_OK)
		json_line_raw(line, "source", buffer_view(&out));
	buffer_done(&out);
	return fate;
}

enum fate row_json_decision(const struct decision *decision, struct buffer *out, struct error *error)
{
	struct json_line *line = json_line_new();
	enum fate fate, end;

	json_line_text(line, "decision_id", decision->id_text);
	put_id(line, "checkpoint_id", &decision->checkpoint_id);
	json_line_text(line, "decision", view_of(decision_kind_name(decision->kind)));
	fate = put_approver(line, &decision->decided_by, error);
	json_line_number(line, "decided_at", decision->decided_at);
	json_line_text(line, "reason", decision->stated_reason);
	json_line_flag(line, "has_edits", decision->has_edits);
	json_line_bytes(line, "checkpoint_digest",
	                decision->has_digest ? (struct view){ decision->checkpoint_digest, DIGEST_LEN }
	                                     : VIEW_NULL);
	if (fate == FATE_OK)
		fate = put_source(line, &decision->source, error);
	json_line_text(line, "outcome", view_of(outcome_name(decision->outcome)));
	json_line_text(line, "outcome_reason", decision->outcome_reason);
	json_line_time(line, "at", decision->at.appended_at);
	json_line_text(line, "topic", view_of(decision->at.topic));
	json_line_number(line, "partition", decision->at.partition);
	json_line_number(line, "offset", decision->at.offset);
	end = json_line_end(line, out, error);
	return fate != FATE_OK ? fate : end;
}

enum fate row_json_decisions(struct decision *const *decisions, size_t len, struct buffer *out,
                             struct error *error)
{
	buffer_append_byte(out, '[');
	for (size_t i = 0; i < len; i++) {
		if (i > 0)
			buffer_append_byte(out, ',');
		enum fate fate = row_json_decision(decisions[i], out, error);
		if (fate != FATE_OK)
			return fate;
	}
	buffer_append_byte(out, ']');
	return buffer_failed(out) ? error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a line of JSON")
	                          : FATE_OK;
}

enum fate row_json_audit(const struct audit_entry *entry, struct buffer *out, struct error *error)
{
	struct json_line *line = json_line_new();

	if (entry->has_checkpoint)
		put_id(line, "checkpoint_id", &entry->checkpoint_id);
	json_line_text(line, "what", entry->what);
	json_line_text(line, "who", entry->who);
	json_line_text(line, "reason", entry->reason);
	json_line_text(line, "details", entry->details);
	json_line_time(line, "at", entry->at);
	return json_line_end(line, out, error);
}

enum fate row_json_audits(const struct audit_entry *entries, size_t len, struct buffer *out,
                          struct error *error)
{
	enum fate fate = FATE_OK;

	buffer_append_byte(out, '[');
	for (size_t i = 0; fate == FATE_OK && i < len; i++) {
		if (i > 0)
			buffer_append_byte(out, ',');
		fate = row_json_audit(&entries[i], out, error);
	}
	buffer_append_byte(out, ']');
	if (fate == FATE_OK && buffer_failed(out))
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a line of JSON");
	return fate;
}

enum fate json_line_write(struct json_line *line, struct error *error)
{
	struct buffer out;
	enum fate fate;

	buffer_init(&out, LINE_MAX_BYTES);
	fate = json_line_end(line, &out, error);
	if (fate == FATE_OK)
		screen_write_json(&out);
	buffer_done(&out);
	return fate;
}
