// links: core
#include "core/kafka.h"
#include "core/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *name_of_state(int value)
{
	return gate_state_name((enum gate_state)value);
}

static void names_are_those_of_the_schemas(void **state)
{
	(void)state;
	assert_string_equal(role_name(ROLE_SYSTEM), "SYSTEM");
	assert_string_equal(role_name(ROLE_USER), "USER");
	assert_string_equal(role_name(ROLE_AGENT), "AGENT");
	assert_string_equal(role_name(ROLE_TOOL), "TOOL");
	assert_string_equal(permission_name(PERMISSION_ALLOW), "ALLOW");
	assert_string_equal(permission_name(PERMISSION_DENY), "DENY");
	assert_string_equal(permission_name(PERMISSION_ASK), "ASK");
	assert_string_equal(encoding_name(ENCODING_AVRO), "AVRO");
	assert_string_equal(encoding_name(ENCODING_JSON), "JSON");
	assert_string_equal(risk_name(RISK_LOW), "LOW");
	assert_string_equal(risk_name(RISK_CRITICAL), "CRITICAL");
	assert_string_equal(on_expiry_name(ON_EXPIRY_REJECT), "REJECT");
	assert_string_equal(on_expiry_name(ON_EXPIRY_HOLD), "HOLD");
	assert_string_equal(decision_kind_name(DECISION_APPROVE), "APPROVE");
	assert_string_equal(decision_kind_name(DECISION_EXPIRE), "EXPIRE");
	assert_string_equal(verdict_name(VERDICT_APPROVED), "APPROVED");
	assert_string_equal(verdict_name(VERDICT_REJECTED), "REJECTED");
	assert_string_equal(verdict_name(VERDICT_EXPIRED), "EXPIRED");
	assert_string_equal(verdict_name(VERDICT_CANCELLED), "CANCELLED");
	assert_string_equal(gate_state_name(GATE_PENDING), "PENDING");
	assert_string_equal(gate_state_name(GATE_IN_DOUBT), "IN_DOUBT");
	assert_string_equal(gate_state_name(GATE_UNCLAIMED), "UNCLAIMED");
	assert_string_equal(gate_state_name((enum gate_state)GATE_STATE_COUNT), "?");
	assert_string_equal(risk_name((enum risk) - 1), "?");
}

static void a_name_is_found_exactly(void **state)
{
	(void)state;
	for (int i = 0; i < GATE_STATE_COUNT; i++)
		assert_int_equal(records_enum_find(name_of_state, GATE_STATE_COUNT, view_of(name_of_state(i))), i);
	assert_int_equal(records_enum_find(name_of_state, GATE_STATE_COUNT, VIEW_LITERAL("pending")), -1);
	assert_int_equal(records_enum_find(name_of_state, GATE_STATE_COUNT, VIEW_LITERAL("PENDING ")), -1);
	assert_int_equal(records_enum_find(name_of_state, GATE_STATE_COUNT, VIEW_LITERAL("")), -1);
	assert_int_equal(records_enum_find(name_of_state, GATE_STATE_COUNT, VIEW_NULL), -1);
}

/* The numbers are those that Kafka's Java client gives. Modulo 2^31 - 1 they are the hash itself, less its
 * sign. */
static void the_partition_is_that_of_kafkas_clients(void **state)
{
	(void)state;
	static const struct {
		const char *key;
		int32_t hash;
	} cases[] = {
		{ "21", -973932308 },
		{ "foobar", -790332482 },
		{ "a-little-bit-long-string", -985981536 },
		{ "a-little-bit-longer-string", -1486304829 },
		{ "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971 },
		{ "abc", 479470107 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t positive = cases[i].hash & INT32_MAX;
		assert_int_equal(kafka_partition(view_of(cases[i].key), INT32_MAX), positive);
		for (int32_t count = 1; count < 50; count++)
			assert_int_equal(kafka_partition(view_of(cases[i].key), count), positive % count);
	}
}

static void keys_of_every_length_have_a_partition(void **state)
{
	(void)state;
	uint8_t key[64];

	assert_int_equal(kafka_partition(VIEW_NULL, 6), 0);
	for (size_t len = 0; len <= sizeof(key); len++) {
		memset(key, 0xFF, len);
		assert_in_range(kafka_partition((struct view){ key, len }, 6), 0, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_the_schemas),
		cmocka_unit_test(a_name_is_found_exactly),
		cmocka_unit_test(the_partition_is_that_of_kafkas_clients),
		cmocka_unit_test(keys_of_every_length_have_a_partition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
