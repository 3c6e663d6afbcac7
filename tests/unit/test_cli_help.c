// links: cli core
/* test_cli_help.c - the table is whole, its help fits a screen, and the man page says the same. */
#include "cli/help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCREEN_LINES   24
#define SCREEN_COLUMNS 80

/* The commands of contract.md that there are in this version. */
static const char *const wanted[] = { "worker",
	                                  "suspend",
	                                  "approve",
	                                  "reject",
	                                  "cancel",
	                                  "pending",
	                                  "show",
	                                  "history",
	                                  "resumes",
	                                  "watch",
	                                  "migrate",
	                                  "topics create",
	                                  "keys generate",
	                                  "config check",
	                                  "doctor",
	                                  "demo",
	                                  "schema check",
	                                  "schema fingerprint",
	                                  "dead-letters list",
	                                  "dead-letters show",
	                                  "dead-letters redrive",
	                                  "quarantine list",
	                                  "quarantine show",
	                                  "quarantine retry",
	                                  "quarantine drop",
	                                  "rebuild",
	                                  "replay",
	                                  "in-doubt list",
	                                  "in-doubt resume",
	                                  "in-doubt drop",
	                                  "erase" };

static void every_command_is_there(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (command_find(wanted[i]) == NULL)
			fail_msg("no command %s", wanted[i]);
	assert_null(command_find("bridge")); /* no stubs */
}

static void every_entry_is_whole(void **state)
{
	(void)state;
	for (const struct command *command = commands; command->name != NULL; command++) {
		assert_non_null(command->arguments);
		assert_non_null(command->summary);
		assert_non_null(command->run);
		assert_true(strlen(command->about) > 40);
		assert_non_null(strstr(command->examples, "fermata"));
		assert_true(command->args_min <= command->args_max);
		assert_ptr_equal(command_find(command->name), command);
		assert_false(command_is_group(command->name));
		for (const struct option_spec *o = command->options; o != NULL && o->name != NULL; o++) {
			assert_ptr_equal(option_find(command->options, o->name), o);
			assert_null(option_find(common_options, o->name));
			assert_true(strlen(o->help) > 10);
		}
	}
}

/* Whatever lists, takes --json. */
static void what_lists_takes_json(void **state)
{
	static const char *const listing[] = { "pending",
		                                   "show",
		                                   "history",
		                                   "resumes",
		                                   "watch",
		                                   "config check",
		                                   "doctor",
		                                   "topics create",
		                                   "suspend",
		                                   "approve",
		                                   "schema fingerprint",
		                                   "in-doubt list",
		                                   "in-doubt resume",
		                                   "in-doubt drop" };

	(void)state;
	for (size_t i = 0; i < sizeof(listing) / sizeof(listing[0]); i++)
		assert_non_null(option_find(command_find(listing[i])->options, "json"));
}

static void assert_fits(struct view text, const char *name, size_t most)
{
	size_t lines = 0, columns = 0;

	for (size_t i = 0; i < text.len; i++) {
		columns = text.data[i] == '\n' ? 0 : columns + 1;
		lines += text.data[i] == '\n' ? 1 : 0;
		if (columns > SCREEN_COLUMNS)
			fail_msg("%s --help, line %zu has more than %d columns", name, lines + 1, SCREEN_COLUMNS);
	}
	if (lines > most)
		fail_msg("%s --help has %zu lines", name, lines);
}

static void help_fits_a_screen(void **state)
{
	struct buffer out;

	(void)state;
	buffer_init(&out, 1 << 20);
	for (const struct command *command = commands; command->name != NULL; command++) {
		buffer_reset(&out);
		help_command(command, &out);
		assert_fits(buffer_view(&out), command->name, SCREEN_LINES);
		buffer_append_byte(&out, '\0');
		assert_false(buffer_failed(&out));
		assert_non_null(strstr((const char *)out.data, command->name));
		assert_non_null(strstr((const char *)out.data, "examples:"));
	}
	buffer_reset(&out);
	help_all(NULL, &out);
	assert_fits(buffer_view(&out), "fermata", 60); /* all commands, one line each */
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	for (const struct command *command = commands; command->name != NULL; command++)
		assert_non_null(strstr((const char *)out.data, command->name));
	buffer_done(&out);
}

/* docs/man/fermata.1 is what the table says today. */
static void the_man_page_is_up_to_date(void **state)
{
	FILE *file = fopen(FERMATA_SOURCE_DIR "/docs/man/fermata.1", "r");
	struct buffer made;
	char *page;
	size_t len;

	(void)state;
	assert_non_null(file);
	buffer_init(&made, 1 << 20);
	help_man(&made);
	assert_false(buffer_failed(&made));
	page = malloc(made.len + 2);
	assert_non_null(page);
	len = fread(page, 1, made.len + 2, file);
	if (len != made.len || memcmp(page, made.data, len) != 0)
		fail_msg("docs/man/fermata.1 is not what cli/commands.c says: cmake --build BUILD --target man");
	free(page);
	fclose(file);
	buffer_done(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_is_there),     cmocka_unit_test(every_entry_is_whole),
		cmocka_unit_test(what_lists_takes_json),      cmocka_unit_test(help_fits_a_screen),
		cmocka_unit_test(the_man_page_is_up_to_date),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
