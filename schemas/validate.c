#include "schemas/validate.h"

#include "core/json_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fate FM_PRINTF(2, 3) invalid(struct error *error, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(error, FATE_REJECT, ERR_INVALID, "%s", text);
}

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no room in the arena to check a record");
}

/* A text that is kept in clear: PostgreSQL has no U+0000, and what people read has an end. */
struct clear_text {
	const char *path;
	struct view text;
	size_t max;
};

static enum fate check_clear(const struct clear_text *texts, size_t len, struct error *error)
{
	for (const struct clear_text *each = texts; each < texts + len; each++) {
		if (each->text.len > each->max)
			return invalid(error, "%s has %zu bytes: at most %zu are allowed", each->path, each->text.len,
			               each->max);
		if (view_has_nul(each->text))
			return invalid(error, "%s has U+0000 in it, which cannot be kept in clear", each->path);
	}
	return FATE_OK;
}

#define CHECK_CLEAR(texts, error) check_clear(texts, sizeof(texts) / sizeof((texts)[0]), error)

enum fate validate_uuid(struct view text, const char *path, struct uuid *ret_uuid, struct error *error)
{
	if (uuid_parse(text, ret_uuid))
		return FATE_OK;
	if (text.len != UUID_TEXT_LEN)
		return invalid(error, "%s has %zu bytes: a uuid has 36 characters", path, text.len);
	return invalid(error, "%s is not a uuid: 36 characters, hexadecimal digits with four hyphens", path);
}

enum fate validate_id_to_put(struct view text, const char *path, struct error *error)
{
	struct uuid ignored;

	return view_is_null(text) ? FATE_OK : validate_uuid(text, path, &ignored, error);
}

static int compare_views(const void *a, const void *b)
{
	return view_compare(*(const struct view *)a, *(const struct view *)b);
}

/* keys is scratch. The second of two equal keys is what a reader may or may not keep. */
static enum fate check_keys(struct view *keys, size_t len, const char *path, struct error *error)
{
	qsort(keys, len, sizeof(*keys), compare_views);
	for (size_t i = 1; i < len; i++) {
		if (view_equal(keys[i - 1], keys[i]))
			return invalid(error, "%s has a key twice", path);
	}
	return FATE_OK;
}

static enum fate check_config(const struct config_entry *config, size_t len, const char *path,
                              struct arena *arena, struct error *error)
{
	struct view *keys = arena_array(arena, len, sizeof(*keys));

	if (!keys)
		return no_memory(error);
	for (size_t i = 0; i < len; i++)
		keys[i] = config[i].key;
	return check_keys(keys, len, path, error);
}

static enum fate check_permissions(const struct suspend_event *event, struct arena *arena,
                                   struct error *error)
{
	struct view *keys = arena_array(arena, event->tool_permissions_len, sizeof(*keys));

	if (!keys)
		return no_memory(error);
	for (size_t i = 0; i < event->tool_permissions_len; i++)
		keys[i] = event->tool_permissions[i].tool;
	return check_keys(keys, event->tool_permissions_len, "tool_permissions", error);
}

static enum fate check_labels(const struct gate *gate, struct arena *arena, struct error *error)
{
	struct view *keys = arena_array(arena, gate->labels_len, sizeof(*keys));

	if (!keys)
		return no_memory(error);
	for (size_t i = 0; i < gate->labels_len; i++) {
		if (view_has_nul(gate->labels[i].key) || view_has_nul(gate->labels[i].value))
			return invalid(error, "gate.labels[%zu] has U+0000 in it, which cannot be kept in clear", i);
		keys[i] = gate->labels[i].key;
	}
	return check_keys(keys, gate->labels_len, "gate.labels", error);
}

/* Empty entries take no bytes, but they take room: there may be no more of them than bytes. */
static enum fate check_audience(const struct gate *gate, struct arena *arena, struct error *error)
{
	size_t total = 0;

	if (gate->approvers_len > AUDIENCE_BYTES_MAX)
		return invalid(error, "gate.approvers has %zu entries: at most %d are allowed", gate->approvers_len,
		               AUDIENCE_BYTES_MAX);
	for (size_t i = 0; i < gate->approvers_len; i++) {
		if (view_has_nul(gate->approvers[i]))
			return invalid(error, "gate.approvers[%zu] has U+0000 in it, which cannot be kept in clear", i);
		total += gate->approvers[i].len;
	}
	for (size_t i = 0; i < gate->labels_len; i++)
		total += gate->labels[i].key.len + gate->labels[i].value.len;
	if (total > AUDIENCE_BYTES_MAX)
		return invalid(error,
		               "gate.approvers and gate.labels have %zu bytes together: at most %d are allowed",
		               total, AUDIENCE_BYTES_MAX);
	return check_labels(gate, arena, error);
}

static enum fate check_action(const struct action *action, const char *path, struct error *error)
{
	if (action->present && !json_scan(action->arguments))
		return invalid(error, "%s.arguments is not JSON", path);
	return FATE_OK;
}

static enum fate check_gate(const struct gate *gate, struct arena *arena, struct error *error)
{
	const struct clear_text texts[] = {
		{ "gate.gate_id", gate->gate_id, ID_BYTES_MAX },
		{ "gate.title", gate->title, TITLE_BYTES_MAX },
		{ "gate.requested_by", gate->requested_by, ID_BYTES_MAX },
	};
	enum fate fate = CHECK_CLEAR(texts, error);

	if (fate == FATE_OK && gate->required_approvals < 1)
		return invalid(error, "gate.required_approvals is %d: it must be at least 1",
		               gate->required_approvals);
	if (fate == FATE_OK)
		fate = check_action(&gate->action, "gate.action", error);
	return fate == FATE_OK ? check_audience(gate, arena, error) : fate;
}

static enum fate check_state(const struct app_state *state, struct error *error)
{
	if (!state->present)
		return FATE_OK;
	if (state->encoding == ENCODING_JSON) {
		if (!view_is_null(state->fingerprint))
			return invalid(error, "state.fingerprint must be null: the state's encoding is JSON");
		return json_scan(state->body)
		           ? FATE_OK
		           : invalid(error, "state.body is not JSON, which state.encoding says it is");
	}
	if (view_is_null(state->fingerprint))
		return invalid(error, "state.fingerprint is null: a state in Avro needs its schema's CRC-64-AVRO");
	if (state->fingerprint.len != 8)
		return invalid(error, "state.fingerprint has %zu bytes: a CRC-64-AVRO has 8", state->fingerprint.len);
	return FATE_OK;
}

static enum fate check_history(const struct suspend_event *event, struct error *error)
{
	for (size_t i = 0; i < event->history_len; i++) {
		const struct history_entry *entry = &event->history[i];
		for (size_t k = 0; k < entry->tool_calls_len; k++) {
			if (!json_scan(entry->tool_calls[k].arguments))
				return invalid(error, "history[%zu].tool_calls[%zu].arguments is not JSON", i, k);
		}
	}
	return FATE_OK;
}

static enum fate check_suspend_head(const struct suspend_event *event, struct error *error)
{
	const struct clear_text texts[] = {
		{ "session_id", event->session_id, ID_BYTES_MAX },
		{ "tenant", event->tenant, ID_BYTES_MAX },
		{ "agent", event->agent, ID_BYTES_MAX },
		{ "agent_version", event->agent_version, ID_BYTES_MAX },
	};
	enum fate fate = CHECK_CLEAR(texts, error);

	if (fate == FATE_OK && event->session_id.len == 0)
		return invalid(error, "session_id is empty: it must have 1 to %d bytes", ID_BYTES_MAX);
	if (fate == FATE_OK && event->suspend_seq < 1)
		return invalid(error, "suspend_seq is %lld: it must be at least 1", (long long)event->suspend_seq);
	return fate;
}

static enum fate check_step(const struct step *step, struct error *error)
{
	const char *empty = step->node.len == 0        ? "step.node"
	                    : step->resume_at.len == 0 ? "step.resume_at"
	                                               : NULL;

	if (!empty)
		return FATE_OK;
	return error_set(error, FATE_REJECT, ERR_NOT_AT_BOUNDARY,
	                 "%s is empty: state is saved only at a boundary of the graph", empty);
}

enum fate validate_suspend(const struct suspend_event *event, bool strict, struct arena *arena,
                           struct error *error)
{
	enum fate fate = check_suspend_head(event, error);

	if (fate == FATE_OK)
		fate = check_gate(&event->gate, arena, error);
	if (fate == FATE_OK)
		fate = check_history(event, error);
	if (fate == FATE_OK)
		fate = check_config(event->config, event->config_len, "config", arena, error);
	if (fate == FATE_OK)
		fate = check_permissions(event, arena, error);
	if (fate == FATE_OK)
		fate = check_state(&event->state, error);
	if (fate == FATE_OK)
		fate = check_step(&event->step, error);
	if (fate == FATE_OK && strict)
		fate = validate_boundary(event->history, event->history_len, arena, error);
	return fate;
}

enum fate validate_edits(const struct edits *edits, struct arena *arena, struct error *error)
{
	if (!edits->present)
		return FATE_OK;
	if (!view_is_null(edits->action_arguments) && !json_scan(edits->action_arguments))
		return invalid(error, "edits.action_arguments is not JSON");
	return check_config(edits->config, edits->config_len, "edits.config", arena, error);
}

static enum fate check_person(const struct approver *person, const struct source *source, struct view reason,
                              struct error *error)
{
	const struct clear_text texts[] = {
		{ "decided_by.issuer", person->issuer, ID_BYTES_MAX },
		{ "decided_by.subject", person->subject, ID_BYTES_MAX },
		{ "decided_by.display", person->display, TEXT_BYTES_MAX },
		{ "reason", reason, REASON_BYTES_MAX },
		{ "source.system", source->system, TEXT_BYTES_MAX },
		{ "source.ref", source->ref, TEXT_BYTES_MAX },
		{ "source.delivery_id", source->delivery_id, TEXT_BYTES_MAX },
	};

	return CHECK_CLEAR(texts, error);
}

static enum fate check_signature(const struct signature *signature, struct error *error)
{
	const struct clear_text texts[] = { { "signature.key_id", signature->key_id, ID_BYTES_MAX } };

	return signature->present ? CHECK_CLEAR(texts, error) : FATE_OK;
}

enum fate validate_approval(const struct approval_event *event, struct arena *arena, struct error *error)
{
	const struct clear_text texts[] = { { "session_id", event->session_id, ID_BYTES_MAX } };
	enum fate fate = CHECK_CLEAR(texts, error);

	if (fate == FATE_OK)
		fate = check_person(&event->decided_by, &event->source, event->reason, error);
	if (fate == FATE_OK)
		fate = validate_edits(&event->edits, arena, error);
	return fate == FATE_OK ? check_signature(&event->signature, error) : fate;
}

enum fate validate_resume(const struct resume_event *event, struct arena *arena, struct error *error)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < event->decisions_len && fate == FATE_OK; i++) {
		const struct resume_decision *each = &event->decisions[i];
		fate = check_person(&each->decided_by, &each->source, each->reason, error);
		if (fate != FATE_OK && error)
			error_wrap(error, "decisions[%zu]", i);
	}
	if (fate == FATE_OK)
		fate = validate_edits(&event->edits, arena, error);
	return fate == FATE_OK ? check_signature(&event->signature, error) : fate;
}

enum fate validate_gate_event(const struct gate_event *event, struct error *error)
{
	const struct clear_text texts[] = {
		{ "session_id", event->session_id, ID_BYTES_MAX },
		{ "gate_id", event->gate_id, ID_BYTES_MAX },
		{ "tenant", event->tenant, ID_BYTES_MAX },
		{ "agent", event->agent, ID_BYTES_MAX },
		{ "title", event->title, TITLE_BYTES_MAX },
		{ "requested_by", event->requested_by, ID_BYTES_MAX },
		{ "reason", event->reason, SIZE_MAX },
	};
	enum fate fate = CHECK_CLEAR(texts, error);

	return fate == FATE_OK ? check_action(&event->action, "action", error) : fate;
}
