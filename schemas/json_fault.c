#include "schemas/json_fault.h"

#include <pthread.h>
#include <stdlib.h>

static void *allocate(size_t len)
{
	void *data = malloc(len);

	if (data == NULL)
		memory_note_refusal();
	return data;
}

static void set_allocator(void)
{
	json_set_alloc_funcs(allocate, free);
}

void json_count_refusals(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_allocator);
}

json_t *json_take(struct view text, size_t flags, json_error_t *ret_error, bool *ret_starved)
{
	json_count_refusals();
	uint64_t refusals = memory_refusals();
	json_t *json = json_loadb((const char *)text.data, text.len, flags, ret_error);

	*ret_starved = memory_refusals() != refusals;
	if (!*ret_starved)
		return json;
	json_decref(json);
	return NULL;
}

const char *json_fault(const json_error_t *error)
{
	static const struct {
		enum json_error_code code;
		const char *text;
	} faults[] = {
		{ json_error_out_of_memory, "no memory" },
		{ json_error_stack_overflow, "nested too deep" },
		{ json_error_invalid_utf8, "not UTF-8" },
		{ json_error_premature_end_of_input, "the text ends too early" },
		{ json_error_end_of_input_expected, "there is more text after the value" },
		{ json_error_invalid_syntax, "syntax error" },
		{ json_error_duplicate_key, "a key stands there twice" },
		{ json_error_numeric_overflow, "a number is too large" },
		{ json_error_null_character, "U+0000 where none may be" },
		{ json_error_null_byte_in_key, "U+0000 in a key" },
	};
	enum json_error_code code = json_error_code(error);

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (faults[i].code == code)
			return faults[i].text;
	}
	return "it cannot be read";
}
