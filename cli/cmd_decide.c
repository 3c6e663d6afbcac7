/* cmd_decide.c - `fermata approve`, `reject` and `cancel`. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/event_headers.h"
#include "cli/find.h"
#include "cli/login.h"
#include "cli/row_json.h"
#include "cli/schemas.h"
#include "core/json_scan.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)256 << 20)

/* A decision on its way. */
struct deciding {
	struct cli *cli;
	enum decision_kind kind;
	struct arena *arena;
	struct store *store;
	struct approval_event event;
	char checkpoint_id[UUID_TEXT_LEN + 1];
	char decision_id[UUID_TEXT_LEN + 1];
	char host[256];
	char login[256];
};

/* ---- what is decided about ---- */

static const char *verb(enum decision_kind kind)
{
	return kind == DECISION_APPROVE ? "approve" : kind == DECISION_REJECT ? "reject" : "cancel";
}

static int refuse_never_saved(const char *id)
{
	struct uuid uuid;

	if (uuid_parse(view_of(id), &uuid))
		return cli_no(
			"checkpoint %s was never saved: nothing is stored under that id; --early sends the decision "
			"all the same, it counts when the suspend comes",
			id);
	return cli_no("session %s was never saved: nothing is stored under that name", id);
}

static int refuse_settled(const struct deciding *deciding, const struct checkpoint *row)
{
	char id[UUID_TEXT_LEN + 1];
	struct view session = row->session_id;

	uuid_format(&row->id, id);
	if (!row->filled)
		return cli_no(
			"checkpoint %s is not known yet: decisions about it came, its suspend event has not; --early "
			"sends this one too",
			id);
	return cli_no("checkpoint %s of session %.*s is settled: it is %s%s%s, there is nothing left to %s", id,
	              (int)session.len, (const char *)session.data, gate_state_name(row->state),
	              row->has_verdict ? ", " : "", row->has_verdict ? verdict_name(row->verdict) : "",
	              verb(deciding->kind));
}

/* A session without a gate that waits. */
static int refuse_session(struct deciding *deciding, const char *id, struct error *error)
{
	struct found found;

	if (find_checkpoints(deciding->store, id, false, deciding->arena, &found, error) != FATE_OK)
		return cli_fail(error);
	if (found.len == 0)
		return refuse_never_saved(id);
	return refuse_settled(deciding, found.rows[found.len - 1]);
}

static void use_row(struct deciding *deciding, const struct checkpoint *row)
{
	struct approval_event *event = &deciding->event;

	event->checkpoint_id = row->id;
	if (!row->filled)
		return;
	event->session_id = row->session_id;
	event->has_digest = true;
	memcpy(event->checkpoint_digest, row->digest, DIGEST_LEN);
}

/* --early: whatever the row says, or without one. */
static int choose_early(struct deciding *deciding, const char *id, const struct found *found)
{
	if (found->by_checkpoint)
		use_row(deciding, found->rows[0]);
	else if (!uuid_parse(view_of(id), &deciding->event.checkpoint_id))
		return cli_usage("--early needs a checkpoint_id, and %s is none", id);
	return EXIT_YES;
}

static int choose(struct deciding *deciding, const char *id)
{
	struct error error = { .fate = FATE_OK };
	struct found found;

	if (find_checkpoints(deciding->store, id, true, deciding->arena, &found, &error) != FATE_OK)
		return cli_fail(&error);
	if (cli_given(deciding->cli, "early"))
		return choose_early(deciding, id, &found);
	if (found.len == 0)
		return refuse_session(deciding, id, &error);
	if (found.len > 1)
		return find_say_several(id, &found, "wait");
	if (!checkpoint_is_open(found.rows[0]))
		return refuse_settled(deciding, found.rows[0]);
	use_row(deciding, found.rows[0]);
	return EXIT_YES;
}

/* ---- who decides ---- */

static void fill_person(struct deciding *deciding)
{
	const char *as = cli_value(deciding->cli, "as"), *issuer = cli_value(deciding->cli, "issuer");
	struct approver *by = &deciding->event.decided_by;

	login_name(deciding->login, sizeof(deciding->login));
	by->issuer = view_of(issuer != NULL ? issuer : "local");
	by->subject = view_of(as != NULL ? as : deciding->login);
	by->display = by->subject;
	if (gethostname(deciding->host, sizeof(deciding->host) - 1) != 0)
		snprintf(deciding->host, sizeof(deciding->host), "unknown");
	deciding->event.source = (struct source){ view_of("cli"), view_of(deciding->host), view_of("") };
}

/* ---- what is changed ---- */

static enum fate take_edit(struct deciding *deciding, const char *text, struct error *error)
{
	struct edits *edits = &deciding->event.edits;
	const char *equals = strchr(text, '=');

	if (equals == NULL || equals == text)
		return error_set(error, FATE_FATAL, ERR_USAGE, "--edit %.60s: it is to be KEY=VALUE", text);
	struct view key = { (const uint8_t *)text, (size_t)(equals - text) };
	for (size_t i = 0; i < edits->config_len; i++)
		if (view_equal(edits->config[i].key, key))
			return error_set(error, FATE_FATAL, ERR_USAGE, "--edit %.*s is given twice", (int)key.len, text);
	return config_entry_from_text(key, view_of(equals + 1), deciding->arena,
	                              &edits->config[edits->config_len++], error);
}

static enum fate fill_edits(struct deciding *deciding, struct error *error)
{
	struct edits *edits = &deciding->event.edits;
	const char *text, *arguments = cli_value(deciding->cli, "arguments");
	size_t count = 0;

	while (cli_value_at(deciding->cli, "edit", count) != NULL)
		count++;
	if (arguments != NULL && !json_scan(view_of(arguments)))
		return error_set(error, FATE_FATAL, ERR_USAGE, "--arguments: it is to be JSON");
	edits->present = count > 0 || arguments != NULL;
	edits->action_arguments = view_of(arguments);
	edits->config = arena_array(deciding->arena, count, sizeof(*edits->config));
	if (edits->config == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the edits");
	for (size_t i = 0; (text = cli_value_at(deciding->cli, "edit", i)) != NULL; i++) {
		enum fate fate = take_edit(deciding, text, error);
		if (fate != FATE_OK)
			return fate;
	}
	if (edits->present && !config_flag(deciding->cli->config, PARAM_DECISIONS_ALLOW_EDITS))
		cli_warn("decisions.allow_edits is off here: a worker that is configured alike refuses the decision");
	return FATE_OK;
}

static enum fate fill_event(struct deciding *deciding, struct error *error)
{
	struct approval_event *event = &deciding->event;

	if (uuid_make_v7(&event->decision_id, error) != FATE_OK || fill_edits(deciding, error) != FATE_OK)
		return error->fate;
	uuid_format(&event->decision_id, deciding->decision_id);
	uuid_format(&event->checkpoint_id, deciding->checkpoint_id);
	event->decision_id_text = view_of(deciding->decision_id);
	event->checkpoint_id_text = view_of(deciding->checkpoint_id);
	if (event->session_id.data == NULL)
		event->session_id = view_of("");
	event->decision = deciding->kind;
	event->decided_at = clock_real_us();
	event->reason = view_of(cli_value(deciding->cli, "reason"));
	fill_person(deciding);
	return FATE_OK;
}

/* ---- sending ---- */

static enum fate produce(struct deciding *deciding, struct view value, struct error *error)
{
	const char *topic = config_text(deciding->cli->config, PARAM_TOPICS_APPROVALS);
	struct producer *producer = NULL;
	struct event_headers headers;
	struct outgoing outgoing = { .topic = topic,
		                         .partition = PARTITION_BY_KEY,
		                         .key = view_of(deciding->checkpoint_id),
		                         .value = value,
		                         .timestamp_us = TIME_NONE };
	enum fate fate = connect_producer(deciding->cli, topic, NULL, NULL, &producer, error);

	if (fate != FATE_OK)
		return fate;
	event_headers_fill(&headers, &deciding->event.decision_id, "fermata.v1.ApprovalEvent",
	                   deciding->event.decided_at);
	outgoing.headers = headers.list;
	outgoing.headers_len = headers.len;
	fate = producer_send(producer, &outgoing, error);
	if (fate == FATE_OK)
		fate = producer_wait(producer, 3 * KAFKA_PATIENCE_MS, error);
	producer_close(producer);
	return fate == FATE_OK ? FATE_OK : kafka_away(deciding->cli, error);
}

static enum fate encode_and_produce(struct deciding *deciding, struct error *error)
{
	const char *topic = config_text(deciding->cli->config, PARAM_TOPICS_APPROVALS);
	struct schemas schemas;
	struct buffer value;
	enum fate fate;

	buffer_init(&value, 2 * (size_t)config_number(deciding->cli->config, PARAM_LIMITS_RECORD_BYTES) + 65536);
	fate = schemas_open(deciding->cli, deciding->store, &schemas, error);
	if (fate == FATE_OK)
		fate = schemas_write(&schemas, RECORD_APPROVAL, topic, error);
	if (fate == FATE_OK)
		fate = codec_put_approval(schemas.codec, &deciding->event, &value, error);
	if (fate == FATE_OK)
		fate = produce(deciding, buffer_view(&value), error);
	schemas_close(&schemas);
	buffer_done(&value);
	return fate;
}

static int send_decision(struct deciding *deciding)
{
	struct error error = { .fate = FATE_OK };
	struct json_line *line;

	if (fill_event(deciding, &error) != FATE_OK || encode_and_produce(deciding, &error) != FATE_OK)
		return cli_fail(&error);
	if (!deciding->cli->json) {
		printf("%s\n", deciding->decision_id);
		return cli_sent(true, "decision", deciding->decision_id);
	}
	line = json_line_new();
	json_line_text(line, "decision_id", view_of(deciding->decision_id));
	json_line_text(line, "checkpoint_id", view_of(deciding->checkpoint_id));
	json_line_text(line, "session_id", deciding->event.session_id);
	json_line_text(line, "decision", view_of(decision_kind_name(deciding->kind)));
	return cli_sent(json_line_write(line, &error) == FATE_OK, "decision", deciding->decision_id);
}

static int decide(struct cli *cli, enum decision_kind kind)
{
	struct deciding deciding = { .cli = cli, .kind = kind, .arena = arena_new(ARENA_BYTES) };
	struct error error = { .fate = FATE_OK };

	signal(SIGPIPE, SIG_IGN); /* who does not read the id is told that the decision was sent */
	enum fate fate = deciding.arena == NULL
	                     ? error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for a decision")
	                     : connect_store(cli, &deciding.store, &error);
	int code = fate == FATE_OK ? choose(&deciding, cli_argument(cli, 0)) : cli_fail(&error);

	if (fate == FATE_OK && code == EXIT_YES)
		code = send_decision(&deciding);
	store_close(deciding.store);
	arena_free(deciding.arena);
	return code;
}

int cmd_approve(struct cli *cli)
{
	return decide(cli, DECISION_APPROVE);
}

int cmd_reject(struct cli *cli)
{
	return decide(cli, DECISION_REJECT);
}

int cmd_cancel(struct cli *cli)
{
	return decide(cli, DECISION_CANCEL);
}
