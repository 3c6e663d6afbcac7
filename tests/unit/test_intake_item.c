// links: worker schemas vault config store consumer producer core
// One record on its way into a batch: decoded, checked, sealed; and what of it is kept in clear.
#include "test_learn_none.h"
#include "test_vault.h"

#include "config/config.h"
#include "schemas/codec.h"
#include "worker/intake.h"

#define MIB     ((size_t)1 << 20)
#define ID      "0192f0c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f"
#define SECRET  "the-migration-script-is-done"
#define AT      INT64_C(1700000000123000)
#define HEADERS 4

/* ---- instead of the rooms around it: the headers of the record, and what the installation knows ---- */

static struct header headers[HEADERS];
static size_t headers_len;
static int32_t partitions;

struct view record_header(const struct record *record, const char *name)
{
	(void)record;
	for (size_t i = headers_len; i > 0; i--)
		if (strcmp(headers[i - 1].name, name) == 0)
			return headers[i - 1].value;
	return VIEW_NULL;
}

int32_t worker_partitions(const struct worker *worker, const char *topic)
{
	(void)worker;
	(void)topic;
	return partitions;
}

static void set_header(const char *name, const char *value)
{
	assert_true(headers_len < HEADERS);
	headers[headers_len++] = (struct header){ name, view_of(value) };
}

/* ---- schemas ---- */

static uint8_t kept_sha256[32]; /* of what was said to be sealed last */

enum fate learn_keep_sealed(struct worker *worker, struct store *store, const uint8_t sha256[32],
                            struct error *error)
{
	(void)worker;
	(void)store;
	(void)error;
	memcpy(kept_sha256, sha256, sizeof(kept_sha256));
	return FATE_OK;
}

/* No batch is being stored. */
enum fate intake_settle(struct intake *intake, struct error *error)
{
	(void)intake;
	(void)error;
	return FATE_OK;
}

/* ---- an intake of nothing but what one record needs ---- */

struct room {
	struct test_directory directory;
	struct worker worker;
	struct intake intake;
	struct config *config;
	struct arena *values; /* of the records */
};

static int setup(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	static const char *const overrides[] = { "topics.resumes=decided", "routes.tall.agent=tall*",
		                                     "routes.tall.topic=decided.tall" };
	struct config_request request = { .overrides = overrides, .overrides_len = 3 };
	struct codec_settings settings = { .record_bytes = 8 * MIB };
	struct error error;
	char line[160];

	assert_non_null(room);
	assert_int_equal(vault_start(&error), FATE_OK);
	snprintf(line, sizeof(line), "k1 primary %s\n", test_kek(7));
	room->directory = test_directory_make();
	assert_int_equal(config_load(&room->config, &request, &error), FATE_OK);
	room->worker.config = room->config;
	room->worker.vault = test_vault(&room->directory, line);
	room->intake.worker = &room->worker;
	assert_int_equal(codec_new(&room->intake.codec, &settings, &error), FATE_OK);
	room->intake.arena = arena_new(64 * MIB);
	room->intake.scratch = arena_new(256 * MIB);
	room->values = arena_new(64 * MIB);
	assert_true(room->intake.arena && room->intake.scratch && room->values);
	headers_len = 0;
	partitions = 6;
	*state = room;
	return 0;
}

static int teardown(void **state)
{
	struct room *room = *state;

	codec_free(room->intake.codec);
	vault_close(room->worker.vault);
	config_free(room->config);
	arena_free(room->intake.arena);
	arena_free(room->intake.scratch);
	arena_free(room->values);
	test_directory_remove(&room->directory);
	free(room);
	return 0;
}

/* ---- records ---- */

static struct history_entry history[] = {
	{ .role = ROLE_SYSTEM, .content = VIEW_LITERAL("update the schema"), .at = TIME_NONE },
	{ .role = ROLE_AGENT, .content = VIEW_LITERAL(SECRET), .at = TIME_NONE },
};
static struct view approvers[] = { VIEW_LITERAL("ann"), VIEW_LITERAL("jira:bob") };
static struct label labels[] = { { VIEW_LITERAL("team"), VIEW_LITERAL("db") } };

static struct suspend_event story(void)
{
	struct suspend_event event = {
		.checkpoint_id_text = VIEW_LITERAL(ID),
		.session_id = VIEW_LITERAL("SESSION-808"),
		.suspend_seq = 3,
		.tenant = VIEW_LITERAL("default"),
		.agent = VIEW_LITERAL("migrator"),
		.agent_version = VIEW_LITERAL("1.2"),
		.suspended_at = AT - 5,
		.step = { .graph = VIEW_LITERAL("g"),
		          .node = VIEW_LITERAL("AWAITING_HUMAN_APPROVAL"),
		          .resume_at = VIEW_LITERAL("deploy") },
		.history = history,
		.history_len = 2,
		.gate = { .gate_id = VIEW_LITERAL("gate"),
		          .title = VIEW_LITERAL("Deploy?"),
		          .action = { true, VIEW_LITERAL("deploy"), VIEW_LITERAL("{\"" SECRET "\":1}"), RISK_HIGH,
		                      VIEW_LITERAL(SECRET) },
		          .requested_by = VIEW_LITERAL("usr_99"),
		          .required_approvals = 2,
		          .approvers = approvers,
		          .approvers_len = 2,
		          .expires_at = AT + 1000,
		          .on_expiry = ON_EXPIRY_HOLD,
		          .labels = labels,
		          .labels_len = 1 },
	};

	assert_true(uuid_parse(event.checkpoint_id_text, &event.checkpoint_id));
	return event;
}

static struct item item_of(struct view value, bool suspend)
{
	return (struct item){
		.suspend = suspend,
		.record = { .at = { suspend ? "suspends" : "approvals", 2, 41, AT }, .value = value },
	};
}

static struct item suspend_of(struct room *room, const struct suspend_event *event)
{
	struct buffer out;
	struct error error;

	buffer_init(&out, 16 * MIB);
	assert_int_equal(codec_put_suspend(room->intake.codec, event, &out, &error), FATE_OK);
	struct view value = arena_copy(room->values, buffer_view(&out));
	buffer_done(&out);
	return item_of(value, true);
}

static void understand(struct room *room, struct item *item)
{
	struct error error;

	assert_int_equal(intake_understand(&room->intake, item, &error), FATE_OK);
	arena_reset(room->intake.scratch); /* nothing of the item may lie there */
}

static bool holds(struct view haystack, const char *needle)
{
	return !view_is_null(haystack) && memmem(haystack.data, haystack.len, needle, strlen(needle)) != NULL;
}

/* ---- suspends ---- */

static void what_stands_in_clear(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item item = suspend_of(room, &event);

	understand(room, &item);
	assert_false(item.dead);
	const struct checkpoint *row = item.fresh;
	assert_int_equal(row->state, GATE_PENDING);
	assert_true(row->filled && !row->published && !row->has_verdict && !row->held && !row->from_ledger);
	assert_int_equal(uuid_compare(&row->id, &event.checkpoint_id), 0);
	assert_true(view_is_null(row->id_text)); /* it was sent as it is written otherwise */
	assert_true(view_equal_text(row->tenant, "default") && view_equal_text(row->session_id, "SESSION-808"));
	assert_true(view_equal_text(row->gate_id, "gate") && view_equal_text(row->title, "Deploy?"));
	assert_true(view_equal_text(row->agent, "migrator") && view_equal_text(row->agent_version, "1.2"));
	assert_true(view_equal_text(row->requested_by, "usr_99"));
	assert_int_equal(row->suspend_seq, 3);
	assert_int_equal(row->suspended_at, AT - 5);
	assert_int_equal(row->appended_at, AT);
	assert_int_equal(row->changed_at, AT);
	assert_int_equal(row->decided_at, TIME_NONE);
	assert_true(row->has_risk && row->risk == RISK_HIGH);
	assert_int_equal(row->required_approvals, 2);
	assert_int_equal(row->approvers_len, 2);
	assert_true(view_equal_text(row->approvers[1], "jira:bob"));
	assert_int_equal(row->labels_len, 1);
	assert_true(view_equal_text(row->labels[0].key, "team") && view_equal_text(row->labels[0].value, "db"));
	assert_int_equal(row->expires_at, AT + 1000);
	assert_int_equal(row->on_expiry, ON_EXPIRY_HOLD);
	assert_true(view_is_null(row->traceparent) && view_is_null(row->tracestate));
}

static void what_is_sealed_opens_to_the_bytes_without_framing(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item item = suspend_of(room, &event);
	struct seal_context context = { .tenant = event.tenant,
		                            .session_id = event.session_id,
		                            .checkpoint_id = event.checkpoint_id,
		                            .suspend_seq = 3 };
	uint8_t digest[DIGEST_LEN];
	struct view body, plain;
	struct error error;

	understand(room, &item);
	assert_true(holds(item.record.value, SECRET));
	assert_false(holds(item.fresh->sealed.body, SECRET));
	codec_schema_sha256(RECORD_SUSPEND, context.schema_sha256);
	assert_int_equal(
		vault_unseal(room->worker.vault, &context, &item.fresh->sealed, room->values, &plain, &error),
		FATE_OK);
	body = (struct view){ item.record.value.data + 10, item.record.value.len - 10 };
	assert_true(view_equal(plain, body));
	vault_checkpoint_digest(body, digest);
	assert_memory_equal(digest, item.fresh->digest, DIGEST_LEN);
}

static void the_shard_is_the_partition_of_the_session(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item item = suspend_of(room, &event);

	understand(room, &item);
	assert_true(view_equal_text(item.fresh->resumes_topic, "decided"));
	assert_int_equal(item.fresh->resumes_partition, kafka_partition(event.session_id, 6));
	event.agent = VIEW_LITERAL("tall-one");
	partitions = 3;
	item = suspend_of(room, &event);
	understand(room, &item);
	assert_true(view_equal_text(item.fresh->resumes_topic, "decided.tall"));
	assert_int_equal(item.fresh->resumes_partition, kafka_partition(event.session_id, 3));
}

static void an_id_comes_back_as_it_was_sent(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();

	event.checkpoint_id_text = VIEW_LITERAL("0192F0C1-7A2B-7C3D-8E4F-5A6B7C8D9E0F");
	struct item item = suspend_of(room, &event);
	understand(room, &item);
	assert_int_equal(uuid_compare(&item.fresh->id, &event.checkpoint_id), 0);
	assert_true(view_equal(item.fresh->id_text, event.checkpoint_id_text));
}

static void nothing_optional_is_fine(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();

	event.gate.action = (struct action){ 0 };
	event.gate.approvers_len = event.gate.labels_len = 0;
	event.gate.expires_at = TIME_NONE;
	event.history_len = 0;
	struct item item = suspend_of(room, &event);
	understand(room, &item);
	assert_false(item.fresh->has_risk);
	assert_int_equal(item.fresh->expires_at, TIME_NONE);
	assert_int_equal(item.fresh->approvers_len + item.fresh->labels_len, 0);
}

/* ---- trace context ---- */

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void the_trace_is_carried(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item item = suspend_of(room, &event);

	set_header("traceparent", TRACE);
	set_header("tracestate", "congo=t61rcWkgMzE,\trojo=00f067aa0ba902b7");
	understand(room, &item);
	assert_true(view_equal_text(item.fresh->traceparent, TRACE));
	assert_true(view_equal_text(item.fresh->tracestate, "congo=t61rcWkgMzE,\trojo=00f067aa0ba902b7"));
}

static void a_trace_that_is_none_is_not_carried(void **state)
{
	static const char *const wrong[] = {
		"",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
	};
	struct room *room = *state;
	struct suspend_event event = story();

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct item item = suspend_of(room, &event);
		headers_len = 0;
		set_header("traceparent", wrong[i]);
		set_header("tracestate", "congo=t61rcWkgMzE");
		understand(room, &item);
		assert_false(item.dead);
		assert_true(view_is_null(item.fresh->traceparent) && view_is_null(item.fresh->tracestate));
	}
}

static void a_state_that_is_none_leaves_the_parent(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	char endless[8192];

	memset(endless, 'a', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	const char *const wrong[] = { "congo=\x01", "congo=\xc3", endless };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct item item = suspend_of(room, &event);
		headers_len = 0;
		set_header("traceparent", TRACE);
		set_header("tracestate", wrong[i]);
		understand(room, &item);
		assert_true(view_equal_text(item.fresh->traceparent, TRACE));
		assert_true(view_is_null(item.fresh->tracestate));
	}
	headers[1].value = VIEW_NULL;
	struct item item = suspend_of(room, &event);
	understand(room, &item);
	assert_true(view_is_null(item.fresh->tracestate));
}

/* ---- dead letters ---- */

static void assert_dead(struct room *room, struct item *item, enum error_code code, const char *says)
{
	understand(room, item);
	assert_true(item->dead && !item->judged_dead);
	assert_int_equal(item->why.code, code);
	assert_int_equal(item->why.fate, FATE_REJECT);
	assert_non_null(strstr(item->why.message, says));
	assert_null(strstr(item->why.message, SECRET));
}

static void what_cannot_be_understood_is_dead(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item null_value = item_of(VIEW_NULL, true), empty = item_of(VIEW_LITERAL(""), true);
	struct item text = item_of(VIEW_LITERAL("hello, world"), true);
	struct item good = suspend_of(room, &event), cut = good, crossed = good, unknown = good;
	uint8_t *other = arena_alloc(room->values, good.record.value.len);

	assert_dead(room, &null_value, ERR_FRAMING, "");
	assert_dead(room, &empty, ERR_FRAMING, "");
	assert_dead(room, &text, ERR_FRAMING, "");
	cut.record.value.len--;
	assert_dead(room, &cut, ERR_MALFORMED, "");
	crossed.suspend = false; /* a suspend event on the approvals topic */
	assert_dead(room, &crossed, ERR_UNKNOWN_SCHEMA, "SuspendEvent");
	assert_non_null(other);
	memcpy(other, good.record.value.data, good.record.value.len);
	other[2] ^= 1;
	unknown.record.value.data = other;
	assert_dead(room, &unknown, ERR_UNKNOWN_SCHEMA, "");
}

/* The writer checks what it writes, so what is wrong is put into the bytes afterwards. */
static void what_is_invalid_names_the_field(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item item = suspend_of(room, &event);
	uint8_t *bytes = (uint8_t *)(uintptr_t)item.record.value.data;
	uint8_t *json = memmem(bytes, item.record.value.len, "{\"" SECRET, 2 + strlen(SECRET));

	assert_non_null(json);
	*json = '[';
	assert_dead(room, &item, ERR_INVALID, "gate.action.arguments");
	*json = '{';
	uint8_t *id = memmem(bytes, item.record.value.len, ID, strlen(ID));
	assert_non_null(id);
	*id = 'x';
	assert_dead(room, &item, ERR_INVALID, "checkpoint_id");
}

static void what_does_not_fit_says_so(void **state)
{
	struct room *room = *state;
	struct suspend_event event = story();
	struct item item = suspend_of(room, &event);
	struct error error;

	arena_free(room->intake.arena);
	room->intake.arena = arena_new(1024);
	assert_non_null(room->intake.arena);
	assert_int_equal(intake_understand(&room->intake, &item, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY); /* the batch is written, then it is tried again */
	assert_false(item.dead);
	arena_free(room->intake.scratch);
	room->intake.scratch = arena_new(128);
	assert_non_null(room->intake.scratch);
	assert_int_equal(intake_understand(&room->intake, &item, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
}

/* ---- approvals ---- */

#define DECISION_ID "0192f0c1-7a2b-7c3d-8e4f-AAAAAAAAAAAA"

static struct config_entry raised[] = {
	{ .key = VIEW_LITERAL("VRAM_limit_gb"), .kind = CONFIG_DOUBLE, .value = { .real = 24.0 } },
	{ .key = VIEW_LITERAL(SECRET), .kind = CONFIG_STRING, .value = { .string = VIEW_LITERAL(SECRET) } },
};

static struct approval_event approval(void)
{
	struct approval_event event = {
		.decision_id_text = VIEW_LITERAL(DECISION_ID),
		.checkpoint_id_text = VIEW_LITERAL(ID),
		.session_id = VIEW_LITERAL("SESSION-808"),
		.decision = DECISION_REJECT,
		.decided_by = { VIEW_LITERAL("jira"), VIEW_LITERAL("bob"), VIEW_LITERAL("Bob B.") },
		.decided_at = AT - 7,
		.reason = VIEW_LITERAL("not today"),
		.has_digest = true,
		.source = { VIEW_LITERAL("jira"), VIEW_LITERAL("OPS-1"), VIEW_LITERAL("d-1") },
	};

	memset(event.checkpoint_digest, 0xD1, DIGEST_LEN);
	assert_true(uuid_parse(event.decision_id_text, &event.decision_id));
	assert_true(uuid_parse(event.checkpoint_id_text, &event.checkpoint_id));
	return event;
}

static struct item approval_of(struct room *room, const struct approval_event *event)
{
	struct buffer out;
	struct error error;

	buffer_init(&out, MIB);
	assert_int_equal(codec_put_approval(room->intake.codec, event, &out, &error), FATE_OK);
	struct view value = arena_copy(room->values, buffer_view(&out));
	buffer_done(&out);
	return item_of(value, false);
}

static void an_approval_is_kept_whole(void **state)
{
	struct room *room = *state;
	struct approval_event event = approval();
	struct item item = approval_of(room, &event);
	uint8_t digest[DIGEST_LEN];

	understand(room, &item);
	assert_false(item.dead);
	const struct decision *decision = item.decision;
	assert_int_equal(uuid_compare(&decision->id, &event.decision_id), 0);
	assert_int_equal(uuid_compare(&decision->checkpoint_id, &event.checkpoint_id), 0);
	assert_true(view_equal_text(decision->id_text, DECISION_ID));
	assert_int_equal(decision->kind, DECISION_REJECT);
	assert_true(view_equal_text(decision->decided_by.issuer, "jira"));
	assert_true(view_equal_text(decision->decided_by.subject, "bob"));
	assert_true(view_equal_text(decision->decided_by.display, "Bob B."));
	assert_int_equal(decision->decided_at, AT - 7);
	assert_true(view_equal_text(decision->stated_reason, "not today"));
	assert_true(view_equal_text(decision->stated_session, "SESSION-808"));
	assert_true(view_equal_text(decision->source.system, "jira"));
	assert_true(view_equal_text(decision->source.ref, "OPS-1"));
	assert_true(view_equal_text(decision->source.delivery_id, "d-1"));
	assert_true(decision->has_digest);
	assert_memory_equal(decision->checkpoint_digest, event.checkpoint_digest, DIGEST_LEN);
	vault_digest((struct view){ item.record.value.data + 10, item.record.value.len - 10 }, digest);
	assert_memory_equal(decision->record_digest, digest, DIGEST_LEN);
	assert_string_equal(decision->at.topic, "approvals");
	assert_int_equal(decision->at.partition, 2);
	assert_int_equal(decision->at.offset, 41);
	assert_int_equal(decision->at.appended_at, AT);
	assert_false(decision->has_edits);
	assert_true(view_is_null(decision->edits.body));
}

static void an_approval_without_reason_or_digest(void **state)
{
	struct room *room = *state;
	struct approval_event event = approval();

	event.reason = VIEW_NULL;
	event.has_digest = false;
	event.session_id = VIEW_LITERAL("");
	struct item item = approval_of(room, &event);
	understand(room, &item);
	assert_true(view_is_null(item.decision->stated_reason));
	assert_false(item.decision->has_digest);
	assert_int_equal(item.decision->stated_session.len, 0);
}

static void edits_are_sealed_under_the_two_ids(void **state)
{
	struct room *room = *state;
	struct approval_event event = approval();
	struct edits edits;
	struct view plain;
	struct error error;

	event.decision = DECISION_APPROVE;
	event.edits = (struct edits){ true, raised, 2, VIEW_LITERAL("{\"n\":1}") };
	struct item item = approval_of(room, &event);
	understand(room, &item);
	struct decision *decision = item.decision;
	assert_true(decision->has_edits);
	assert_false(holds(decision->edits.body, SECRET));
	assert_int_equal(vault_unseal_edits(room->worker.vault, VIEW_LITERAL(""), &decision->checkpoint_id,
	                                    &decision->id, &decision->edits, room->values, &plain, &error),
	                 FATE_OK);
	assert_int_equal(codec_take_edits(room->intake.codec, plain, room->values, &edits, &error), FATE_OK);
	assert_true(edits_equal(&edits, &event.edits));
	struct uuid other = decision->id;
	other.bytes[15] ^= 1; /* moved to another decision they do not open */
	assert_int_equal(vault_unseal_edits(room->worker.vault, VIEW_LITERAL(""), &decision->checkpoint_id,
	                                    &other, &decision->edits, room->values, &plain, &error),
	                 FATE_REJECT);
}

static void an_approval_that_is_none_is_dead(void **state)
{
	struct room *room = *state;
	struct approval_event event = approval();
	struct item item = approval_of(room, &event), cut = item;
	uint8_t *bytes = (uint8_t *)(uintptr_t)item.record.value.data;
	uint8_t *id = memmem(bytes, item.record.value.len, ID, strlen(ID));

	cut.record.value.len -= 3;
	assert_dead(room, &cut, ERR_MALFORMED, "");
	assert_non_null(id);
	id[8] = 'x';
	assert_dead(room, &item, ERR_INVALID, "checkpoint_id");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_stands_in_clear),
		TEST(what_is_sealed_opens_to_the_bytes_without_framing),
		TEST(the_shard_is_the_partition_of_the_session),
		TEST(an_id_comes_back_as_it_was_sent),
		TEST(nothing_optional_is_fine),
		TEST(the_trace_is_carried),
		TEST(a_trace_that_is_none_is_not_carried),
		TEST(a_state_that_is_none_leaves_the_parent),
		TEST(what_cannot_be_understood_is_dead),
		TEST(what_is_invalid_names_the_field),
		TEST(what_does_not_fit_says_so),
		TEST(an_approval_is_kept_whole),
		TEST(an_approval_without_reason_or_digest),
		TEST(edits_are_sealed_under_the_two_ids),
		TEST(an_approval_that_is_none_is_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
