#include "tests/contract/random_records.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t next(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t roll_below(struct dice *dice, uint64_t below)
{
	return next(dice) % below;
}

static bool chance(struct dice *dice, unsigned percent)
{
	return roll_below(dice, 100) < percent;
}

static void *array(struct dice *dice, size_t count, size_t size)
{
	void *room = arena_array(dice->arena, count, size);

	assert(room);
	return room;
}

/* Code points of one to four bytes, controls, and U+0000 when nul. At most max bytes. */
static struct view text(struct dice *dice, size_t max, bool nul)
{
	static const char *const pieces[] = { "a",
		                                  "Z",
		                                  "\x7f",
		                                  "\n",
		                                  "\"",
		                                  "\\",
		                                  "ü",
		                                  "世",
		                                  "\xf0\x9f\x8e\xbc",
		                                  "\xef\xbf\xbf",
		                                  "\xe2\x80\xa8",
		                                  " ",
		                                  "/",
		                                  "\x1f",
		                                  "{}",
		                                  "\xf4\x8f\xbf\xbf" };
	size_t want = chance(dice, 10)  ? 0
	              : chance(dice, 5) ? max
	                                : (size_t)roll_below(dice, max < 24 ? max + 1 : 24);
	uint8_t *data = array(dice, max + 8, 1);
	size_t len = 0;

	while (len < want) {
		const char *piece = pieces[roll_below(dice, 16)];
		size_t more = strlen(piece);
		if (nul && chance(dice, 5))
			more = 1, piece = "\0";
		if (len + more > max)
			break;
		memcpy(data + len, piece, more);
		len += more;
	}
	return (struct view){ data, len };
}

static struct view text_or_null(struct dice *dice, size_t max, bool nul)
{
	return chance(dice, 50) ? VIEW_NULL : text(dice, max, nul);
}

static struct view bytes(struct dice *dice, size_t max)
{
	size_t len = (size_t)roll_below(dice, max + 1);
	uint8_t *data = array(dice, len, 1);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)next(dice);
	return (struct view){ data, len };
}

static int64_t number(struct dice *dice)
{
	static const int64_t edges[] = { 0,         1,         -1,        63,
		                             64,        -64,       -65,       INT64_MAX,
		                             INT64_MIN, INT32_MAX, INT32_MIN, INT64_C(9007199254740993) };

	return chance(dice, 40) ? edges[roll_below(dice, 12)] : (int64_t)(next(dice) >> roll_below(dice, 64));
}

static int64_t time_or_none(struct dice *dice)
{
	return chance(dice, 50) ? TIME_NONE : number(dice); /* INT64_MIN is TIME_NONE */
}

static double real(struct dice *dice)
{
	static const double edges[] = { 0.0, -0.0, 16.0, 0.1, 1.0 / 3, 2.5e-5, 123456789.125 };
	double any;
	uint64_t bits = next(dice);

	if (chance(dice, 50))
		return edges[roll_below(dice, 7)];
	if (chance(dice, 20))
		return chance(dice, 50) ? (double)INFINITY : (double)NAN;
	memcpy(&any, &bits, sizeof(any));
	return isnan(any) ? (double)NAN : any;
}

static struct view json(struct dice *dice)
{
	static const char *const texts[] = { "{}",
		                                 "[]",
		                                 "null",
		                                 " true ",
		                                 "-0",
		                                 "1e400",
		                                 "\"\\u0000\\ud800\"",
		                                 "{\"n\":1,\"n\":2}",
		                                 "123456789012345678901234567890",
		                                 "[[[[[[{\"a\":[1.5,\"\xf0\x9f\x8e\xbc\"]}]]]]]]" };

	return view_of(texts[roll_below(dice, 10)]);
}

static struct view *texts(struct dice *dice, size_t max, size_t *ret_len)
{
	*ret_len = (size_t)roll_below(dice, 4);
	struct view *all = array(dice, *ret_len, sizeof(*all));

	for (size_t i = 0; i < *ret_len; i++)
		all[i] = text(dice, max, true);
	return all;
}

/* Keys differ: each begins with its own number. */
static struct view key(struct dice *dice, size_t i, bool nul)
{
	struct view rest = text(dice, 12, nul);
	char *data = array(dice, rest.len + 8, 1);
	int head = snprintf(data, 8, "%zu", i);

	memcpy(data + head, rest.data, rest.len);
	return i == 0 && chance(dice, 30) ? VIEW_LITERAL("")
	                                  : (struct view){ (uint8_t *)data, (size_t)head + rest.len };
}

static void config_value(struct dice *dice, struct config_entry *entry)
{
	entry->kind = (enum config_kind)roll_below(dice, 6);
	switch (entry->kind) {
	case CONFIG_NULL:
		return;
	case CONFIG_BOOLEAN:
		entry->value.boolean = chance(dice, 50);
		return;
	case CONFIG_LONG:
		entry->value.number = number(dice);
		return;
	case CONFIG_DOUBLE:
		entry->value.real = real(dice);
		return;
	case CONFIG_STRING:
		entry->value.string = text(dice, 5000, true);
		return;
	case CONFIG_STRINGS:
		entry->value.strings.items = texts(dice, 40, &entry->value.strings.len);
		return;
	}
}

static struct config_entry *config(struct dice *dice, size_t *ret_len)
{
	*ret_len = (size_t)roll_below(dice, 7);
	struct config_entry *all = array(dice, *ret_len, sizeof(*all));

	for (size_t i = 0; i < *ret_len; i++) {
		all[i].key = key(dice, i, true);
		config_value(dice, &all[i]);
	}
	return all;
}

static void uuid(struct dice *dice, struct uuid *ret_uuid, struct view *ret_text)
{
	char *room = array(dice, UUID_TEXT_LEN + 1, 1);

	for (size_t i = 0; i < sizeof(ret_uuid->bytes); i++)
		ret_uuid->bytes[i] = (uint8_t)next(dice);
	uuid_format(ret_uuid, room);
	bool upper = chance(dice, 30);
	for (size_t i = 0; upper && i < UUID_TEXT_LEN; i++)
		room[i] = room[i] >= 'a' && room[i] <= 'f' ? (char)(room[i] - 32) : room[i];
	if (ret_text)
		*ret_text = view_of(room);
}

static void action(struct dice *dice, struct action *ret_action)
{
	*ret_action = (struct action){ .present = chance(dice, 60) };
	if (!ret_action->present)
		return;
	ret_action->tool = text(dice, 300, true);
	ret_action->arguments = json(dice);
	ret_action->risk = (enum risk)roll_below(dice, 4);
	ret_action->summary = text(dice, 300, true);
}

static void history_entry(struct dice *dice, struct history_entry *entry)
{
	entry->role = (enum role)roll_below(dice, 4);
	entry->content = text(dice, 3000, true);
	entry->name = text_or_null(dice, 30, true);
	entry->tool_call_id = text_or_null(dice, 30, true);
	entry->tool_calls_len = (size_t)roll_below(dice, 3);
	entry->tool_calls = array(dice, entry->tool_calls_len, sizeof(*entry->tool_calls));
	for (size_t i = 0; i < entry->tool_calls_len; i++)
		entry->tool_calls[i] = (struct tool_call){ text(dice, 30, true), text(dice, 30, true), json(dice) };
	entry->at = time_or_none(dice);
}

static void state(struct dice *dice, struct app_state *ret_state)
{
	*ret_state = (struct app_state){ .present = chance(dice, 60) };
	if (!ret_state->present)
		return;
	ret_state->schema = text(dice, 100, true);
	ret_state->encoding = (enum encoding)roll_below(dice, 2);
	ret_state->body = bytes(dice, 600);
	if (ret_state->encoding == ENCODING_JSON) {
		ret_state->body = json(dice);
		return;
	}
	uint8_t *fingerprint = array(dice, 8, 1);
	for (size_t i = 0; i < 8; i++)
		fingerprint[i] = (uint8_t)next(dice);
	ret_state->fingerprint = (struct view){ fingerprint, 8 };
}

static void gate(struct dice *dice, struct gate *ret_gate)
{
	ret_gate->gate_id = text(dice, 255, false);
	ret_gate->title = text(dice, 1024, false);
	action(dice, &ret_gate->action);
	ret_gate->requested_by = text(dice, 255, false);
	ret_gate->required_approvals = chance(dice, 80) ? 1 : (int32_t)(1 + roll_below(dice, INT32_MAX));
	ret_gate->approvers_len = (size_t)roll_below(dice, 4);
	ret_gate->approvers = array(dice, ret_gate->approvers_len, sizeof(struct view));
	for (size_t i = 0; i < ret_gate->approvers_len; i++)
		ret_gate->approvers[i] = text(dice, 100, false);
	ret_gate->expires_at = time_or_none(dice);
	ret_gate->on_expiry = (enum on_expiry)roll_below(dice, 3);
	ret_gate->labels_len = (size_t)roll_below(dice, 4);
	ret_gate->labels = array(dice, ret_gate->labels_len, sizeof(*ret_gate->labels));
	for (size_t i = 0; i < ret_gate->labels_len; i++)
		ret_gate->labels[i] = (struct label){ key(dice, i, false), text(dice, 100, false) };
}

static struct view not_empty(struct dice *dice, size_t max, bool nul)
{
	struct view view = text(dice, max, nul);

	return view.len > 0 ? view : VIEW_LITERAL("x");
}

void random_suspend(struct dice *dice, struct suspend_event *ret_event)
{
	*ret_event = (struct suspend_event){ 0 };
	uuid(dice, &ret_event->checkpoint_id, &ret_event->checkpoint_id_text);
	ret_event->session_id = not_empty(dice, 255, false);
	ret_event->suspend_seq = 1 + (int64_t)(next(dice) >> (1 + roll_below(dice, 62))) % INT64_MAX;
	ret_event->tenant = text(dice, 255, false);
	ret_event->agent = text(dice, 255, false);
	ret_event->agent_version = text(dice, 255, false);
	ret_event->suspended_at = number(dice);
	ret_event->step = (struct step){ .graph = text(dice, 60, true),
		                             .node = not_empty(dice, 60, true),
		                             .resume_at = not_empty(dice, 60, true),
		                             .attempt = (int32_t)number(dice) };
	ret_event->step.path = texts(dice, 60, &ret_event->step.path_len);
	ret_event->history_len = (size_t)roll_below(dice, 9);
	ret_event->history = array(dice, ret_event->history_len, sizeof(*ret_event->history));
	for (size_t i = 0; i < ret_event->history_len; i++)
		history_entry(dice, &ret_event->history[i]);
	ret_event->config = config(dice, &ret_event->config_len);
	ret_event->tool_permissions_len = (size_t)roll_below(dice, 4);
	ret_event->tool_permissions =
		array(dice, ret_event->tool_permissions_len, sizeof(*ret_event->tool_permissions));
	for (size_t i = 0; i < ret_event->tool_permissions_len; i++)
		ret_event->tool_permissions[i] =
			(struct tool_permission){ key(dice, i, true), (enum permission)roll_below(dice, 3) };
	state(dice, &ret_event->state);
	gate(dice, &ret_event->gate);
	for (size_t i = 0; i < SALT_LEN; i++)
		ret_event->salt[i] = (uint8_t)next(dice);
}

static void approver(struct dice *dice, struct approver *ret_approver)
{
	*ret_approver =
		(struct approver){ text(dice, 255, false), text(dice, 255, false), text(dice, 500, false) };
}

static void source(struct dice *dice, struct source *ret_source)
{
	*ret_source = (struct source){ text(dice, 50, false), text(dice, 500, false), text(dice, 50, false) };
}

static void signature(struct dice *dice, struct signature *ret_signature)
{
	*ret_signature = (struct signature){ .present = chance(dice, 50) };
	if (ret_signature->present)
		*ret_signature =
			(struct signature){ true, text(dice, 255, false), bytes(dice, 300), bytes(dice, 64) };
}

void random_edits(struct dice *dice, struct edits *ret_edits)
{
	*ret_edits = (struct edits){ .present = chance(dice, 50) };
	if (!ret_edits->present)
		return;
	ret_edits->config = config(dice, &ret_edits->config_len);
	ret_edits->action_arguments = chance(dice, 50) ? VIEW_NULL : json(dice);
}

void random_approval(struct dice *dice, struct approval_event *ret_event)
{
	*ret_event = (struct approval_event){ 0 };
	uuid(dice, &ret_event->decision_id, &ret_event->decision_id_text);
	uuid(dice, &ret_event->checkpoint_id, &ret_event->checkpoint_id_text);
	ret_event->session_id = text(dice, 255, false);
	ret_event->decision = (enum decision_kind)roll_below(dice, 4);
	approver(dice, &ret_event->decided_by);
	ret_event->decided_at = number(dice);
	ret_event->reason = text_or_null(dice, 4096, false);
	random_edits(dice, &ret_event->edits);
	ret_event->has_digest = chance(dice, 50);
	for (size_t i = 0; ret_event->has_digest && i < DIGEST_LEN; i++)
		ret_event->checkpoint_digest[i] = (uint8_t)next(dice);
	source(dice, &ret_event->source);
	signature(dice, &ret_event->signature);
}

void random_resume(struct dice *dice, struct resume_event *ret_event)
{
	*ret_event = (struct resume_event){ 0 };
	uuid(dice, &ret_event->resume_id, &ret_event->resume_id_text);
	ret_event->verdict = (enum verdict)roll_below(dice, 4);
	ret_event->decisions_len = (size_t)roll_below(dice, 4);
	ret_event->decisions = array(dice, ret_event->decisions_len, sizeof(*ret_event->decisions));
	for (size_t i = 0; i < ret_event->decisions_len; i++) {
		struct resume_decision *decision = &ret_event->decisions[i];
		uuid(dice, &decision->decision_id, &decision->decision_id_text);
		approver(dice, &decision->decided_by);
		decision->decided_at = number(dice);
		decision->decision = (enum decision_kind)roll_below(dice, 4);
		decision->reason = text_or_null(dice, 4096, false);
		source(dice, &decision->source);
	}
	random_edits(dice, &ret_event->edits);
	random_suspend(dice, &ret_event->suspend);
	ret_event->migrated_from = text_or_null(dice, 16, false);
	ret_event->resumed_at = number(dice);
	ret_event->expires_at = time_or_none(dice);
	signature(dice, &ret_event->signature);
}

void random_gate(struct dice *dice, struct gate_event *ret_event)
{
	*ret_event = (struct gate_event){ 0 };
	uuid(dice, &ret_event->checkpoint_id, NULL);
	ret_event->session_id = not_empty(dice, 255, false);
	ret_event->gate_id = text(dice, 255, false);
	ret_event->tenant = text(dice, 255, false);
	ret_event->agent = text(dice, 255, false);
	ret_event->state = (enum gate_state)roll_below(dice, GATE_STATE_COUNT);
	ret_event->title = text(dice, 1024, false);
	ret_event->has_risk = chance(dice, 50);
	ret_event->risk = ret_event->has_risk ? (enum risk)roll_below(dice, 4) : RISK_LOW;
	action(dice, &ret_event->action);
	ret_event->requested_by = text(dice, 255, false);
	ret_event->required_approvals = (int32_t)number(dice);
	ret_event->approvals = (int32_t)number(dice);
	for (size_t i = 0; i < DIGEST_LEN; i++)
		ret_event->digest[i] = (uint8_t)next(dice);
	ret_event->at = number(dice);
	ret_event->expires_at = time_or_none(dice);
	ret_event->reason = text_or_null(dice, 4096, false);
	ret_event->version = number(dice);
}
