#include "store/store_record.h"

#include "store/store_common.h"

#include <string.h>

/* The names of an enum by number, for row_enum. */
static const char *state_at(int i)
{
	return gate_state_name((enum gate_state)i);
}

static const char *verdict_at(int i)
{
	return verdict_name((enum verdict)i);
}

static const char *risk_at(int i)
{
	return risk_name((enum risk)i);
}

static const char *on_expiry_at(int i)
{
	return on_expiry_name((enum on_expiry)i);
}

static const char *kind_at(int i)
{
	return decision_kind_name((enum decision_kind)i);
}

static const char *outcome_at(int i)
{
	return outcome_name((enum outcome)i);
}

static const char *waits_at(int i)
{
	static const char *const names[] = { "", "alarm", "registry", "breaker" };

	return names[i];
}

/* Null, and what is bad, reads as the first one. */
static unsigned enum_or_first(int value)
{
	return value < 0 ? 0 : (unsigned)value;
}

/* ---- checkpoint ---- */

/* What cannot be a format, a length or a key's id reads as 0 or "", which nobody can open. */
static void row_sealed(struct row *row, struct sealed *ret_sealed)
{
	int format = row_int2(row);
	int compression = row_int2(row);
	int32_t plain_len = row_int4(row);
	struct view kek_id = row_text(row);
	bool has_key = !row_is_null(row);

	ret_sealed->format = (uint8_t)(format < 0 || format > UINT8_MAX ? 0 : format);
	ret_sealed->compression = (uint8_t)(compression < 0 || compression > UINT8_MAX ? UINT8_MAX : compression);
	ret_sealed->plain_len = plain_len < 0 ? 0 : (uint32_t)plain_len;
	if (kek_id.len > 0 && kek_id.len <= KEK_ID_MAX)
		memcpy(ret_sealed->kek_id, kek_id.data, kek_id.len);
	ret_sealed->has_key = has_key;
	row_fixed(row, ret_sealed->wrapped_key, sizeof(ret_sealed->wrapped_key));
	row_fixed(row, ret_sealed->commit, sizeof(ret_sealed->commit));
	ret_sealed->body = VIEW_NULL;
}

static void row_labels(struct row *row, struct checkpoint *checkpoint)
{
	struct view *texts;
	size_t len;

	row_texts(row, &texts, &len);
	if (len < 2)
		return;
	struct label *labels = arena_array(row->arena, len / 2, sizeof(*labels));
	if (labels == NULL) {
		row->no_memory = true;
		return;
	}
	for (size_t i = 0; i < len / 2; i++)
		labels[i] = (struct label){ texts[2 * i], texts[2 * i + 1] };
	checkpoint->labels = labels;
	checkpoint->labels_len = len / 2;
}

static void row_checkpoint_state(struct row *row, struct checkpoint *checkpoint)
{
	if (row_is_null(row))
		row_skip(row); /* the empty side of an outer join */
	else
		checkpoint->id = row_uuid(row);
	checkpoint->state = (enum gate_state)enum_or_first(row_enum(row, state_at, GATE_STATE_COUNT));
	checkpoint->filled = row_bool(row);
	checkpoint->published = row_bool(row);
	checkpoint->held = row_bool(row);
	checkpoint->from_ledger = row_bool(row);
	checkpoint->approvals = row_int4(row);
	int verdict = row_enum(row, verdict_at, VERDICT_CANCELLED + 1);
	checkpoint->has_verdict = verdict >= 0;
	checkpoint->verdict = (enum verdict)enum_or_first(verdict);
	checkpoint->decided_at = row_time(row);
	checkpoint->version = row_int8(row);
	checkpoint->changed_at = row_int8(row);
	checkpoint->reason = row_text(row);
	checkpoint->doubt_settled = row_int8(row);
	row_uuids(row, &checkpoint->ledger_decisions, &checkpoint->ledger_decisions_len);
}

void row_checkpoint(struct row *row, struct checkpoint *ret_checkpoint)
{
	struct checkpoint *checkpoint = ret_checkpoint;

	memset(checkpoint, 0, sizeof(*checkpoint));
	row_checkpoint_state(row, checkpoint);
	checkpoint->tenant = row_text_or_empty(row);
	checkpoint->session_id = row_text_or_empty(row);
	checkpoint->gate_id = row_text_or_empty(row);
	checkpoint->suspend_seq = row_int8(row);
	checkpoint->agent = row_text_or_empty(row);
	checkpoint->agent_version = row_text_or_empty(row);
	checkpoint->requested_by = row_text_or_empty(row);
	checkpoint->title = row_text_or_empty(row);
	int risk = row_enum(row, risk_at, RISK_CRITICAL + 1);
	checkpoint->has_risk = risk >= 0;
	checkpoint->risk = (enum risk)enum_or_first(risk);
	checkpoint->required_approvals = row_int4(row);
	row_texts(row, &checkpoint->approvers, &checkpoint->approvers_len);
	row_labels(row, checkpoint);
	checkpoint->suspended_at = row_int8(row);
	checkpoint->appended_at = row_int8(row);
	checkpoint->expires_at = row_time(row);
	checkpoint->on_expiry = (enum on_expiry)enum_or_first(row_enum(row, on_expiry_at, ON_EXPIRY_HOLD + 1));
	row_fixed(row, checkpoint->digest, sizeof(checkpoint->digest));
	checkpoint->traceparent = row_text(row);
	checkpoint->tracestate = row_text(row);
	row_sealed(row, &checkpoint->sealed);
	row_fixed(row, checkpoint->sealed.schema_sha256, sizeof(checkpoint->sealed.schema_sha256));
	checkpoint->resumes_topic = row_text_or_empty(row);
	checkpoint->resumes_partition = row_int4(row);
	checkpoint->id_text = row_text(row);
}

void param_checkpoint_state(struct params *params, const struct checkpoint *checkpoint)
{
	param_uuid(params, &checkpoint->id);
	param_name(params, gate_state_name(checkpoint->state));
	param_bool(params, checkpoint->published);
	param_bool(params, checkpoint->held);
	param_bool(params, checkpoint->from_ledger);
	param_int4(params, checkpoint->approvals);
	param_name(params, checkpoint->has_verdict ? verdict_name(checkpoint->verdict) : NULL);
	param_time(params, checkpoint->decided_at);
	param_int8(params, checkpoint->version);
	param_int8(params, checkpoint->changed_at);
	param_text(params, checkpoint->reason);
}

static void param_texts(struct params *params, const struct view *texts, size_t len)
{
	if (len == 0) {
		param_null(params);
		return;
	}
	param_array(params, PG_TEXT, len);
	for (size_t i = 0; i < len; i++)
		item_text(params, texts[i]);
}

static void param_labels(struct params *params, const struct label *labels, size_t len)
{
	if (len == 0) {
		param_null(params);
		return;
	}
	param_array(params, PG_TEXT, len * 2);
	for (size_t i = 0; i < len; i++) {
		item_text(params, labels[i].key);
		item_text(params, labels[i].value);
	}
}

static struct view view_of_bytes(const uint8_t *bytes, size_t len)
{
	return (struct view){ bytes, len };
}

/* kek_id: in a column of its own, else it is in what the row has in common with others. */
static void param_sealed(struct params *params, const struct sealed *sealed, bool kek_id)
{
	param_int2(params, sealed->format);
	param_int2(params, sealed->compression);
	param_int4(params, (int32_t)sealed->plain_len);
	if (kek_id)
		param_name(params, sealed->kek_id);
	param_bytes(params, sealed->has_key ? view_of_bytes(sealed->wrapped_key, WRAPPED_KEY_LEN) : VIEW_NULL);
	param_bytes(params, view_of_bytes(sealed->commit, COMMIT_LEN));
}

#define EVENT_COLUMNS 31

void param_checkpoint_event(struct params *params, const struct checkpoint *checkpoint, bool fill)
{
	if (!fill) {
		for (int i = 0; i < EVENT_COLUMNS; i++)
			param_null(params);
		return;
	}
	param_text(params, checkpoint->tenant);
	param_text(params, checkpoint->session_id);
	param_text(params, checkpoint->gate_id);
	param_int8(params, checkpoint->suspend_seq);
	param_text(params, checkpoint->agent);
	param_text(params, checkpoint->agent_version);
	param_text(params, checkpoint->requested_by);
	param_text(params, checkpoint->title);
	param_name(params, checkpoint->has_risk ? risk_name(checkpoint->risk) : NULL);
	param_int4(params, checkpoint->required_approvals);
	param_texts(params, checkpoint->approvers, checkpoint->approvers_len);
	param_labels(params, checkpoint->labels, checkpoint->labels_len);
	param_int8(params, checkpoint->suspended_at);
	param_int8(params, checkpoint->appended_at);
	param_time(params, checkpoint->expires_at);
	param_name(params, on_expiry_name(checkpoint->on_expiry));
	param_bytes(params, view_of_bytes(checkpoint->digest, DIGEST_LEN));
	param_text(params, checkpoint->traceparent);
	param_text(params, checkpoint->tracestate);
	param_sealed(params, &checkpoint->sealed, false);
	param_int4(params, (int32_t)checkpoint->sealed.body.len);
	param_day(params, checkpoint->appended_at);
	param_int4(params, checkpoint->resumes_partition);
	param_text(params, checkpoint->id_text);
	param_int4(params, checkpoint->record.partition);
	param_int8(params, checkpoint->record.offset);
	param_int8(params, common_id(checkpoint));
}

/* ---- decision ---- */

static void row_coordinates(struct row *row, struct coordinates *ret_at)
{
	struct view topic = row_text_or_empty(row);

	/* The copy in the arena is followed by a NUL, and no text of PostgreSQL holds one. */
	ret_at->topic = (const char *)topic.data;
	ret_at->partition = row_int4(row);
	ret_at->offset = row_int8(row);
	ret_at->appended_at = row_int8(row);
}

/* The reason that is stored begins with the refusal's name. */
static enum refusal refusal_of(struct view reason)
{
	for (int i = REFUSAL_NONE + 1; i <= REFUSAL_NO_SUSPEND; i++) {
		const char *name = refusal_name((enum refusal)i);
		size_t len = strlen(name);
		if (reason.len < len || memcmp(reason.data, name, len) != 0)
			continue;
		if (reason.len == len || reason.data[len] < 'a' || reason.data[len] > 'z')
			return (enum refusal)i;
	}
	return REFUSAL_NONE;
}

void row_decision(struct row *row, struct decision *ret_decision)
{
	struct decision *decision = ret_decision;

	memset(decision, 0, sizeof(*decision));
	decision->id = row_uuid(row);
	decision->checkpoint_id = row_uuid(row);
	decision->outcome = (enum outcome)enum_or_first(row_enum(row, outcome_at, OUTCOME_REFUSED + 1));
	decision->outcome_reason = row_text(row);
	decision->refusal = refusal_of(decision->outcome_reason);
	decision->kind = (enum decision_kind)enum_or_first(row_enum(row, kind_at, DECISION_EXPIRE + 1));
	decision->decided_by.issuer = row_text_or_empty(row);
	decision->decided_by.subject = row_text_or_empty(row);
	decision->decided_by.display = row_text_or_empty(row);
	decision->decided_at = row_int8(row);
	decision->stated_reason = row_text(row);
	decision->stated_session = row_text_or_empty(row);
	decision->source.system = row_text_or_empty(row);
	decision->source.ref = row_text_or_empty(row);
	decision->source.delivery_id = row_text_or_empty(row);
	decision->has_digest = !row_is_null(row);
	row_fixed(row, decision->checkpoint_digest, sizeof(decision->checkpoint_digest));
	row_fixed(row, decision->record_digest, sizeof(decision->record_digest));
	decision->id_text = row_text_or_empty(row);
	row_coordinates(row, &decision->at);
	decision->seq = row_int8(row);
	decision->has_edits = !row_is_null(row);
	row_sealed(row, &decision->edits);
}

#define DECISION_COLUMNS_LEN 28

void row_skip_decision(struct row *row)
{
	for (int i = 0; i < DECISION_COLUMNS_LEN; i++)
		row_skip(row);
}

/* ---- kafka_offset ---- */

static void param_edits(struct params *params, const struct sealed *edits)
{
	param_sealed(params, edits, true);
	param_bytes(params, edits->body);
}

#define EDITS_COLUMNS 7

void param_decision(struct params *params, const struct decision *decision)
{
	param_uuid(params, &decision->id);
	param_uuid(params, &decision->checkpoint_id);
	param_name(params, outcome_name(decision->outcome));
	param_text(params, decision->outcome_reason);
	param_name(params, decision_kind_name(decision->kind));
	param_text(params, decision->decided_by.issuer);
	param_text(params, decision->decided_by.subject);
	param_text(params, decision->decided_by.display);
	param_int8(params, decision->decided_at);
	param_text(params, decision->stated_reason);
	param_text(params, decision->stated_session);
	param_text(params, decision->source.system);
	param_text(params, decision->source.ref);
	param_text(params, decision->source.delivery_id);
	param_bytes(params,
	            decision->has_digest ? view_of_bytes(decision->checkpoint_digest, DIGEST_LEN) : VIEW_NULL);
	param_bytes(params, view_of_bytes(decision->record_digest, DIGEST_LEN));
	param_text(params, decision->id_text);
	param_name(params, decision->at.topic);
	param_int4(params, decision->at.partition);
	param_int8(params, decision->at.offset);
	param_int8(params, decision->at.appended_at);
	if (decision->has_edits) {
		param_edits(params, &decision->edits);
		return;
	}
	for (int i = 0; i < EDITS_COLUMNS; i++)
		param_null(params);
}

void row_ledger(struct row *row, struct ledger *ret_ledger)
{
	ret_ledger->next = row_int8(row);
	ret_ledger->doubt.before = row_time(row);
	ret_ledger->doubt.below = row_int8(row);
	row_fixed(row, ret_ledger->routes_digest, sizeof(ret_ledger->routes_digest));
}

void row_position(struct row *row, struct position *ret_position)
{
	struct position *position = ret_position;

	memset(position, 0, sizeof(*position));
	position->topic = row_text_or_empty(row);
	position->partition = row_int4(row);
	position->next = row_int8(row);
	bool has_offset = !row_is_null(row);
	position->last_offset = row_int8(row);
	position->last_timestamp = row_int8(row);
	position->has_last = row_fixed(row, position->last_digest, sizeof(position->last_digest)) && has_offset;
	position->waits = (enum position_waits)enum_or_first(row_enum(row, waits_at, WAITS_BREAKER + 1));
	position->let_through = row_int8(row);
}

/* ---- lists ---- */

enum fate list_no_memory(struct error *error)
{
	return error_set(error, FATE_REJECT, ERR_MEMORY,
	                 "PostgreSQL, reading rows: more than the memory set aside for them");
}

void *list_room(struct arena *arena, void *items, size_t len, size_t *cap, size_t size)
{
	if (len < *cap)
		return items;
	size_t wanted = *cap == 0 ? 16 : *cap * 2;
	void *larger = arena_array(arena, wanted, size);
	if (larger == NULL)
		return NULL;
	if (len > 0)
		memcpy(larger, items, len * size);
	*cap = wanted;
	return larger;
}

static struct checkpoint *checkpoint_list_add(struct checkpoint_list *list)
{
	struct checkpoint **items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));

	if (items == NULL)
		return NULL;
	list->items = items;
	items[list->len] = arena_alloc(list->arena, sizeof(*items[0]));
	return items[list->len] != NULL ? items[list->len++] : NULL;
}

enum fate checkpoint_list_rows(void *context, const PGresult *rows, struct error *error)
{
	struct checkpoint_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct checkpoint *checkpoint = checkpoint_list_add(list);
		if (checkpoint == NULL)
			return list_no_memory(error);
		struct row row = row_at(rows, i, list->arena);
		row_checkpoint(&row, checkpoint);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

struct decision *decision_list_add(struct decision_list *list)
{
	struct decision **items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));

	if (items == NULL)
		return NULL;
	list->items = items;
	items[list->len] = arena_alloc(list->arena, sizeof(*items[0]));
	return items[list->len] != NULL ? items[list->len++] : NULL;
}

enum fate decision_list_rows(void *context, const PGresult *rows, struct error *error)
{
	struct decision_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct decision *decision = decision_list_add(list);
		if (decision == NULL)
			return list_no_memory(error);
		struct row row = row_at(rows, i, list->arena);
		row_decision(&row, decision);
		decision->edits.body = row_bytes(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate position_list_rows(void *context, const PGresult *rows, struct error *error)
{
	struct position_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct position *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, list->arena);
		row_position(&row, &items[list->len++]);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}
