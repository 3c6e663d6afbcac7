#include "cli/cli.h"

#include "cli/help.h"
#include "cli/screen.h"
#include "core/log.h"
#include "vault/vault.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- saying what went wrong ---- */

static void say_line(const char *before, struct view text)
{
	struct buffer line;

	buffer_init(&line, (size_t)1 << 20);
	buffer_append_text(&line, before);
	put_clean(&line, text);
	buffer_append_byte(&line, '\n');
	(void)fflush(stdout);
	if (!buffer_failed(&line))
		(void)fwrite(line.data, 1, line.len, stderr);
	else
		fprintf(stderr, "%sno memory to say what went wrong\n", before);
	buffer_done(&line);
}

static void FM_PRINTF(2, 0) say_args(const char *before, const char *fmt, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	say_line(before, text != NULL ? view_of(text) : VIEW_LITERAL("no memory to say what went wrong"));
	free(text);
}

int cli_fail(const struct error *error)
{
	say_line("fermata: ", view_of(error->message));
	return error_exit_code(error);
}

int cli_no(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args("fermata: ", fmt, args);
	va_end(args);
	return EXIT_NO;
}

int cli_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args("fermata: ", fmt, args);
	va_end(args);
	return EXIT_USAGE;
}

/* Output that failed, and was said to have failed. */
static bool output_said;

int cli_sent(bool written, const char *what, const char *id)
{
	errno = 0;
	if (written && fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_YES;
	output_said = true;
	return cli_no(
		"%s %s WAS sent, do not send it again; only its id could not be written to standard output%s%s", what,
		id, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
}

void cli_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say_args("fermata: warning: ", fmt, args);
	va_end(args);
}

/* ---- what was given ---- */

const char *cli_value_at(const struct cli *cli, const char *name, size_t n)
{
	const struct parsed *parsed = cli->parsed;

	assert(option_find(cli->command->options, name) || option_find(common_options, name));
	for (size_t i = 0; i < parsed->options_len; i++)
		if (!strcmp(parsed->options[i].spec->name, name) && n-- == 0)
			return parsed->options[i].value != NULL ? parsed->options[i].value : "";
	return NULL;
}

const char *cli_value(const struct cli *cli, const char *name)
{
	const char *value = NULL, *next;

	for (size_t n = 0; (next = cli_value_at(cli, name, n)) != NULL; n++)
		value = next;
	return value;
}

bool cli_given(const struct cli *cli, const char *name)
{
	return cli_value(cli, name) != NULL;
}

enum fate cli_number(const struct cli *cli, const char *name, size_t fallback, size_t *ret_number,
                     struct error *error)
{
	const char *value = cli_value(cli, name);
	char *end;

	*ret_number = fallback;
	if (value == NULL)
		return FATE_OK;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number == 0 ||
	    number > SIZE_MAX / 2)
		return error_set(error, FATE_FATAL, ERR_USAGE, "--%s %.40s: it is to be a number from 1 on", name,
		                 value);
	*ret_number = (size_t)number;
	return FATE_OK;
}

const char *cli_argument(const struct cli *cli, size_t n)
{
	return n < cli->parsed->arguments_len ? cli->parsed->arguments[n] : NULL;
}

/* ---- the life of the process ---- */

static int show_help(const struct parsed *parsed)
{
	struct buffer out;

	buffer_init(&out, (size_t)1 << 20);
	if (parsed->command != NULL)
		help_command(parsed->command, &out);
	else
		help_all(parsed->group, &out);
	screen_write(&out);
	buffer_done(&out);
	return EXIT_YES;
}

/* Plaintext and keys will be in memory: no core dump, and no other process of this user may look in. */
static void close_windows(void)
{
	struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* A worker takes its signals when it is ready to: one that comes before is not lost, and ends it with 0. */
static void hold_signals(void)
{
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &held, NULL);
}

static void set_log(const struct cli *cli)
{
	enum log_format format = (enum log_format)config_choice(cli->config, PARAM_LOG_FORMAT);
	enum log_level level = (enum log_level)config_choice(cli->config, PARAM_LOG_LEVEL);

	/* A command that runs once says what failed in one line of its own. */
	if (!(cli->command->flags & COMMAND_LOGS) && !cli_given(cli, "verbose"))
		level = LOG_LEVEL_ERROR;
	log_setup(level, format);
}

static void say_warnings(const struct config *config, unsigned flags)
{
	size_t len;
	const char *const *warnings = config_warnings(config, &len);

	for (size_t i = 0; i < len; i++) {
		if (flags & COMMAND_LOGS)
			log_warn("config", "%s", warnings[i]);
		else
			cli_warn("%s", warnings[i]);
	}
}

static int run_command(struct cli *cli, struct error *error)
{
	const struct parsed *parsed = cli->parsed;
	struct config_request request = { parsed->config_file, parsed->overrides, parsed->overrides_len };
	int code;

	if (cli->command->flags & COMMAND_SIGNALS)
		hold_signals();
	if (cli->command->flags & COMMAND_VAULT)
		close_windows();
	if (vault_start(error) != FATE_OK || config_load(&cli->config, &request, error) != FATE_OK)
		return cli_fail(error);
	set_log(cli);
	say_warnings(cli->config, cli->command->flags);
	cli->json = option_find(cli->command->options, "json") != NULL && cli_given(cli, "json");
	code = cli->command->run(cli);
	config_free(cli->config);
	return code;
}

/* The words behind the command, its own name before them. */
static enum fate fill_raw(struct cli *cli, struct error *error)
{
	const struct parsed *parsed = cli->parsed;

	cli->raw_argv = calloc(parsed->raw_len + 2, sizeof(*cli->raw_argv));
	if (cli->raw_argv == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the command line");
	cli->raw_argv[0] = (char *)(uintptr_t)cli->command->name;
	memcpy(cli->raw_argv + 1, parsed->raw, parsed->raw_len * sizeof(*parsed->raw));
	cli->raw_argc = (int)parsed->raw_len + 1;
	return FATE_OK;
}

/* What could not be written was not said: that is no success. */
static int check_output(int code)
{
	if (!screen_whole()) {
		(void)cli_no("there was no memory for all of the output: it is not whole");
		return code != EXIT_YES ? code : EXIT_AGAIN;
	}
	if ((fflush(stdout) == 0 && !ferror(stdout)) || output_said)
		return code;
	(void)cli_no("could not write to standard output: %s", strerror(errno));
	return code != EXIT_YES ? code : EXIT_AGAIN;
}

/* Who starts us with stdin, stdout or stderr closed would have a socket of ours take its place. */
static bool keep_standard_files(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

int cli_main(const char *name, int argc, char **argv)
{
	struct parsed parsed;
	struct error error = { .fate = FATE_OK };
	struct cli cli = { .parsed = &parsed, .started_at = clock_real_us() };
	const char *preset = !strcmp(name, "fermata-worker") ? "worker" : NULL;
	int code = EXIT_YES;

	tzset();
	if (!keep_standard_files())
		return EXIT_AGAIN;
	if (parse_words(&parsed, argc, argv, preset, &error) != FATE_OK) {
		code = cli_fail(&error);
	} else if (parsed.wanted == WANTED_HELP) {
		code = show_help(&parsed);
	} else if (parsed.wanted == WANTED_VERSION) {
		printf("%s %s\n", name, FERMATA_VERSION);
	} else {
		cli.command = parsed.command;
		code = fill_raw(&cli, &error) == FATE_OK ? run_command(&cli, &error) : cli_fail(&error);
	}
	free(cli.raw_argv);
	parsed_done(&parsed);
	return check_output(code);
}
