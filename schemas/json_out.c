/* The records as JSON: names and order of the fields are the schemas'. */
#include "schemas/json.h"
#include "schemas/json_write.h"

static void member_text(struct json_writer *w, const char *name, struct view text)
{
	json_name(w, name);
	json_text(w, text);
}

static void member_word(struct json_writer *w, const char *name, const char *word)
{
	member_text(w, name, view_of(word));
}

static void member_number(struct json_writer *w, const char *name, int64_t number)
{
	json_name(w, name);
	json_number(w, number);
}

static void member_time(struct json_writer *w, const char *name, int64_t time)
{
	json_name(w, name);
	json_time(w, time);
}

static void member_bytes(struct json_writer *w, const char *name, struct view bytes)
{
	json_name(w, name);
	json_bytes(w, bytes);
}

static void write_texts(struct json_writer *w, const struct view *texts, size_t len)
{
	json_open(w, '[');
	for (size_t i = 0; i < len; i++)
		json_text(w, texts[i]);
	json_close(w, ']');
}

static void member_texts(struct json_writer *w, const char *name, const struct view *texts, size_t len)
{
	json_name(w, name);
	write_texts(w, texts, len);
}

/* As it was sent, or from its bytes. */
static void member_uuid(struct json_writer *w, const char *name, struct view text, const struct uuid *uuid)
{
	char room[UUID_TEXT_LEN + 1];

	if (view_is_null(text)) {
		uuid_format(uuid, room);
		text = view_of(room);
	}
	member_text(w, name, text);
}

static void write_config_value(struct json_writer *w, const struct config_entry *entry)
{
	switch (entry->kind) {
	case CONFIG_NULL:
		json_word(w, "null");
		return;
	case CONFIG_BOOLEAN:
		json_word(w, entry->value.boolean ? "true" : "false");
		return;
	case CONFIG_LONG:
		json_number(w, entry->value.number);
		return;
	case CONFIG_DOUBLE:
		json_double(w, entry->value.real);
		return;
	case CONFIG_STRING:
		json_text(w, entry->value.string);
		return;
	case CONFIG_STRINGS:
		write_texts(w, entry->value.strings.items, entry->value.strings.len);
		return;
	}
}

static void member_config(struct json_writer *w, const struct config_entry *config, size_t len)
{
	json_name(w, "config");
	json_open(w, '{');
	for (size_t i = 0; i < len; i++) {
		json_name_view(w, config[i].key);
		write_config_value(w, &config[i]);
	}
	json_close(w, '}');
}

static void member_step(struct json_writer *w, const struct step *step)
{
	json_name(w, "step");
	json_open(w, '{');
	member_text(w, "graph", step->graph);
	member_text(w, "node", step->node);
	member_text(w, "resume_at", step->resume_at);
	member_texts(w, "path", step->path, step->path_len);
	member_number(w, "attempt", step->attempt);
	json_close(w, '}');
}

static void write_entry(struct json_writer *w, const struct history_entry *entry)
{
	json_open(w, '{');
	member_word(w, "role", role_name(entry->role));
	member_text(w, "content", entry->content);
	member_text(w, "name", entry->name);
	member_text(w, "tool_call_id", entry->tool_call_id);
	json_name(w, "tool_calls");
	json_open(w, '[');
	for (size_t i = 0; i < entry->tool_calls_len; i++) {
		json_open(w, '{');
		member_text(w, "id", entry->tool_calls[i].id);
		member_text(w, "name", entry->tool_calls[i].name);
		member_text(w, "arguments", entry->tool_calls[i].arguments);
		json_close(w, '}');
	}
	json_close(w, ']');
	member_time(w, "at", entry->at);
	json_close(w, '}');
}

static void member_history(struct json_writer *w, const struct suspend_event *event)
{
	json_name(w, "history");
	json_open(w, '[');
	for (size_t i = 0; i < event->history_len; i++)
		write_entry(w, &event->history[i]);
	json_close(w, ']');
}

static void member_permissions(struct json_writer *w, const struct suspend_event *event)
{
	json_name(w, "tool_permissions");
	json_open(w, '{');
	for (size_t i = 0; i < event->tool_permissions_len; i++) {
		json_name_view(w, event->tool_permissions[i].tool);
		json_text(w, view_of(permission_name(event->tool_permissions[i].permission)));
	}
	json_close(w, '}');
}

static void member_state(struct json_writer *w, const struct app_state *state)
{
	json_name(w, "state");
	if (!state->present) {
		json_word(w, "null");
		return;
	}
	json_open(w, '{');
	member_text(w, "schema", state->schema);
	member_word(w, "encoding", encoding_name(state->encoding));
	member_bytes(w, "fingerprint", state->fingerprint);
	member_bytes(w, "body", state->body);
	json_close(w, '}');
}

static void member_action(struct json_writer *w, const struct action *action)
{
	json_name(w, "action");
	if (!action->present) {
		json_word(w, "null");
		return;
	}
	json_open(w, '{');
	member_text(w, "tool", action->tool);
	member_text(w, "arguments", action->arguments);
	member_word(w, "risk", risk_name(action->risk));
	member_text(w, "summary", action->summary);
	json_close(w, '}');
}

static void member_gate(struct json_writer *w, const struct gate *gate)
{
	json_name(w, "gate");
	json_open(w, '{');
	member_text(w, "gate_id", gate->gate_id);
	member_text(w, "title", gate->title);
	member_action(w, &gate->action);
	member_text(w, "requested_by", gate->requested_by);
	member_number(w, "required_approvals", gate->required_approvals);
	member_texts(w, "approvers", gate->approvers, gate->approvers_len);
	member_time(w, "expires_at", gate->expires_at);
	member_word(w, "on_expiry", on_expiry_name(gate->on_expiry));
	json_name(w, "labels");
	json_open(w, '{');
	for (size_t i = 0; i < gate->labels_len; i++) {
		json_name_view(w, gate->labels[i].key);
		json_text(w, gate->labels[i].value);
	}
	json_close(w, '}');
	json_close(w, '}');
}

static void members_suspend(struct json_writer *w, const struct suspend_event *event)
{
	member_uuid(w, "checkpoint_id", event->checkpoint_id_text, &event->checkpoint_id);
	member_text(w, "session_id", event->session_id);
	member_number(w, "suspend_seq", event->suspend_seq);
	member_text(w, "tenant", event->tenant);
	member_text(w, "agent", event->agent);
	member_text(w, "agent_version", event->agent_version);
	member_number(w, "suspended_at", event->suspended_at);
	member_step(w, &event->step);
	member_history(w, event);
	member_config(w, event->config, event->config_len);
	member_permissions(w, event);
	member_state(w, &event->state);
	member_gate(w, &event->gate);
	member_bytes(w, "salt", (struct view){ event->salt, SALT_LEN });
}

static void member_approver(struct json_writer *w, const struct approver *approver)
{
	json_name(w, "decided_by");
	json_open(w, '{');
	member_text(w, "issuer", approver->issuer);
	member_text(w, "subject", approver->subject);
	member_text(w, "display", approver->display);
	json_close(w, '}');
}

static void member_source(struct json_writer *w, const struct source *source)
{
	json_name(w, "source");
	json_open(w, '{');
	member_text(w, "system", source->system);
	member_text(w, "ref", source->ref);
	member_text(w, "delivery_id", source->delivery_id);
	json_close(w, '}');
}

static void member_edits(struct json_writer *w, const struct edits *edits)
{
	json_name(w, "edits");
	if (!edits->present) {
		json_word(w, "null");
		return;
	}
	json_open(w, '{');
	member_config(w, edits->config, edits->config_len);
	member_text(w, "action_arguments", edits->action_arguments);
	json_close(w, '}');
}

static void member_signature(struct json_writer *w, const struct signature *signature)
{
	json_name(w, "signature");
	if (!signature->present) {
		json_word(w, "null");
		return;
	}
	json_open(w, '{');
	member_text(w, "key_id", signature->key_id);
	member_bytes(w, "body", signature->body);
	member_bytes(w, "value", signature->value);
	json_close(w, '}');
}

static enum fate done(const struct buffer *out, struct error *error)
{
	if (!buffer_failed(out))
		return FATE_OK;
	return buffer_refused(out, error, "a record as JSON is longer than there is room for");
}

enum fate suspend_to_json(const struct suspend_event *event, struct buffer *out, struct error *error)
{
	struct json_writer w = { .out = out };

	json_open(&w, '{');
	members_suspend(&w, event);
	json_close(&w, '}');
	return done(out, error);
}

enum fate approval_to_json(const struct approval_event *event, struct buffer *out, struct error *error)
{
	struct json_writer w = { .out = out };

	json_open(&w, '{');
	member_uuid(&w, "decision_id", event->decision_id_text, &event->decision_id);
	member_uuid(&w, "checkpoint_id", event->checkpoint_id_text, &event->checkpoint_id);
	member_text(&w, "session_id", event->session_id);
	member_word(&w, "decision", decision_kind_name(event->decision));
	member_approver(&w, &event->decided_by);
	member_number(&w, "decided_at", event->decided_at);
	member_text(&w, "reason", event->reason);
	member_edits(&w, &event->edits);
	member_bytes(&w, "checkpoint_digest",
	             event->has_digest ? (struct view){ event->checkpoint_digest, DIGEST_LEN } : VIEW_NULL);
	member_source(&w, &event->source);
	member_signature(&w, &event->signature);
	json_close(&w, '}');
	return done(out, error);
}

static void write_decision(struct json_writer *w, const struct resume_decision *decision)
{
	json_open(w, '{');
	member_uuid(w, "decision_id", decision->decision_id_text, &decision->decision_id);
	member_approver(w, &decision->decided_by);
	member_number(w, "decided_at", decision->decided_at);
	member_word(w, "decision", decision_kind_name(decision->decision));
	member_text(w, "reason", decision->reason);
	member_source(w, &decision->source);
	json_close(w, '}');
}

enum fate resume_to_json(const struct resume_event *event, struct buffer *out, struct error *error)
{
	struct json_writer w = { .out = out };

	json_open(&w, '{');
	member_uuid(&w, "resume_id", event->resume_id_text, &event->resume_id);
	member_word(&w, "verdict", verdict_name(event->verdict));
	json_name(&w, "decisions");
	json_open(&w, '[');
	for (size_t i = 0; i < event->decisions_len; i++)
		write_decision(&w, &event->decisions[i]);
	json_close(&w, ']');
	member_edits(&w, &event->edits);
	members_suspend(&w, &event->suspend);
	member_text(&w, "migrated_from", event->migrated_from);
	member_number(&w, "resumed_at", event->resumed_at);
	member_time(&w, "expires_at", event->expires_at);
	member_signature(&w, &event->signature);
	json_close(&w, '}');
	return done(out, error);
}

enum fate gate_to_json(const struct gate_event *event, struct buffer *out, struct error *error)
{
	struct json_writer w = { .out = out };

	json_open(&w, '{');
	member_uuid(&w, "checkpoint_id", event->checkpoint_id_text, &event->checkpoint_id);
	member_text(&w, "session_id", event->session_id);
	member_text(&w, "gate_id", event->gate_id);
	member_text(&w, "tenant", event->tenant);
	member_text(&w, "agent", event->agent);
	member_word(&w, "state", gate_state_name(event->state));
	member_text(&w, "title", event->title);
	member_text(&w, "risk", event->has_risk ? view_of(risk_name(event->risk)) : VIEW_NULL);
	member_action(&w, &event->action);
	member_text(&w, "requested_by", event->requested_by);
	member_number(&w, "required_approvals", event->required_approvals);
	member_number(&w, "approvals", event->approvals);
	member_bytes(&w, "digest", (struct view){ event->digest, DIGEST_LEN });
	member_number(&w, "at", event->at);
	member_time(&w, "expires_at", event->expires_at);
	member_text(&w, "reason", event->reason);
	member_number(&w, "version", event->version);
	json_close(&w, '}');
	return done(out, error);
}
