/*
 * parse.h - the words of the command line against the table of commands.
 *
 * --config FILE and -X KEY=VALUE (and the other common options) may stand before or after the command; a
 * command's own options behind its name, in any order with its arguments. `--name VALUE` and `--name=VALUE`
 * are the same; "--" ends the options.
 */
#ifndef FERMATA_CLI_PARSE_H
#define FERMATA_CLI_PARSE_H

#include "cli/command.h"
#include "core/error.h"

enum wanted { WANTED_RUN, WANTED_HELP, WANTED_VERSION };

struct given_option {
	const struct option_spec *spec;
	const char *value; /* NULL where it takes none */
};

/* Everything borrows from argv. */
struct parsed {
	enum wanted wanted;
	const struct command *command; /* WANTED_HELP: NULL for the help of all */
	const char *group;             /* WANTED_HELP of a group ("topics"): its word; else NULL */
	const char *config_file;
	const char **overrides;
	size_t overrides_len;
	struct given_option *options; /* those of the command, and --verbose */
	size_t options_len;
	const char **arguments;
	size_t arguments_len;
	char **raw; /* what was given behind the command without the common options */
	size_t raw_len;
};

/* FATAL ERR_USAGE: what is wrong, naming the nearest command or option. preset: the command when its name is
 * not to be given ("worker" for fermata-worker), or NULL. parsed_done in any case. */
FM_MUSTCHECK enum fate parse_words(struct parsed *ret_parsed, int argc, char **argv, const char *preset,
                                   struct error *error);
void parsed_done(struct parsed *parsed);

#endif
