// links: core
// The page of metrics, read back by a small parser of Prometheus' text format 0.0.4, and exact counts
// from many threads.
#include "core/metrics.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLES_MAX 400

struct sample {
	char name[100];
	char le[20]; /* "" without a label */
	double value;
};

struct page {
	struct sample samples[SAMPLES_MAX];
	size_t len;
	char family[100]; /* of the last HELP and TYPE */
	char kind[20];
	int families;
};

static bool is_name(const char *name, size_t len)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";

	return len > 0 && (name[0] < '0' || name[0] > '9') && strspn(name, legal) >= len;
}

/* Does the sample belong to the family whose TYPE was read last? */
static bool in_family(const struct page *page, const struct sample *sample)
{
	size_t len = strlen(page->family);
	const char *suffix = sample->name + len;

	if (strncmp(sample->name, page->family, len) != 0)
		return false;
	if (strcmp(page->kind, "histogram") != 0)
		return *suffix == '\0' && sample->le[0] == '\0';
	if (strcmp(suffix, "_bucket") == 0)
		return sample->le[0] != '\0';
	return strcmp(suffix, "_sum") == 0 || strcmp(suffix, "_count") == 0;
}

static void read_sample(struct page *page, const char *line)
{
	struct sample *sample = &page->samples[page->len++];
	size_t name_len = strcspn(line, "{ ");
	const char *at = line + name_len;
	char *end;

	assert_true(page->len < SAMPLES_MAX);
	assert_true(is_name(line, name_len));
	snprintf(sample->name, sizeof(sample->name), "%.*s", (int)name_len, line);
	sample->le[0] = '\0';
	if (*at == '{') {
		int used = 0;
		assert_int_equal(sscanf(at, "{le=\"%19[^\"]\"}%n", sample->le, &used), 1);
		assert_true(used > 0);
		at += used;
	}
	assert_int_equal(*at, ' ');
	sample->value = strtod(at + 1, &end);
	assert_true(end > at + 1 && *end == '\0');
	assert_true(in_family(page, sample));
}

static void read_line(struct page *page, const char *line)
{
	char name[100];
	int used = 0;

	if (line[0] != '#') {
		read_sample(page, line);
		return;
	}
	if (sscanf(line, "# HELP %99s %n", name, &used) == 1 && used > 0) {
		assert_true(is_name(name, strlen(name)));
		assert_null(strchr(line, '\\'));
		assert_true(strlen(line + used) > 0);
		assert_string_not_equal(name, page->family);
		snprintf(page->family, sizeof(page->family), "%s", name);
		page->kind[0] = '\0';
		page->families++;
		return;
	}
	assert_int_equal(sscanf(line, "# TYPE %99s %19s", name, page->kind), 2);
	assert_string_equal(name, page->family);
	assert_true(strcmp(page->kind, "counter") == 0 || strcmp(page->kind, "gauge") == 0 ||
	            strcmp(page->kind, "histogram") == 0);
	/* Prometheus' naming: counters, and only they, end in _total. */
	size_t len = strlen(name);
	bool is_total = len > 6 && strcmp(name + len - 6, "_total") == 0;
	assert_int_equal(is_total, strcmp(page->kind, "counter") == 0);
}

static void read_page(struct page *page)
{
	struct buffer out;
	char *save = NULL;

	buffer_init(&out, (size_t)256 * 1024);
	metrics_write(&out);
	assert_false(buffer_failed(&out));
	assert_int_equal(out.data[out.len - 1], '\n');
	buffer_append_byte(&out, 0);
	memset(page, 0, sizeof(*page));
	for (char *line = strtok_r((char *)out.data, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save))
		read_line(page, line);
	buffer_done(&out);
}

static double value_of(const struct page *page, const char *name, const char *le)
{
	for (size_t i = 0; i < page->len; i++)
		if (strcmp(page->samples[i].name, name) == 0 && strcmp(page->samples[i].le, le) == 0)
			return page->samples[i].value;
	fail_msg("no sample %s %s", name, le);
	return 0;
}

static void the_page_is_well_formed(void **state)
{
	(void)state;
	static struct page page;

	read_page(&page);
	assert_int_equal(page.families, METRIC_COUNT);
}

static void numbers_come_through(void **state)
{
	(void)state;
	static struct page page;

	metrics_add(METRIC_SUSPENDS, 3);
	metrics_add(METRIC_SUSPENDS, 4);
	metrics_set(METRIC_READY, 1);
	metrics_set(METRIC_LAG, -1);
	metrics_add(METRIC_RELAYS, 2);
	metrics_add(METRIC_RELAYS, -1);
	assert_int_equal(metrics_get(METRIC_SUSPENDS), 7);
	read_page(&page);
	assert_true(value_of(&page, "fermata_suspends_total", "") == 7);
	assert_true(value_of(&page, "fermata_ready", "") == 1);
	assert_true(value_of(&page, "fermata_intake_lag_records", "") == -1);
	assert_true(value_of(&page, "fermata_relays", "") == 1);
}

static void a_histogram_is_cumulative(void **state)
{
	(void)state;
	static struct page page;
	static const int64_t observed[] = { 0, 1000, 1001, 7000, 1500000, 3600000000, 3600000001, -5 };

	for (size_t i = 0; i < sizeof(observed) / sizeof(observed[0]); i++)
		metrics_observe_us(METRIC_PUBLISH_SECONDS, observed[i]);
	assert_int_equal(metrics_get(METRIC_PUBLISH_SECONDS), 8);
	read_page(&page);
	const char *bucket = "fermata_relay_transaction_seconds_bucket";
	assert_true(value_of(&page, bucket, "0.001") == 3); /* a bound belongs to its bucket */
	assert_true(value_of(&page, bucket, "0.0025") == 4);
	assert_true(value_of(&page, bucket, "0.005") == 4);
	assert_true(value_of(&page, bucket, "0.01") == 5);
	assert_true(value_of(&page, bucket, "2.5") == 6);
	assert_true(value_of(&page, bucket, "3600") == 7);
	assert_true(value_of(&page, bucket, "+Inf") == 8);
	assert_true(value_of(&page, "fermata_relay_transaction_seconds_count", "") == 8);
	double sum = value_of(&page, "fermata_relay_transaction_seconds_sum", "");
	assert_true(sum > 7201.509001 && sum < 7201.509003);
	double last = -1;
	double last_le = -1;
	for (size_t i = 0; i < page.len; i++) {
		if (strcmp(page.samples[i].name, bucket) != 0)
			continue;
		double le = strtod(page.samples[i].le, NULL);
		assert_true(page.samples[i].value >= last && le > last_le);
		last = page.samples[i].value;
		last_le = le;
	}
}

static void a_small_buffer_says_that_it_is(void **state)
{
	(void)state;
	struct buffer out;

	buffer_init(&out, 100);
	metrics_write(&out);
	assert_true(buffer_failed(&out));
	buffer_done(&out);
}

#define THREADS 8
#define ROUNDS  10000

static void *count(void *argument)
{
	(void)argument;
	for (int i = 0; i < ROUNDS; i++) {
		metrics_add(METRIC_RESUMES, 1);
		metrics_set(METRIC_OUTBOX, i);
		metrics_observe_us(METRIC_COMMIT_SECONDS, i);
		(void)metrics_get(METRIC_RESUMES);
	}
	return NULL;
}

static void threads_lose_nothing(void **state)
{
	(void)state;
	static struct page page;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count, NULL);
	for (int i = 0; i < 20; i++) {
		read_page(&page); /* while they count, _count equals the last bucket all the same */
		assert_true(value_of(&page, "fermata_intake_batch_seconds_bucket", "+Inf") ==
		            value_of(&page, "fermata_intake_batch_seconds_count", ""));
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(metrics_get(METRIC_RESUMES), THREADS * ROUNDS);
	assert_int_equal(metrics_get(METRIC_COMMIT_SECONDS), THREADS * ROUNDS);
	assert_int_equal(metrics_get(METRIC_OUTBOX), ROUNDS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_is_well_formed),   cmocka_unit_test(numbers_come_through),
		cmocka_unit_test(a_histogram_is_cumulative), cmocka_unit_test(a_small_buffer_says_that_it_is),
		cmocka_unit_test(threads_lose_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
