#include "cli/parse.h"

#include "config/nearest.h"
#include "core/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct parsed *parsed;
	char **words;
	size_t len;
	size_t at;
	const char *group; /* first word of a command of two */
	bool literal;      /* "--" was seen */
};

/* ---- unknown names ---- */

/* " (did you mean X?)" where something is near enough to be meant. */
static void suggest(const struct nearest *nearest, const char *prefix, char *text, size_t cap)
{
	text[0] = '\0';
	if (nearest->key != NULL && nearest->distance <= 1 + strlen(nearest->key) / 2)
		snprintf(text, cap, ": did you mean %s%.40s?", prefix, nearest->key);
	else
		snprintf(text, cap, ": see `fermata --help`");
}

static enum fate unknown_command(const char *name, struct error *error)
{
	struct nearest nearest = { NULL, SIZE_MAX };
	char hint[80];

	for (const struct command *command = commands; command->name != NULL; command++)
		nearest_try(&nearest, name, command->name);
	suggest(&nearest, "`fermata ", hint, sizeof(hint));
	if (nearest.key != NULL && hint[2] == 'd')
		snprintf(hint, sizeof(hint), ": did you mean `fermata %.40s`?", nearest.key);
	return error_set(error, FATE_FATAL, ERR_USAGE, "there is no command \"%.60s\"%s", name, hint);
}

/* A single letter is near to nothing. */
static void nearest_among(struct nearest *nearest, const struct option_spec *options, const char *name)
{
	if (strlen(name) < 2)
		return;
	for (; options != NULL && options->name != NULL; options++)
		if (strlen(options->name) > 1)
			nearest_try(nearest, name, options->name);
}

static enum fate unknown_option(const struct parser *parser, const char *word, const char *name,
                                struct error *error)
{
	const struct command *command = parser->parsed->command;
	struct nearest nearest = { NULL, SIZE_MAX };
	char hint[80];

	if (command == NULL) {
		nearest_among(&nearest, common_options, name);
		suggest(&nearest, "--", hint, sizeof(hint));
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "unknown option %.60s before the command (a command's own options go behind it)%s",
		                 word, hint);
	}
	nearest_among(&nearest, command->options, name);
	nearest_among(&nearest, common_options, name);
	suggest(&nearest, "--", hint, sizeof(hint));
	return error_set(error, FATE_FATAL, ERR_USAGE, "`fermata %s` has no option %.60s%s", command->name, word,
	                 hint);
}

/* "create" for the group "topics". */
static enum fate unknown_in_group(const char *group, const char *word, struct error *error)
{
	char names[120] = "";
	size_t len = 0;

	for (const struct command *command = commands; command->name != NULL; command++)
		if (command_in_group(command, group) && len < sizeof(names))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s`fermata %s`", len > 0 ? ", " : "",
			                        command->name);
	if (word == NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE, "`fermata %s` needs one more word: %s", group, names);
	return error_set(error, FATE_FATAL, ERR_USAGE, "there is no command \"%s %.60s\": there is %s", group,
	                 word, names);
}

/* ---- options ---- */

static const char *next_word(struct parser *parser)
{
	return parser->at < parser->len ? parser->words[parser->at++] : NULL;
}

static void keep_raw(struct parser *parser, const char *word)
{
	struct parsed *parsed = parser->parsed;

	if (parsed->command != NULL && (parsed->command->flags & COMMAND_RAW))
		parsed->raw[parsed->raw_len++] = (char *)(uintptr_t)word;
}

/* The value of an option: what stands behind "=", else the next word. */
static enum fate take_value(struct parser *parser, const char *word, const char *attached, const char *what,
                            const char **ret_value, struct error *error)
{
	*ret_value = attached != NULL ? attached : next_word(parser);
	if (*ret_value == NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE, "%.60s needs a value: %.60s %s", word, word, what);
	return FATE_OK;
}

static enum fate take_common(struct parser *parser, const struct option_spec *spec, const char *word,
                             const char *attached, struct error *error)
{
	struct parsed *parsed = parser->parsed;
	const char *value = NULL;

	if (spec->value != NULL && take_value(parser, word, attached, spec->value, &value, error) != FATE_OK)
		return error->fate;
	if (!strcmp(spec->name, "config"))
		parsed->config_file = value;
	else if (!strcmp(spec->name, "X"))
		parsed->overrides[parsed->overrides_len++] = value;
	else if (!strcmp(spec->name, "help"))
		parsed->wanted = WANTED_HELP;
	else if (!strcmp(spec->name, "version"))
		parsed->wanted = WANTED_VERSION;
	else
		parsed->options[parsed->options_len++] = (struct given_option){ spec, value };
	return FATE_OK;
}

static enum fate take_own(struct parser *parser, const struct option_spec *spec, const char *word,
                          const char *attached, struct error *error)
{
	struct parsed *parsed = parser->parsed;
	const char *value = NULL;

	keep_raw(parser, word);
	if (spec->value != NULL) {
		enum fate fate = take_value(parser, word, attached, spec->value, &value, error);
		if (fate != FATE_OK)
			return fate;
		if (attached == NULL)
			keep_raw(parser, value);
	}
	parsed->options[parsed->options_len++] = (struct given_option){ spec, value };
	return FATE_OK;
}

/* `word` begins with a dash. */
static enum fate take_option(struct parser *parser, const char *word, struct error *error)
{
	const struct command *command = parser->parsed->command;
	const struct option_spec *spec, *own;
	const char *attached = NULL;
	char name[64];

	if (!strcmp(word, "-h"))
		word = "--help";
	if (!strncmp(word, "-X", 2)) {
		snprintf(name, sizeof(name), "X");
		attached = word[2] != '\0' ? word + 2 : NULL;
	} else {
		if (word[1] != '-')
			return unknown_option(parser, word, word + 1, error);
		const char *equals = strchr(word, '=');
		size_t len = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word + 2);
		snprintf(name, sizeof(name), "%.*s", len > 60 ? 60 : (int)len, word + 2);
		attached = equals != NULL ? equals + 1 : NULL;
	}
	own = command != NULL ? option_find(command->options, name) : NULL;
	spec = own != NULL ? own : option_find(common_options, name);
	if (spec == NULL || (!strcmp(name, "X") && word[1] == '-'))
		return unknown_option(parser, word, name, error);
	if (spec->value == NULL && attached != NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE, "--%s takes no value", spec->name);
	return own != NULL ? take_own(parser, spec, word, attached, error)
	                   : take_common(parser, spec, word, attached, error);
}

/* ---- UTF-8 ---- */

/* The name of a file is what the file system has, all else goes into records, the database or a line. */
static bool is_file(const char *what)
{
	return what != NULL && (strstr(what, "FILE") != NULL || !strcmp(what, "DIR"));
}

static enum fate check_options(const struct parsed *parsed, struct error *error)
{
	for (size_t i = 0; i < parsed->options_len; i++) {
		const struct given_option *option = &parsed->options[i];
		if (option->value != NULL && !is_file(option->spec->value) && !view_is_utf8(view_of(option->value)))
			return error_set(error, FATE_FATAL, ERR_USAGE, "the value of --%s is not UTF-8: \"%.60s\"",
			                 option->spec->name, option->value);
	}
	for (size_t i = 0; i < parsed->overrides_len; i++)
		if (!view_is_utf8(view_of(parsed->overrides[i])))
			return error_set(error, FATE_FATAL, ERR_USAGE, "the value of -X is not UTF-8: \"%.60s\"",
			                 parsed->overrides[i]);
	return FATE_OK;
}

/* No id, name or file is empty: a variable of a script is. */
static enum fate check_empty(const struct parsed *parsed, struct error *error)
{
	for (size_t i = 0; i < parsed->arguments_len; i++)
		if (view_of(parsed->arguments[i]).len == 0)
			return error_set(error, FATE_FATAL, ERR_USAGE, "argument %zu of `fermata %s` (%s) is empty",
			                 i + 1, parsed->command->name, parsed->command->arguments);
	return FATE_OK;
}

static enum fate check_words(const struct parsed *parsed, struct error *error)
{
	enum fate fate = check_empty(parsed, error);

	if (fate != FATE_OK)
		return fate;
	for (size_t i = 0; i < parsed->arguments_len && !is_file(parsed->command->arguments); i++)
		if (!view_is_utf8(view_of(parsed->arguments[i])))
			return error_set(error, FATE_FATAL, ERR_USAGE,
			                 "argument %zu of `fermata %s` (%s) is not UTF-8: \"%.60s\"", i + 1,
			                 parsed->command->name, parsed->command->arguments, parsed->arguments[i]);
	return check_options(parsed, error);
}

/* ---- words ---- */

/* The first word, or the second of a group, names the command. */
static enum fate take_command(struct parser *parser, const char *word, struct error *error)
{
	struct parsed *parsed = parser->parsed;
	char name[80];

	if (parser->group == NULL) {
		parsed->command = command_find(word);
		if (parsed->command != NULL)
			return FATE_OK;
		if (!command_is_group(word))
			return unknown_command(word, error);
		parser->group = word;
		return FATE_OK;
	}
	snprintf(name, sizeof(name), "%s %.60s", parser->group, word);
	parsed->command = command_find(name);
	return parsed->command != NULL ? FATE_OK : unknown_in_group(parser->group, word, error);
}

static enum fate take_words(struct parser *parser, struct error *error)
{
	struct parsed *parsed = parser->parsed;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && parser->at < parser->len) {
		const char *word = next_word(parser);
		if (!parser->literal && !strcmp(word, "--"))
			parser->literal = true;
		else if (!parser->literal && word[0] == '-' && word[1] != '\0')
			fate = take_option(parser, word, error);
		else if (parsed->command == NULL)
			fate = take_command(parser, word, error);
		else {
			keep_raw(parser, word);
			parsed->arguments[parsed->arguments_len++] = word;
		}
	}
	return fate;
}

/* `fermata help [COMMAND]`: the words behind it name the command. */
static enum fate take_help(struct parser *parser, struct error *error)
{
	enum fate fate = FATE_OK;

	parser->parsed->wanted = WANTED_HELP;
	while (parser->at < parser->len && !strcmp(parser->words[parser->at], "help"))
		parser->at++;
	while (fate == FATE_OK && parser->at < parser->len && parser->parsed->command == NULL)
		fate = take_command(parser, next_word(parser), error);
	parser->parsed->group = parser->parsed->command == NULL ? parser->group : NULL;
	return fate;
}

static enum fate check_count(const struct parser *parser, struct error *error)
{
	const struct parsed *parsed = parser->parsed;
	const struct command *command = parsed->command;

	if (command == NULL && parser->group != NULL)
		return unknown_in_group(parser->group, NULL, error);
	if (command == NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE, "a command is missing: see `fermata --help`");
	if (parsed->arguments_len < command->args_min)
		return error_set(error, FATE_FATAL, ERR_USAGE, "`fermata %s` needs %s: see `fermata %s --help`",
		                 command->name, command->arguments, command->name);
	if (parsed->arguments_len > command->args_max)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "`fermata %s` does not take \"%.60s\": see `fermata %s --help`", command->name,
		                 parsed->arguments[command->args_max], command->name);
	return FATE_OK;
}

enum fate parse_words(struct parsed *ret_parsed, int argc, char **argv, const char *preset,
                      struct error *error)
{
	size_t room = argc > 0 ? (size_t)argc + 1 : 1;
	struct parser parser = { .parsed = ret_parsed,
		                     .words = argv + 1,
		                     .len = argc > 1 ? (size_t)argc - 1 : 0 };
	enum fate fate;

	*ret_parsed = (struct parsed){ .wanted = WANTED_RUN };
	ret_parsed->overrides = calloc(room, sizeof(*ret_parsed->overrides));
	ret_parsed->options = calloc(room, sizeof(*ret_parsed->options));
	ret_parsed->arguments = calloc(room, sizeof(*ret_parsed->arguments));
	ret_parsed->raw = calloc(room, sizeof(*ret_parsed->raw));
	if (!ret_parsed->overrides || !ret_parsed->options || !ret_parsed->arguments || !ret_parsed->raw)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the command line");
	if (preset != NULL)
		ret_parsed->command = command_find(preset);
	if (parser.len > 0 && preset == NULL && !strcmp(parser.words[0], "help"))
		return take_help(&parser, error);
	fate = take_words(&parser, error);
	if (ret_parsed->wanted == WANTED_HELP && ret_parsed->command == NULL)
		ret_parsed->group = parser.group;
	if (fate != FATE_OK || ret_parsed->wanted != WANTED_RUN)
		return fate;
	fate = check_count(&parser, error);
	return fate == FATE_OK ? check_words(ret_parsed, error) : fate;
}

void parsed_done(struct parsed *parsed)
{
	free(parsed->overrides);
	free(parsed->options);
	free(parsed->arguments);
	free(parsed->raw);
	*parsed = (struct parsed){ 0 };
}
