// links: worker schemas vault config store consumer producer core
// Dead letters before a producer that is played here: what they carry, and what happens when it says no.
#include "worker/deadletter.h"

#include "consumer/reader.h"
#include "core/log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

#define SENT_MAX 64
#define AT       INT64_C(1700000000123000)

/* ---- a producer and a record, played ---- */

/* A letter as it was handed over; what it borrowed is copied, for the caller may let go of it at once. */
struct sent {
	const char *topic;
	struct view key;
	struct view value;
	struct header *headers;
	size_t headers_len;
	void *tag;
	size_t size;
};

static struct {
	struct arena *arena;
	struct sent sent[SENT_MAX];
	size_t sent_len;
	size_t unanswered;     /* the first that has no report yet */
	size_t request_limit;  /* larger than this together is refused; 0: no limit */
	size_t producer_limit; /* a record larger than this is refused at once; 0: no limit */
	int full;              /* how often the queue is full before there is room */
	bool away;             /* nothing is ever acknowledged */
	int waits;
	struct header original[3];
	size_t original_len;
} stage;

enum fate producer_send(struct producer *producer, const struct outgoing *outgoing, struct error *error)
{
	(void)producer;
	size_t size = outgoing->key.len + outgoing->value.len;
	for (size_t i = 0; i < outgoing->headers_len; i++)
		size += strlen(outgoing->headers[i].name) + outgoing->headers[i].value.len;
	if (stage.full > 0) {
		stage.full--;
		return error_set(error, FATE_RETRY, ERR_SERVICE, "the queue is full");
	}
	if (stage.producer_limit > 0 && size > stage.producer_limit)
		return error_set(error, FATE_REJECT, ERR_TOO_LARGE, "larger than the producer takes");
	assert_true(stage.sent_len < SENT_MAX);
	assert_int_equal(outgoing->partition, PARTITION_BY_KEY);
	struct sent *sent = &stage.sent[stage.sent_len++];
	*sent = (struct sent){ .topic = outgoing->topic, .tag = outgoing->tag, .size = size };
	sent->key = view_is_null(outgoing->key) ? VIEW_NULL : arena_copy(stage.arena, outgoing->key);
	sent->value = view_is_null(outgoing->value) ? VIEW_NULL : arena_copy(stage.arena, outgoing->value);
	sent->headers_len = outgoing->headers_len;
	sent->headers = arena_array(stage.arena, outgoing->headers_len, sizeof(*sent->headers));
	assert_non_null(sent->headers);
	for (size_t i = 0; i < outgoing->headers_len; i++) {
		const struct header *from = &outgoing->headers[i];
		sent->headers[i].name = arena_text(stage.arena, view_of(from->name));
		sent->headers[i].value = view_is_null(from->value) ? VIEW_NULL : arena_copy(stage.arena, from->value);
	}
	return FATE_OK;
}

void producer_poll(struct producer *producer, int timeout_ms)
{
	(void)producer;
	(void)timeout_ms;
}

/* All that was sent since the last wait leaves in one request, as it does from a queue that is not full. */
enum fate producer_wait(struct producer *producer, int timeout_ms, struct error *error)
{
	struct error refusal = { FATE_REJECT, ERR_TOO_LARGE, "MSG_SIZE", "too large" };
	size_t together = 0;

	(void)producer;
	assert_int_equal(timeout_ms, 10000);
	stage.waits++;
	if (stage.away)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "not acknowledged");
	for (size_t i = stage.unanswered; i < stage.sent_len; i++)
		together += stage.sent[i].size;
	bool refused = stage.request_limit > 0 && together > stage.request_limit;
	for (; stage.unanswered < stage.sent_len; stage.unanswered++) {
		struct outgoing report = { .tag = stage.sent[stage.unanswered].tag };
		deadletter_report(NULL, &report, refused ? -1 : 7, refused ? &refusal : NULL);
	}
	if (refused)
		*error = refusal;
	return refused ? FATE_REJECT : FATE_OK;
}

enum fate record_headers(const struct record *record, struct arena *arena, struct header **ret_headers,
                         size_t *ret_len, struct error *error)
{
	(void)record;
	struct header *copies = arena_array(arena, stage.original_len, sizeof(*copies));
	if (copies == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for headers");
	for (size_t i = 0; i < stage.original_len; i++) {
		copies[i] = stage.original[i];
		if (!view_is_null(copies[i].value))
			copies[i].value = arena_copy(arena, copies[i].value);
	}
	*ret_headers = copies;
	*ret_len = stage.original_len;
	return FATE_OK;
}

/* ---- a batch ---- */

static int setup(void **state)
{
	(void)state;
	memset(&stage, 0, sizeof(stage));
	stage.arena = arena_new((size_t)64 << 20);
	assert_non_null(stage.arena);
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(stage.arena);
	return 0;
}

static struct item dead_item(struct view key, struct view value)
{
	struct item item = {
		.suspend = true,
		.dead = true,
		.record = { .at = { "suspends", 3, 41, AT }, .key = key, .value = value },
	};

	(void)error_set(&item.why, FATE_REJECT, ERR_MALFORMED, "history[2].role: the index of an enum is 9");
	return item;
}

static enum fate send_items(struct item *items, size_t len, size_t memory, struct error *error)
{
	struct item *pointers[SENT_MAX];
	struct arena *arena = arena_new(memory);
	assert_non_null(arena);

	for (size_t i = 0; i < len; i++)
		pointers[i] = &items[i];
	enum fate fate = deadletter_send(NULL, "letters", pointers, len, arena, error);
	arena_free(arena);
	return fate;
}

static struct view header_of(const struct sent *sent, const char *name)
{
	struct view value = VIEW_NULL;

	for (size_t i = 0; i < sent->headers_len; i++)
		if (strcmp(sent->headers[i].name, name) == 0)
			value = sent->headers[i].value;
	return value;
}

#define assert_header(sent, name, text) assert_true(view_equal_text(header_of(sent, name), text))

static struct view large(size_t len)
{
	uint8_t *data = arena_alloc(stage.arena, len);

	assert_non_null(data);
	memset(data, 'x', len);
	return (struct view){ data, len };
}

/* ---- tests ---- */

static void a_letter_carries_the_bytes_and_the_reason(void **state)
{
	struct item items[] = { dead_item(VIEW_LITERAL("key"), VIEW_LITERAL("\xc3\x01rest")) };
	struct error error;

	(void)state;
	stage.original[0] = (struct header){ "content-type", VIEW_LITERAL("application/avro") };
	stage.original[1] = (struct header){ "empty", VIEW_LITERAL("") };
	stage.original[2] = (struct header){ "null", VIEW_NULL };
	stage.original_len = 3;
	assert_int_equal(send_items(items, 1, 4096, &error), FATE_OK);
	assert_int_equal(stage.sent_len, 1);
	const struct sent *sent = &stage.sent[0];
	assert_string_equal(sent->topic, "letters");
	assert_true(view_equal_text(sent->key, "key"));
	assert_true(view_equal_text(sent->value, "\xc3\x01rest"));
	assert_int_equal(sent->headers_len, 3 + 7);
	assert_header(sent, "content-type", "application/avro");
	assert_header(sent, "empty", "");
	assert_true(view_is_null(header_of(sent, "null")));
	assert_header(sent, "fermata.error.code", "malformed");
	assert_header(sent, "fermata.error.reason", "history[2].role: the index of an enum is 9");
	assert_header(sent, "fermata.error.topic", "suspends");
	assert_header(sent, "fermata.error.partition", "3");
	assert_header(sent, "fermata.error.offset", "41");
	assert_header(sent, "fermata.error.timestamp", "1700000000123");
	assert_header(sent, "fermata.error.stage", "suspend");
}

static void null_stays_null_and_empty_stays_empty(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, VIEW_NULL), dead_item(VIEW_LITERAL(""), VIEW_LITERAL("")) };
	struct error error;

	(void)state;
	items[1].suspend = false;
	items[1].record.at.appended_at = TIME_NONE;
	assert_int_equal(send_items(items, 2, 4096, &error), FATE_OK);
	assert_true(view_is_null(stage.sent[0].key) && view_is_null(stage.sent[0].value));
	assert_true(!view_is_null(stage.sent[1].key) && !view_is_null(stage.sent[1].value));
	assert_int_equal(stage.sent[1].key.len + stage.sent[1].value.len, 0);
	assert_header(&stage.sent[1], "fermata.error.stage", "approval");
	assert_header(&stage.sent[1], "fermata.error.timestamp", "-1"); /* Kafka's word for none */
}

static void only_dead_items_are_sent(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, VIEW_LITERAL("a")),
		                    dead_item(VIEW_NULL, VIEW_LITERAL("b")) };
	struct error error;

	(void)state;
	items[0].dead = false;
	assert_int_equal(send_items(items, 2, 4096, &error), FATE_OK);
	assert_int_equal(stage.sent_len, 1);
	assert_true(view_equal_text(stage.sent[0].value, "b"));
	items[1].dead = false;
	assert_int_equal(send_items(items, 2, 4096, &error), FATE_OK);
	assert_int_equal(stage.sent_len, 1);
	assert_int_equal(stage.waits, 1);
}

static void too_large_goes_without_its_value(void **state)
{
	struct item items[] = { dead_item(VIEW_LITERAL("k"), large(5000)) };
	struct error error;

	(void)state;
	stage.request_limit = 4000;
	stage.original[0] = (struct header){ "mine", VIEW_LITERAL("kept") };
	stage.original_len = 1;
	assert_int_equal(send_items(items, 1, 4096, &error), FATE_OK);
	const struct sent *sent = &stage.sent[stage.sent_len - 1];
	assert_true(!view_is_null(sent->value) && sent->value.len == 0);
	assert_true(view_equal_text(sent->key, "k"));
	assert_header(sent, "fermata.error.code", "too_large");
	assert_header(sent, "mine", "kept");
	assert_non_null(memmem(header_of(sent, "fermata.error.reason").data,
	                       header_of(sent, "fermata.error.reason").len, "malformed", 9));
}

static void too_large_for_the_producer_itself(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, large(5000)), dead_item(VIEW_NULL, VIEW_LITERAL("small")) };
	struct error error;

	(void)state;
	stage.producer_limit = 4000;
	assert_int_equal(send_items(items, 2, 4096, &error), FATE_OK);
	assert_int_equal(stage.sent_len, 2);
	assert_true(view_equal_text(stage.sent[0].value, "small"));
	assert_header(&stage.sent[1], "fermata.error.code", "too_large");
}

/* A broker refuses a request as a whole: what is small enough by itself must keep its bytes. */
static void too_large_together_goes_whole_alone(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, large(2000)), dead_item(VIEW_NULL, large(2000)),
		                    dead_item(VIEW_NULL, large(9000)) };
	struct error error;

	(void)state;
	stage.request_limit = 4000;
	assert_int_equal(send_items(items, 3, 4096, &error), FATE_OK);
	assert_int_equal(stage.sent_len, 3 + 1 + 1 + 2);
	assert_int_equal(stage.sent[3].value.len, 2000);
	assert_header(&stage.sent[3], "fermata.error.code", "malformed");
	assert_int_equal(stage.sent[4].value.len, 2000);
	assert_int_equal(stage.sent[6].value.len, 0);
	assert_header(&stage.sent[6], "fermata.error.code", "too_large");
}

static void headers_and_key_that_are_too_large_are_left_out(void **state)
{
	struct item items[] = { dead_item(large(3000), VIEW_NULL) };
	struct error error;

	(void)state;
	stage.request_limit = 4000;
	stage.original[0] = (struct header){ "huge", large(9000) };
	stage.original_len = 1;
	assert_int_equal(send_items(items, 1, 4096, &error), FATE_OK); /* nor does it need a batch's memory */
	const struct sent *sent = &stage.sent[stage.sent_len - 1];
	assert_true(view_is_null(sent->value)); /* it was null */
	assert_true(view_is_null(sent->key));
	assert_int_equal(sent->headers_len, 7);
	assert_header(sent, "fermata.error.code", "too_large");
	assert_header(sent, "fermata.error.offset", "41");
}

static void what_the_topic_never_takes_is_tried_again(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, large(100)) };
	struct error error;

	(void)state;
	stage.request_limit = 10;
	assert_int_equal(send_items(items, 1, 4096, &error), FATE_RETRY);
	assert_non_null(strstr(error.message, "letters"));
}

static void without_acknowledgement_nothing_is_done(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, VIEW_LITERAL("a")) };
	struct error error;

	(void)state;
	stage.away = true;
	assert_int_equal(send_items(items, 1, 4096, &error), FATE_RETRY);
	assert_int_equal(stage.waits, 1);
}

static void a_full_queue_is_waited_for(void **state)
{
	struct item items[] = { dead_item(VIEW_NULL, VIEW_LITERAL("a")),
		                    dead_item(VIEW_NULL, VIEW_LITERAL("b")) };
	struct error error;

	(void)state;
	stage.full = 3;
	assert_int_equal(send_items(items, 2, 4096, &error), FATE_OK);
	assert_int_equal(stage.sent_len, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_letter_carries_the_bytes_and_the_reason),
		TEST(null_stays_null_and_empty_stays_empty),
		TEST(only_dead_items_are_sent),
		TEST(too_large_goes_without_its_value),
		TEST(too_large_for_the_producer_itself),
		TEST(too_large_together_goes_whole_alone),
		TEST(headers_and_key_that_are_too_large_are_left_out),
		TEST(what_the_topic_never_takes_is_tried_again),
		TEST(without_acknowledgement_nothing_is_done),
		TEST(a_full_queue_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
