#include "bench/session.h"

#include "bench/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define REST_BYTES   420 /* of a suspend event, its history aside */
#define ENTRY_BYTES  16  /* of an entry, its text aside */
#define ENTRY_MIN    90
#define ENTRIES_MAX  32768
#define SESSION_TEXT "bench-%s-%010u"
#define NUMBER_LEN   10

struct session_writer {
	const char *run;
	size_t size;
	struct codec *codec;
	struct arena *arena;
	struct buffer scratch;
	struct history_entry *entries;
	size_t entries_len;
};

enum fate session_writer_new(struct session_writer **ret_writer, const char *run, size_t size,
                             struct error *error)
{
	struct session_writer *writer = calloc(1, sizeof(*writer));
	struct codec_settings settings = { .record_bytes = 2 * SESSION_BYTES_MAX };
	enum fate fate = FATE_OK;

	if (writer == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the sessions");
	writer->run = run;
	writer->size = size;
	buffer_init(&writer->scratch, 2 * SESSION_BYTES_MAX);
	writer->arena = arena_new(8 * SESSION_BYTES_MAX);
	writer->entries = calloc(ENTRIES_MAX, sizeof(*writer->entries));
	if (writer->arena == NULL || writer->entries == NULL)
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the sessions");
	if (fate == FATE_OK)
		fate = codec_new(&writer->codec, &settings, error);
	if (fate == FATE_OK)
		*ret_writer = writer;
	else
		session_writer_free(writer);
	return fate;
}

void session_writer_free(struct session_writer *writer)
{
	if (writer == NULL)
		return;
	codec_free(writer->codec);
	arena_free(writer->arena);
	buffer_done(&writer->scratch);
	free(writer->entries);
	free(writer);
}

/* ---- the history ---- */

/* What was written to the scratch buffer, to stay. */
static struct view keep(struct session_writer *writer)
{
	struct view kept = arena_copy(writer->arena, buffer_view(&writer->scratch));

	writer->scratch.len = 0; /* nothing of it is a secret */
	return kept;
}

static struct view prose(struct session_writer *writer, struct dice *dice, size_t len)
{
	text_prose(&writer->scratch, dice, len);
	if (writer->scratch.len > len)
		writer->scratch.len = len;
	return keep(writer);
}

static struct history_entry *add_entry(struct session_writer *writer, enum role role, struct view content)
{
	struct history_entry *entry = &writer->entries[writer->entries_len++];

	*entry =
		(struct history_entry){ .role = role,
		                        .content = content,
		                        .at = INT64_C(1764500000000000) + (int64_t)writer->entries_len * 7000123 };
	return entry;
}

/* An agent that calls a tool, and what the tool answers. Returns the bytes of both. */
static size_t add_call(struct session_writer *writer, struct dice *dice, size_t len)
{
	static const char *const tools[] = { "read_file", "run_query", "search_code", "list_invoices" };
	const char *tool = tools[dice_below(dice, 4)];
	struct tool_call *call = arena_alloc(writer->arena, sizeof(*call));
	struct history_entry *entry =
		add_entry(writer, ROLE_AGENT, prose(writer, dice, 40 + dice_below(dice, 60)));

	if (call == NULL)
		return len;
	text_call_id(&writer->scratch, dice);
	call->id = keep(writer);
	call->name = view_of(tool);
	text_arguments(&writer->scratch, dice, 70 + dice_below(dice, 120));
	call->arguments = keep(writer);
	entry->tool_calls = call;
	entry->tool_calls_len = 1;
	size_t used =
		entry->content.len + 2 * call->id.len + call->arguments.len + 2 * strlen(tool) + 3 * ENTRY_BYTES;
	size_t answer = used + ENTRY_MIN < len ? len - used : ENTRY_MIN;
	text_output(&writer->scratch, dice, answer);
	if (writer->scratch.len > answer)
		writer->scratch.len = answer;
	entry = add_entry(writer, ROLE_TOOL, keep(writer));
	entry->name = view_of(tool);
	entry->tool_call_id = call->id;
	return used + answer;
}

/* Turns of a person, calls of tools and what the agent says to it, until so many bytes are full. */
static void fill_history(struct session_writer *writer, struct dice *dice, size_t bytes)
{
	size_t left = bytes;

	writer->entries_len = 0;
	add_entry(writer, ROLE_SYSTEM, prose(writer, dice, bytes < 4096 ? 200 : 1200));
	left -= writer->entries[0].content.len + ENTRY_BYTES;
	while (left > ENTRY_MIN + ENTRY_BYTES && writer->entries_len + 3 < ENTRIES_MAX) {
		uint32_t turn = dice_below(dice, 10);
		size_t len = 120 + dice_below(dice, turn < 4 ? 400 : 900), used;
		if (turn >= 4 && left > 500) {
			used = add_call(writer, dice, len + 300 < left ? len + 300 : left);
		} else {
			len = len + ENTRY_BYTES < left ? len : left - ENTRY_BYTES;
			add_entry(writer, writer->entries_len % 2 ? ROLE_USER : ROLE_AGENT, prose(writer, dice, len));
			used = len + ENTRY_BYTES;
		}
		left -= used < left ? used : left;
	}
}

/* ---- the records ---- */

static struct view name_session(struct session_writer *writer, uint32_t number)
{
	return view_of(arena_printf(writer->arena, SESSION_TEXT, writer->run, number));
}

static enum fate name_ids(struct session_writer *writer, struct uuid *ret_id, struct view *ret_text,
                          struct error *error)
{
	char text[UUID_TEXT_LEN + 1];
	enum fate fate = uuid_make_v7(ret_id, error);

	if (fate != FATE_OK)
		return fate;
	uuid_format(ret_id, text);
	*ret_text = arena_copy(writer->arena, view_of(text));
	return ret_text->data != NULL ? FATE_OK
	                              : error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a session");
}

static enum fate put_suspend(struct session_writer *writer, struct suspend_event *event, struct buffer *out,
                             struct error *error)
{
	static struct view path[] = { VIEW_LITERAL("root"), VIEW_LITERAL("migration") };
	static struct config_entry config[] = {
		{ .key = VIEW_LITERAL("VRAM_limit_gb"), .kind = CONFIG_DOUBLE, .value.real = 16.0 },
		{ .key = VIEW_LITERAL("user_id"), .kind = CONFIG_STRING, .value.string = VIEW_LITERAL("usr_99") },
		{ .key = VIEW_LITERAL("retries"), .kind = CONFIG_LONG, .value.number = 3 },
	};
	static struct tool_permission tools[] = { { VIEW_LITERAL("run_query"), PERMISSION_ASK },
		                                      { VIEW_LITERAL("read_file"), PERMISSION_ALLOW } };

	event->step.path = path;
	event->step.path_len = 2;
	event->config = config;
	event->config_len = 3;
	event->tool_permissions = tools;
	event->tool_permissions_len = 2;
	return codec_put_suspend(writer->codec, event, out, error);
}

/* How large suspend seq of `of` is. */
static size_t size_at(const struct session_writer *writer, uint32_t seq, uint32_t of)
{
	size_t least = SESSION_BYTES_MIN < writer->size ? SESSION_BYTES_MIN : writer->size;

	return seq >= of ? writer->size : least + (writer->size - least) * seq / of;
}

enum fate session_suspend(struct session_writer *writer, uint32_t number, struct buffer *out,
                          struct uuid *ret_id, struct error *error)
{
	return session_suspend_grown(writer, number, 1, 1, out, ret_id, error);
}

enum fate session_suspend_grown(struct session_writer *writer, uint32_t number, uint32_t seq, uint32_t of,
                                struct buffer *out, struct uuid *ret_id, struct error *error)
{
	struct dice dice = { .state = number * UINT64_C(0x2545f4914f6cdd1d) + writer->size };
	struct suspend_event event = {
		.suspend_seq = seq,
		.tenant = VIEW_LITERAL("default"),
		.agent = VIEW_LITERAL("api-migrator"),
		.agent_version = VIEW_LITERAL("4.2.0"),
		.suspended_at = clock_real_us(),
		.step = { .graph = VIEW_LITERAL("release"),
		          .node = VIEW_LITERAL("AWAITING_HUMAN_APPROVAL"),
		          .resume_at = VIEW_LITERAL("run_migration"),
		          .attempt = 1 },
		.gate = { .gate_id = VIEW_LITERAL("schema-change"),
		          .title = VIEW_LITERAL("Apply the migration to production?"),
		          .action = { .present = true,
		                      .tool = VIEW_LITERAL("run_query"),
		                      .arguments = VIEW_LITERAL("{\"environment\":\"production\",\"dry_run\":false}"),
		                      .risk = RISK_HIGH,
		                      .summary = VIEW_LITERAL("Runs the migration on the production database") },
		          .requested_by = VIEW_LITERAL("usr_99"),
		          .required_approvals = 1,
		          .expires_at = TIME_NONE },
	};
	enum fate fate;

	arena_reset(writer->arena);
	fate = name_ids(writer, ret_id, &event.checkpoint_id_text, error);
	if (fate != FATE_OK)
		return fate;
	event.checkpoint_id = *ret_id;
	event.session_id = name_session(writer, number);
	if (getrandom(event.salt, sizeof(event.salt), 0) != (ssize_t)sizeof(event.salt))
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "no random bytes for a salt");
	fill_history(writer, &dice, size_at(writer, seq, of) - REST_BYTES);
	event.history = writer->entries;
	event.history_len = writer->entries_len;
	buffer_reset(out);
	return put_suspend(writer, &event, out, error);
}

enum fate session_approve(struct session_writer *writer, uint32_t number, const struct uuid *id,
                          struct buffer *out, struct error *error)
{
	char text[UUID_TEXT_LEN + 1];
	struct approval_event event = {
		.checkpoint_id = *id,
		.decision = DECISION_APPROVE,
		.decided_by = { VIEW_LITERAL("bench"), VIEW_LITERAL("reviewer@example.com"),
		                VIEW_LITERAL("A Reviewer") },
		.decided_at = clock_real_us(),
		.reason = VIEW_LITERAL("The plan is safe to run."),
		.source = { VIEW_LITERAL("bench"), VIEW_LITERAL(""), VIEW_LITERAL("") },
	};
	enum fate fate;

	arena_reset(writer->arena);
	uuid_format(id, text);
	event.checkpoint_id_text = view_of(text);
	event.session_id = name_session(writer, number);
	fate = name_ids(writer, &event.decision_id, &event.decision_id_text, error);
	buffer_reset(out);
	return fate == FATE_OK ? codec_put_approval(writer->codec, &event, out, error) : fate;
}

bool session_number(const struct session_writer *writer, struct view session_id, uint32_t *ret_number)
{
	char start[64];
	uint64_t number = 0;
	int len = snprintf(start, sizeof(start), "bench-%.40s-", writer->run);

	if (session_id.len != (size_t)len + NUMBER_LEN || memcmp(session_id.data, start, (size_t)len) != 0)
		return false;
	for (size_t i = (size_t)len; i < session_id.len; i++) {
		if (session_id.data[i] < '0' || session_id.data[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(session_id.data[i] - '0');
	}
	*ret_number = (uint32_t)number;
	return number <= UINT32_MAX;
}
