/* kafka_support.h - what the tests of consumer/ and producer/ against a real broker have in common. */
#ifndef FERMATA_TESTS_INTEGRATION_C_KAFKA_SUPPORT_H
#define FERMATA_TESTS_INTEGRATION_C_KAFKA_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "consumer/reader.h"
#include "producer/producer.h"
#include "producer/topics.h"

#define SKIPPED     77
#define PATIENCE_MS 20000

/* The broker of FERMATA_TEST_KAFKA, or NULL (then the test program says so and returns SKIPPED). */
const char *test_broker(void);
/* bootstrap.servers and a short session, so that the dead are noticed soon. */
extern struct property test_properties[3];
#define TEST_PROPERTIES_LEN 3

#define assert_ok(call) test_assert_ok((call), &error, #call, __FILE__, __LINE__)
void test_assert_ok(enum fate fate, const struct error *error, const char *call, const char *file, int line);

/* A name that no other run has used; the caller's buffer of 64. Returns it. */
char *test_name(char name[64], const char *stem);
void test_make_topic(const char *name, int32_t partitions);

struct producer *test_producer(const char *transactional_id);
/* Writes count records "k<i>" => "v<i>" of partition, i from first, with padding of value_len bytes in all
 * (0: none), and waits for them (plain producers). */
void test_write(struct producer *producer, const char *topic, int32_t partition, int first, int count,
                size_t value_len);

struct reader *test_reader(const char *group, const char *topic);
/* Polls until the event comes; records and other events meanwhile are let go. Fails after PATIENCE_MS. */
void test_await(struct reader *reader, enum reader_event event, struct record *ret_record);
/* Reads on until `count` records came or, with until_end, the end of partition came. Returns the number of
 * records. *ret_last is the offset of the last record or of the end. */
int test_drain(struct reader *reader, int count, bool until_end, int64_t *ret_last);

#endif
