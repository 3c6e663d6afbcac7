/* cmd_doctor.c - `fermata doctor`: finds what is wrong and says how to mend it. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/doctor.h"
#include "cli/row_json.h"
#include "cli/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CHECK_COLUMNS 14
#define INDENT        25
#define ARENA_BYTES   ((size_t)1 << 20)

/* ---- saying ---- */

static const struct {
	const char *name;
	enum colour colour;
} findings[] = {
	[FINDING_OK] = { "ok", COLOUR_GREEN },
	[FINDING_WARNING] = { "warning", COLOUR_YELLOW },
	[FINDING_WRONG] = { "wrong", COLOUR_RED },
	[FINDING_SKIPPED] = { "skipped", COLOUR_DIM },
};

static void say_text(enum finding finding, const char *check, const char *mend, const char *text)
{
	struct buffer out;

	buffer_init(&out, (size_t)1 << 20);
	buffer_printf(&out, "%s%-8s%s  %-*s ", colour_on(findings[finding].colour), findings[finding].name,
	              colour_off(findings[finding].colour), CHECK_COLUMNS, check);
	put_clean(&out, view_of(text));
	buffer_append_byte(&out, '\n');
	if (mend != NULL) {
		buffer_printf(&out, "%*smend: ", INDENT, "");
		put_clean(&out, view_of(mend));
		buffer_append_byte(&out, '\n');
	}
	screen_write(&out);
	buffer_done(&out);
	(void)fflush(stdout);
}

static void say_json(struct doctor *doctor, enum finding finding, const char *check, const char *mend,
                     const char *text)
{
	struct json_line *line = json_line_new();

	json_line_text(line, "check", view_of(check));
	json_line_text(line, "result", view_of(findings[finding].name));
	json_line_text(line, "detail", view_of(text));
	json_line_text(line, "mend", view_of(mend));
	(void)!json_line_write(line, &doctor->failed);
}

void doctor_say(struct doctor *doctor, enum finding finding, const char *check, const char *mend,
                const char *fmt, ...)
{
	char text[700];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	doctor->wrong += finding == FINDING_WRONG ? 1 : 0;
	if (doctor->cli->json)
		say_json(doctor, finding, check, mend, text);
	else
		say_text(finding, check, mend, text);
}

void doctor_say_error(struct doctor *doctor, enum finding finding, const char *check, const char *mend,
                      const struct error *error)
{
	/* The message of one line has what to do behind a semicolon. */
	const char *advice = strstr(error->message, "; ");
	int len = advice != NULL ? (int)(advice - error->message) : (int)strlen(error->message);

	doctor_say(doctor, finding, check, advice != NULL ? advice + 2 : mend, "%.*s", len, error->message);
}

/* ---- configuration ---- */

void doctor_configuration(struct doctor *doctor)
{
	const struct config *config = doctor->cli->config;
	const char *file = config_file(config);
	size_t len;
	const char *const *warnings = config_warnings(config, &len);

	doctor_say(doctor, FINDING_OK, "configuration", NULL, "%s",
	           file != NULL ? file : "no file: defaults, environment and command line");
	for (size_t i = 0; i < len; i++)
		doctor_say(doctor, FINDING_WARNING, "configuration", NULL, "%s", warnings[i]);
}

/* ---- keyring ---- */

void doctor_keyring(struct doctor *doctor)
{
	const char *file = config_text(doctor->cli->config, PARAM_VAULT_KEYRING_FILE);
	struct error error = { .fate = FATE_OK };
	struct vault *vault = NULL;

	if (connect_vault(doctor->cli, &vault, &error) == FATE_OK)
		doctor_say(doctor, FINDING_OK, "keyring", NULL, "%s has a primary key",
		           file != NULL ? file : "the source of keys");
	else
		doctor_say_error(doctor, FINDING_WRONG, "keyring",
		                 file != NULL && access(file, F_OK) != 0 ? "run `fermata keys generate`" : NULL,
		                 &error);
	vault_close(vault);
}

/* ---- the machine ---- */

#define FILES_A_RELAY  24 /* a producer and a consumer, a few brokers each, and a connection to PostgreSQL */
#define FILES_THE_REST 128
#define MEMLOCK_BYTES  65536

static void check_files(struct doctor *doctor)
{
	struct rlimit files;
	size_t topics;
	rlim_t wanted;

	(void)config_resumes_topics(doctor->cli->config, &topics);
	wanted = FILES_THE_REST + FILES_A_RELAY * (rlim_t)topics *
	                              (rlim_t)config_number(doctor->cli->config, PARAM_TOPICS_PARTITIONS);
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	if (files.rlim_cur != RLIM_INFINITY && files.rlim_cur < wanted)
		doctor_say(doctor, FINDING_WARNING, "open files",
		           "raise it: `ulimit -n`, or LimitNOFILE= of the systemd unit",
		           "the limit is %llu, a worker that holds all partitions may want %llu",
		           (unsigned long long)files.rlim_cur, (unsigned long long)wanted);
	else
		doctor_say(doctor, FINDING_OK, "open files", NULL, "the limit is %llu",
		           (unsigned long long)files.rlim_cur);
}

/* Keys lie in locked memory, so that they never get to the swap. */
static void check_memory_lock(struct doctor *doctor)
{
	struct rlimit locked;

	if (getrlimit(RLIMIT_MEMLOCK, &locked) != 0)
		return;
	if (locked.rlim_cur != RLIM_INFINITY && locked.rlim_cur < MEMLOCK_BYTES)
		doctor_say(doctor, FINDING_WARNING, "locked memory",
		           "raise it: `ulimit -l`, or LimitMEMLOCK= of the systemd unit",
		           "the limit is %llu bytes: keys may get to the swap", (unsigned long long)locked.rlim_cur);
	else
		doctor_say(doctor, FINDING_OK, "locked memory", NULL, "enough for the keys");
}

void doctor_machine(struct doctor *doctor)
{
	check_files(doctor);
	check_memory_lock(doctor);
}

/* ---- all of it ---- */

int cmd_doctor(struct cli *cli)
{
	static void (*const checks[])(struct doctor *) = { doctor_configuration, doctor_machine,  doctor_keyring,
		                                               doctor_schemas,       doctor_postgres, doctor_kafka };
	struct doctor doctor = { .cli = cli, .arena = arena_new(ARENA_BYTES), .failed = { .fate = FATE_OK } };

	if (doctor.arena == NULL) {
		(void)error_set(&doctor.failed, FATE_FATAL, ERR_MEMORY, "no memory for what the database knows");
		return cli_fail(&doctor.failed);
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&doctor);
	arena_free(doctor.arena);
	if (doctor.failed.fate != FATE_OK)
		return cli_fail(&doctor.failed);
	if (!cli->json && doctor.wrong == 0)
		printf("a worker can start\n");
	else if (!cli->json)
		printf("%zu %s to be mended before a worker can do its work\n", doctor.wrong,
		       doctor.wrong == 1 ? "thing is" : "things are");
	return doctor.wrong == 0 ? EXIT_YES : EXIT_NO;
}
