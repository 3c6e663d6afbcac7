// links: worker core
/* How long a topic keeps records, and how much a worker's walk over all checkpoints asks of the database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"
#include "producer/topics.h"
#include "worker/waits.h"

/* ---- a database of so many pages, each of which takes a while; Kafka has one empty partition a topic ---- */

#define PAGE_MS 40

static int64_t now_ms;
static int pages_left;
static int pages_read;
static bool away;

int64_t clock_mono_ms(void)
{
	return now_ms;
}

int64_t clock_real_us(void)
{
	return now_ms * 1000;
}

char *clock_format(int64_t real_us, char *text, size_t cap)
{
	(void)real_us;
	text[0] = '\0';
	(void)cap;
	return text;
}

char *clock_span(int64_t us, char *text, size_t cap)
{
	return clock_format(us, text, cap);
}

const char *config_text(const struct config *config, enum param param)
{
	(void)config;
	(void)param;
	return "topic";
}

int64_t config_number(const struct config *config, enum param param)
{
	(void)config;
	(void)param;
	return 0;
}

const struct property *config_kafka(const struct config *config, enum kafka_side side, size_t *ret_len)
{
	(void)config;
	(void)side;
	*ret_len = 0;
	return NULL;
}

enum fate topics_setting(const struct property *properties, size_t properties_len, const char *topic,
                         const char *name, int timeout_ms, char *ret_value, size_t cap, struct error *error)
{
	(void)properties;
	(void)properties_len;
	(void)topic;
	(void)name;
	(void)timeout_ms;
	if (cap > 0)
		ret_value[0] = '\0';
	return error_set(error, FATE_RETRY, ERR_SERVICE, "it does not say");
}

enum fate reader_partitions(struct reader *reader, const char *topic, int timeout_ms, int32_t *ret_count,
                            struct error *error)
{
	(void)reader;
	(void)topic;
	(void)timeout_ms;
	(void)error;
	*ret_count = 1;
	return FATE_OK;
}

enum fate reader_range(struct reader *reader, const char *topic, int32_t partition, int timeout_ms,
                       int64_t *ret_low, int64_t *ret_high, struct error *error)
{
	(void)reader;
	(void)topic;
	(void)partition;
	(void)timeout_ms;
	(void)error;
	*ret_low = *ret_high = 0;
	return FATE_OK;
}

enum fate store_waits(struct store *store, const struct kafka_low *lows, size_t lows_len,
                      struct store_waits_page *page, struct store_waits *ret_waits, struct error *error)
{
	(void)store;
	(void)lows;
	(void)lows_len;
	if (away)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "away");
	now_ms += PAGE_MS;
	pages_read++;
	page->goes_on = --pages_left > 0;
	page->after = pages_read;
	*ret_waits = (struct store_waits){ .oldest = TIME_NONE, .latest_expiry = TIME_NONE };
	return FATE_OK;
}

/* Ticks, that often, until `ms` have gone by. */
static void tick_for(int64_t ms, int64_t tick_ms, struct waits_walk *walk, struct arena *arena)
{
	struct worker worker = { 0 };

	for (int64_t end = now_ms + ms; now_ms < end; now_ms += tick_ms)
		waits_tick(&worker, NULL, arena, walk);
}

/* Among millions of settled rows the walk takes no more than a tenth of the time that it lasts. */
static void the_walk_rests_between_its_pages(void **state)
{
	(void)state;
	struct arena *arena = arena_new(1 << 20);
	struct waits_walk walk = { 0 };
	assert_non_null(arena);

	pages_left = 1000000;
	tick_for(100 * PAGE_MS, 1, &walk, arena);
	assert_in_range(pages_read, 9, 11);
	pages_left = 1;
	tick_for(20 * PAGE_MS, 1, &walk, arena);
	int read = pages_read;
	tick_for(INT64_C(80000000), 500, &walk, arena); /* the last one: tomorrow again */
	assert_int_equal(pages_read, read);
	away = true;
	tick_for(INT64_C(7000000), 500, &walk, arena);
	assert_int_equal(pages_read, read);
	away = false;
	pages_left = 3;
	tick_for(603000, 500, &walk, arena); /* it was away: in ten minutes */
	assert_int_equal(pages_read, read + 3);
	arena_free(arena);
}

/* ---- retention ---- */

static void retention_is_read(void **state)
{
	(void)state;
	assert_int_equal(waits_retention("604800000"), 604800000);
	assert_int_equal(waits_retention("0"), 0);
	assert_int_equal(waits_retention("-1"), WAITS_FOR_EVER);
}

/* It is multiplied to microseconds by whoever tells of it. */
static void the_largest_number_is_for_ever(void **state)
{
	(void)state;
	assert_int_equal(waits_retention("9223372036854775807"), WAITS_FOR_EVER);
	assert_int_equal(waits_retention("9223372036854776"), WAITS_FOR_EVER);
	assert_int_equal(waits_retention("9223372036854775"), INT64_C(9223372036854775));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_walk_rests_between_its_pages),
		cmocka_unit_test(retention_is_read),
		cmocka_unit_test(the_largest_number_is_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
