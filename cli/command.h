/*
 * command.h - the one table of commands. Parser, help, man page and tests read it; nothing about a command is
 * said anywhere else. (After OpenSMTPD's smtpctl.c.)
 */
#ifndef FERMATA_CLI_COMMAND_H
#define FERMATA_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct cli;

struct option_spec {
	const char *name;  /* without the dashes; NULL ends a list */
	const char *value; /* what its value is called in the help; NULL: it takes none */
	const char *help;
};

enum command_flag {
	COMMAND_VAULT = 1,   /* opens the vault: no core dumps, not to be traced */
	COMMAND_LOGS = 2,    /* logs as configured; the others keep stderr for their one line */
	COMMAND_RAW = 4,     /* gets its own words as they were given (cli->raw_argv) */
	COMMAND_SIGNALS = 8, /* waits for SIGTERM, SIGINT and SIGHUP itself: they are blocked when it is run */
};

struct command {
	const char *name;                  /* one word or two: "topics create" */
	const char *arguments;             /* as in the usage line; "" for none */
	const char *summary;               /* one line */
	const char *about;                 /* lines of at most 76 columns, each with a newline */
	const char *examples;              /* the same */
	const struct option_spec *options; /* its own, or NULL; --json among them where it lists */
	size_t args_min;
	size_t args_max;
	unsigned flags;
	/* Does it and returns the exit code; what went wrong has been said on stderr. */
	int (*run)(struct cli *cli);
};

/* The table, in the order in which the help shows it; the entry after the last one has no name. */
extern const struct command commands[];
/* What every command takes. */
extern const struct option_spec common_options[];

/* The command of that name, or NULL. */
const struct command *command_find(const char *name);
/* Is it the first word of a command of two words? */
bool command_is_group(const char *word);
/* Does a name ("topics create") begin with this word and a blank? */
bool command_in_group(const struct command *command, const char *word);
/* The entry of that name in a list (which may be NULL), or NULL. */
const struct option_spec *option_find(const struct option_spec *options, const char *name);

#endif
