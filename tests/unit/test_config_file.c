// links: config core
/* test_config_file.c - the grammar of the file, and bytes that are no configuration at all. */
#include "test_config_fixture.h"

#include "config/conf_file.h"

struct taken {
	char text[4096]; /* "key=value@line;" for each setting */
	int count;
};

static enum fate take(void *context, const struct conf_line *line, struct error *error)
{
	struct taken *taken = context;
	(void)error;
	taken->count++;
	size_t len = strlen(taken->text);
	snprintf(taken->text + len, sizeof(taken->text) - len, "%s=%s@%s;", line->key, line->value,
	         strrchr(line->origin, ':') + 1);
	return FATE_OK;
}

/* What the bytes say, or "!" and the message. Parsed from a heap block of just that size, for ASan. */
static const char *parsed_bytes(const void *data, size_t len)
{
	static struct taken taken;
	memset(&taken, 0, sizeof(taken));
	struct arena *arena = arena_new((size_t)8 << 20);
	assert_non_null(arena);
	uint8_t *copy = malloc(len == 0 ? 1 : len);
	assert_true(arena != NULL && copy != NULL);
	memcpy(copy, data, len);
	struct error error = { 0 };
	enum fate fate = conf_parse((struct view){ copy, len }, "f", arena, take, &taken, &error);
	if (fate != FATE_OK) {
		assert_int_equal(fate, FATE_FATAL);
		assert_int_equal(error.code, ERR_USAGE);
		snprintf(taken.text, sizeof(taken.text), "!%s", error.message);
	}
	free(copy);
	arena_free(arena);
	return taken.text;
}

static const char *parsed(const char *text)
{
	return parsed_bytes(text, strlen(text));
}

static void assert_fails(const char *text, const char *start)
{
	const char *got = parsed(text);
	if (got[0] != '!' || strncmp(got + 1, start, strlen(start)) != 0)
		fail_msg("expected \"%s\", got \"%s\"", start, got);
}

static void lines_and_sections(void **state)
{
	(void)state;
	assert_string_equal(parsed(""), "");
	assert_string_equal(parsed("\n\n  \n\t\n"), "");
	assert_string_equal(parsed("a.b = c"), "a.b=c@1;");
	assert_string_equal(parsed("a=b\n  c  =  d e  \n"), "a=b@1;c=d e@2;");
	assert_string_equal(parsed("[x]\na=1\n[ y.z ] # says why\nb=2\n[]\nc=3\n"), "x.a=1@2;y.z.b=2@4;c=3@6;");
	assert_string_equal(parsed("a ="), "a=@1;");
	assert_string_equal(parsed("a = b = c"), "a=b = c@1;");
}

static void comments(void **state)
{
	(void)state;
	assert_string_equal(parsed("# a = b\n  # c\na = b # c\n"), "a=b@3;");
	assert_string_equal(parsed("a = b#c\n"), "a=b#c@1;");
	assert_string_equal(parsed("a = #b\n"), "a=@1;");
	assert_string_equal(parsed("a =#b\n"), "a=@1;");
	assert_string_equal(parsed("a = b\t# c # d\n"), "a=b@1;");
	assert_string_equal(parsed("a = ; no comment\n"), "a=; no comment@1;");
}

static void quoted_values(void **state)
{
	(void)state;
	assert_string_equal(parsed("a = \"b # c\" # d\n"), "a=b # c@1;");
	assert_string_equal(parsed("a = \"  b \"\n"), "a=  b @1;");
	assert_string_equal(parsed("a = \"\"\n"), "a=@1;");
	assert_string_equal(parsed("a = \"\\\"\\\\\"\n"), "a=\"\\@1;");
	assert_string_equal(parsed("a = b \"c\"\n"), "a=b \"c\"@1;");
	assert_fails("a = \"b", "f:1: a quoted value is not closed");
	assert_fails("a = \"", "f:1: a quoted value is not closed");
	assert_fails("a = \"b\\", "f:1: a backslash");
	assert_fails("a = \"b\\n\"", "f:1: a backslash");
	assert_fails("a = \"b\" c", "f:1: text after a quoted value");
}

static void what_is_no_setting(void **state)
{
	(void)state;
	assert_fails("a=b\nnonsense\n", "f:2: neither key = value");
	assert_fails("= b", "f:1: not a key before '='");
	assert_fails("a b = c", "f:1: not a key before '='");
	assert_fails("a$ = c", "f:1: not a key before '='");
	assert_fails("\xc3\xa4 = c", "f:1: not a key before '='");
	assert_fails("[a", "f:1: a section is not closed");
	assert_fails("[a] b = c", "f:1: text after a section");
	assert_fails("[a b]", "f:1: not a section's name");
	assert_fails("[a.]", "f:1: not a section's name");
}

static void other_line_ends_and_marks(void **state)
{
	(void)state;
	assert_string_equal(parsed("a = b\r\n[x]\r\nc = d\r\n\r\n"), "a=b@1;x.c=d@3;");
	assert_string_equal(parsed("a = \"b\"\r\n"), "a=b@1;");
	assert_string_equal(parsed("a = b\r"), "a=b@1;");
	assert_string_equal(parsed("\xef\xbb\xbf"
	                           "a = b\n"),
	                    "a=b@1;");
	assert_string_equal(parsed("\xef\xbb\xbf"), "");
	assert_fails("a = b\rc = d\n", "f:1: a control character");
	assert_fails("a = b\r\r\n", "f:1: a control character");
	assert_string_equal(parsed_bytes("\xff\xfe"
	                                 "a\0=\0b\0",
	                                 8),
	                    "!f:1: the file is UTF-16: save it as UTF-8");
	assert_string_equal(parsed_bytes("\xfe\xff\0a", 4), "!f:1: the file is UTF-16: save it as UTF-8");
}

static void hostile_bytes(void **state)
{
	(void)state;
	assert_non_null(strstr(parsed_bytes("a = b\nc\0d = e\n", 14), "!f:2: a NUL byte"));
	assert_non_null(strstr(parsed_bytes("a = b\0", 6), "!f:1: a NUL byte"));
	assert_non_null(strstr(parsed_bytes("\0", 1), "!f:1: a NUL byte"));
	assert_fails("a = \x1b[31m\n", "f:1: a control character");
	assert_fails("a = \x7f\n", "f:1: a control character");
	assert_fails("# \xff\n", "f:1: not UTF-8");
	assert_fails("a = \xc3\n", "f:1: not UTF-8");
	assert_fails("a = \xed\xa0\x80\n", "f:1: not UTF-8");
	assert_string_equal(parsed("a = \xc3\xbc\n"), "a=\xc3\xbc@1;");
}

/* count times c between two texts, on the heap. */
static char *repeated(const char *before, char c, size_t count, const char *after)
{
	size_t head = strlen(before), tail = strlen(after);
	char *text = malloc(head + count + tail + 1);
	assert_non_null(text);
	memcpy(text, before, head);
	memset(text + head, c, count);
	memcpy(text + head + count, after, tail + 1);
	return text;
}

static void long_lines_and_keys(void **state)
{
	(void)state;
	char *text = repeated("a = ", 'x', CONF_LINE_MAX - 4, "\nb = c");
	assert_true(parsed(text)[0] != '!');
	free(text);
	text = repeated("a = ", 'x', CONF_LINE_MAX, "\n");
	assert_fails(text, "f:1: the line is longer than 64 KiB");
	free(text);
	text = repeated("# ", 'x', CONF_FILE_MAX, "");
	assert_fails(text, "f:1: the line is longer than 64 KiB");
	free(text);
	text = repeated("", 'k', CONF_KEY_MAX + 1, " = v");
	assert_fails(text, "f:1: not a key");
	free(text);
	text = repeated("[", 's', CONF_KEY_MAX - 1, "]\na = v");
	assert_fails(text, "f:2: not a key");
	free(text);
	text = repeated("[", 's', CONF_KEY_MAX + 1, "]\n");
	assert_fails(text, "f:1: not a section's name");
	free(text);
}

/* Every prefix, and every byte turned into every other: an answer each time, and no bad memory access. */
static void mutilated(void **state)
{
	static const char good[] =
		"\xef\xbb\xbf[a.b] # c\r\nd = \"e \\\" # f\" # g\r\n\n# h\ni=j#k \xc3\xbc\n[]\nl =";
	(void)state;
	char copy[sizeof(good)];
	for (size_t len = 0; len < sizeof(good); len++)
		parsed_bytes(good, len);
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		for (int c = 0; c < 256; c++) {
			memcpy(copy, good, sizeof(good));
			copy[i] = (char)c;
			parsed_bytes(copy, sizeof(good) - 1);
		}
	}
}

static void files_that_are_too_large(void **state)
{
	struct fixture *fixture = *state;
	char *text = repeated("", '\n', CONF_FILE_MAX, "");
	file_write("large.conf", text);
	assert_int_equal(load(fixture, "large.conf", NULL), FATE_OK);
	free(text);
	text = repeated("", '\n', CONF_FILE_MAX, "\n");
	file_write("large.conf", text);
	free(text);
	assert_int_equal(load(fixture, "large.conf", NULL), FATE_FATAL);
	assert_says(&fixture->error, "large.conf is larger than 1024 KiB");
	assert_int_equal(load(fixture, "/dev/zero", NULL), FATE_FATAL);
	assert_says(&fixture->error, "/dev/zero is larger than 1024 KiB");
}

static void as_many_settings_as_fit(void **state)
{
	struct fixture *fixture = *state;
	FILE *file = fopen("many.conf", "w");
	assert_non_null(file);
	for (int i = 0; i < 100000; i++)
		fputs("kafka.a=\n", file);
	fclose(file);
	assert_int_equal(load(fixture, "many.conf", NULL), FATE_OK);
	file = fopen("many.conf", "w");
	assert_non_null(file);
	for (int i = 0; i < 50000; i++)
		fprintf(file, "kafka.p%d=\n", i);
	fclose(file);
	assert_int_equal(load(fixture, "many.conf", NULL), FATE_FATAL);
	assert_says(&fixture->error, "many.conf:1001: kafka.p1000 is refused");
	file = fopen("many.conf", "w");
	assert_non_null(file);
	for (int i = 0; i < 20000; i++)
		fprintf(file, "routes.r%d.agent=x\n", i);
	fclose(file);
	assert_int_equal(load(fixture, "many.conf", NULL), FATE_FATAL);
	assert_says(&fixture->error, "many.conf:1001: more than 1000 routes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_sections),
		cmocka_unit_test(comments),
		cmocka_unit_test(quoted_values),
		cmocka_unit_test(what_is_no_setting),
		cmocka_unit_test(other_line_ends_and_marks),
		cmocka_unit_test(hostile_bytes),
		cmocka_unit_test(long_lines_and_keys),
		cmocka_unit_test(mutilated),
		TEST(files_that_are_too_large),
		TEST(as_many_settings_as_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
