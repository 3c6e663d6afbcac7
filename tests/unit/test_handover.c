// links: worker schemas config core
// Which gate events intake hands over to the relays of its process, and that they say what the row says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/handover.h"
#include "worker/tray.h"

#include <string.h>

#define SUSPENDED INT64_C(1700000000000000)

static struct config *config;
static struct worker worker;
static struct intake intake;
static struct arena *arena;

/* What was handed over. */
static struct {
	size_t len;
	struct checkpoint row;
	struct tray_event event;
	struct gate_event gate;
} told;

/* ---- in the place of the shards ---- */

void shards_hand_over(struct worker *of, const struct checkpoint *row, const struct tray_event *event)
{
	struct error error;

	assert_ptr_equal(of, &worker);
	told.len++;
	told.row = *row;
	told.event = *event;
	assert_int_equal(codec_take_gate(intake.judging, event->value, arena, &told.gate, &error), FATE_OK);
}

uint64_t store_shard_bit(struct view topic, int32_t partition)
{
	(void)topic;
	return UINT64_C(1) << partition;
}

/* ---- one suspend, as it comes out of the judge ---- */

static struct checkpoint fresh, row;
static struct item item;
static struct item *items[] = { &item };
static struct checkpoint_write write;
static struct batch_write batch;

static int setup(void **state)
{
	(void)state;
	memset(&told, 0, sizeof(told));
	fresh = (struct checkpoint){
		.id = { { 1, 2, 3 } },
		.state = GATE_PENDING,
		.filled = true,
		.tenant = VIEW_LITERAL("acme"),
		.session_id = VIEW_LITERAL("session"),
		.gate_id = VIEW_LITERAL("gate"),
		.agent = VIEW_LITERAL("agent"),
		.requested_by = VIEW_LITERAL("someone"),
		.title = VIEW_LITERAL("May it?"),
		.required_approvals = 1,
		.appended_at = SUSPENDED,
		.changed_at = SUSPENDED,
		.expires_at = TIME_NONE,
		.decided_at = TIME_NONE,
		.has_risk = true,
		.risk = RISK_HIGH,
		.traceparent = VIEW_LITERAL("parent"),
		.resumes_topic = VIEW_LITERAL("resumes"),
		.resumes_partition = 3,
	};
	row = fresh;
	row.version = SUSPENDED;
	item = (struct item){ .suspend = true,
		                  .fresh = &fresh,
		                  .action = { .present = true,
		                              .tool = VIEW_LITERAL("mail"),
		                              .arguments = VIEW_LITERAL("{\"to\":\"all\"}"),
		                              .risk = RISK_HIGH,
		                              .summary = VIEW_LITERAL("A mail to all") } };
	write = (struct checkpoint_write){ .checkpoint = &row, .insert = true, .fill = true, .gate_event = true };
	batch = (struct batch_write){ .checkpoints = &write, .checkpoints_len = 1 };
	arena_reset(arena);
	return 0;
}

static size_t handed(void)
{
	told.len = 0;
	handover_gates(&intake, items, 1, &batch);
	return told.len;
}

static void what_is_pending_now_is_handed_over(void **state)
{
	(void)state;
	assert_int_equal(handed(), 1);
	assert_int_equal(uuid_compare(&told.event.id, &row.id), 0);
	assert_int_equal(told.event.version, SUSPENDED);
	assert_int_equal(told.event.at, SUSPENDED);
	assert_true(view_equal_text(told.event.traceparent, "parent"));
	assert_true(view_is_null(told.event.tracestate));
	assert_int_equal(told.row.resumes_partition, 3);
	assert_int_equal(told.gate.state, GATE_PENDING);
	assert_int_equal(told.gate.version, SUSPENDED);
	assert_int_equal(told.gate.at, SUSPENDED);
	assert_true(view_equal_text(told.gate.title, "May it?"));
	assert_true(told.gate.action.present);
	assert_true(view_equal_text(told.gate.action.arguments, "{\"to\":\"all\"}"));
}

/* gates.include_action = false: intake has kept none. */
static void without_its_action_it_says_none(void **state)
{
	(void)state;
	item.action = (struct action){ 0 };
	assert_int_equal(handed(), 1);
	assert_false(told.gate.action.present);
	assert_true(told.gate.has_risk);
}

/* Once something else has come to it, what the gate event says is no more what the suspend alone made. */
static void what_has_changed_since_is_left_to_the_relay(void **state)
{
	static const enum gate_state others[] = { GATE_DECIDED,     GATE_RESUMED,  GATE_SUPERSEDED,
		                                      GATE_QUARANTINED, GATE_IN_DOUBT, GATE_UNCLAIMED };

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		row.state = others[i];
		assert_int_equal(handed(), 0);
	}
	row.state = GATE_PENDING;
	row.version = SUSPENDED + 1; /* an early approval of two has been counted */
	assert_int_equal(handed(), 0);
	row.version = SUSPENDED;
	assert_int_equal(handed(), 1);
}

static void what_changed_nothing_is_not_told(void **state)
{
	(void)state;
	batch.checkpoints_len = 0; /* a duplicate */
	assert_int_equal(handed(), 0);
	batch.checkpoints_len = 1;
	write.fill = false;
	assert_int_equal(handed(), 0);
	write.fill = true;
	write.gate_event = false;
	assert_int_equal(handed(), 0);
	write.gate_event = true;
	item.dead = true;
	assert_int_equal(handed(), 0);
	item.dead = false;
	item.suspend = false;
	assert_int_equal(handed(), 0);
}

static void what_another_process_publishes_is_not_encoded(void **state)
{
	(void)state;
	batch.notify = UINT64_C(1) << 3;
	assert_int_equal(handed(), 0);
	batch.notify = UINT64_C(1) << 2;
	assert_int_equal(handed(), 1);
	worker.shards = NULL; /* `fermata rebuild` */
	assert_int_equal(handed(), 0);
	worker.shards = (struct shards *)&worker;
}

static int group_setup(void **state)
{
	struct config_request request = { 0 };
	struct codec_settings settings = { 0 };
	struct error error;

	(void)state;
	arena = arena_new((size_t)1 << 20);
	if (arena == NULL || config_load(&config, &request, &error) != FATE_OK)
		return -1;
	worker = (struct worker){ .config = config, .shards = (struct shards *)&worker };
	intake = (struct intake){ .worker = &worker };
	return codec_new(&intake.judging, &settings, &error) == FATE_OK ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	codec_free(intake.judging);
	config_free(config);
	arena_free(arena);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_pending_now_is_handed_over),
		TEST(without_its_action_it_says_none),
		TEST(what_has_changed_since_is_left_to_the_relay),
		TEST(what_changed_nothing_is_not_told),
		TEST(what_another_process_publishes_is_not_encoded),
	};
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
