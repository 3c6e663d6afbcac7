/* test_cli_output.h - what a piece of code writes to stdout, as text. */
#ifndef FERMATA_TESTS_UNIT_TEST_CLI_OUTPUT_H
#define FERMATA_TESTS_UNIT_TEST_CLI_OUTPUT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct capture {
	FILE *file;
	int saved;
};

static inline void capture_begin(struct capture *capture)
{
	fflush(stdout);
	capture->file = tmpfile();
	assert_non_null(capture->file);
	capture->saved = dup(STDOUT_FILENO);
	dup2(fileno(capture->file), STDOUT_FILENO);
}

/* The text; the caller frees it. */
static inline char *capture_end(struct capture *capture)
{
	char *text;

	fflush(stdout);
	dup2(capture->saved, STDOUT_FILENO);
	close(capture->saved);
	long len = lseek(fileno(capture->file), 0, SEEK_END);
	text = calloc(1, (size_t)len + 1);
	assert_non_null(text);
	assert_int_equal(pread(fileno(capture->file), text, (size_t)len, 0), len);
	fclose(capture->file);
	return text;
}

#endif
