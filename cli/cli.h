/*
 * cli.h - one call of the command line: what was given, and how it says what went wrong.
 */
#ifndef FERMATA_CLI_CLI_H
#define FERMATA_CLI_CLI_H

#include "cli/parse.h"
#include "config/config.h"

struct cli {
	const struct command *command;
	const struct parsed *parsed;
	struct config *config;
	bool json;
	int64_t started_at; /* us */
	int raw_argc;       /* for COMMAND_RAW: its name, then its words as they were given */
	char **raw_argv;
};

/* Exit codes that no struct error stands behind. */
#define EXIT_YES   0
#define EXIT_NO    1
#define EXIT_USAGE 2
#define EXIT_AGAIN 75

/* The life of the process `fermata`. name: "fermata", or "fermata-worker", which stands for
 * `fermata worker`. Returns the exit code. */
int cli_main(const char *name, int argc, char **argv);

/* Was the option given? The name must be one of the command's (or of the common ones). */
bool cli_given(const struct cli *cli, const char *name);
/* Its last value, or NULL. */
const char *cli_value(const struct cli *cli, const char *name);
/* Its n-th value (from 0), or NULL. */
const char *cli_value_at(const struct cli *cli, const char *name, size_t n);
/* Its value as a number from 1 on; absent: fallback. FATAL ERR_USAGE when it is none. */
FM_MUSTCHECK enum fate cli_number(const struct cli *cli, const char *name, size_t fallback,
                                  size_t *ret_number, struct error *error);
/* The n-th argument, or NULL. */
const char *cli_argument(const struct cli *cli, size_t n);

/* Say on stderr, as one line, what failed; return the exit code. Control characters are shown as escapes. */
int cli_fail(const struct error *error);
int cli_no(const char *fmt, ...) FM_PRINTF(1, 2);
int cli_usage(const char *fmt, ...) FM_PRINTF(1, 2);
/* Flushes stdout, which has what Kafka has acknowledged: what was sent is not to be sent again for want of its
 * id, so where stdout does not take it, that is said here, with the id, and the answer is EXIT_NO. written: that
 * all of it got as far as stdout. what: "decision". */
int cli_sent(bool written, const char *what, const char *id);
void cli_warn(const char *fmt, ...) FM_PRINTF(1, 2);

#endif
