#include "cli/help.h"

#include <stdio.h>
#include <string.h>

/* "--reason TEXT", "-X KEY=VALUE". */
static void option_words(const struct option_spec *option, char *text, size_t cap)
{
	snprintf(text, cap, "%s%s%s%s", strlen(option->name) == 1 ? "-" : "--", option->name,
	         option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
}

static void put_options(const struct option_spec *options, struct buffer *out)
{
	char words[64];

	for (; options != NULL && options->name != NULL; options++) {
		option_words(options, words, sizeof(words));
		buffer_printf(out, "  %-18s %s\n", words, options->help);
	}
}

/* Each line of the text behind two blanks. */
static void put_indented(const char *text, struct buffer *out)
{
	while (*text != '\0') {
		const char *end = strchr(text, '\n');
		int len = end != NULL ? (int)(end - text) : (int)strlen(text);
		buffer_printf(out, "%s%.*s\n", len > 0 ? "  " : "", len, text);
		text += len + (end != NULL ? 1 : 0);
	}
}

void help_command(const struct command *command, struct buffer *out)
{
	bool plain = command->options == NULL;

	buffer_printf(out, "fermata %s: %s\n\n", command->name, command->summary);
	buffer_printf(out, "usage: fermata %s%s%s%s\n\n", command->name, *command->arguments != '\0' ? " " : "",
	              command->arguments, plain ? "" : " [options]");
	put_indented(command->about, out);
	if (!plain) {
		buffer_append_text(out, "\noptions:\n");
		put_options(command->options, out);
	}
	buffer_append_text(out, "\nexamples:\n");
	put_indented(command->examples, out);
}

static void put_summaries(const char *group, struct buffer *out)
{
	char words[64];

	for (const struct command *command = commands; command->name != NULL; command++) {
		if (group != NULL && !command_in_group(command, group))
			continue;
		snprintf(words, sizeof(words), "%s%s%s", command->name, *command->arguments != '\0' ? " " : "",
		         command->arguments);
		buffer_printf(out, "  %-25s %s\n", words, command->summary);
	}
}

void help_all(const char *group, struct buffer *out)
{
	if (group != NULL) {
		buffer_printf(out, "usage: fermata %s COMMAND\n\n", group);
		put_summaries(group, out);
		buffer_printf(out, "\nexample:\n  fermata %s COMMAND --help\n", group);
		return;
	}
	buffer_append_text(out, "fermata: holds an agent at an approval gate, and lets it go on exactly once\n\n"
	                        "usage: fermata COMMAND [ARGUMENTS] [options]\n\n");
	put_summaries(NULL, out);
	buffer_append_text(out, "\nwith every command, before or behind it:\n");
	put_options(common_options, out);
	buffer_append_text(out, "\nexample:  fermata help approve\n");
}

/* ---- the man page ---- */

/* Text for roff: a backslash doubled, no dot or quote at the start of a line taken for a request, hyphens that
 * can be copied. */
static void put_roff(const char *text, struct buffer *out)
{
	for (bool start = true; *text != '\0'; text++) {
		if (start && (*text == '.' || *text == '\''))
			buffer_append_text(out, "\\&");
		if (*text == '\\')
			buffer_append_text(out, "\\e");
		else if (*text == '-')
			buffer_append_text(out, "\\-");
		else if (*text == '\'')
			buffer_append_text(out, "\\(aq");
		else if (*text == '`')
			buffer_append_text(out, "\\(ga");
		else if (*text == '~')
			buffer_append_text(out, "\\(ti");
		else if (*text == '^')
			buffer_append_text(out, "\\(ha");
		else
			buffer_append_byte(out, (uint8_t)*text);
		start = *text == '\n';
	}
}

static void man_options(const struct option_spec *options, struct buffer *out)
{
	for (; options != NULL && options->name != NULL; options++) {
		buffer_append_text(out, ".TP\n\\fB");
		put_roff(strlen(options->name) == 1 ? "-" : "--", out);
		put_roff(options->name, out);
		buffer_append_text(out, "\\fR");
		if (options->value != NULL) {
			buffer_append_text(out, " \\fI");
			put_roff(options->value, out);
			buffer_append_text(out, "\\fR");
		}
		buffer_append_text(out, "\n");
		put_roff(options->help, out);
		buffer_append_text(out, "\n");
	}
}

static void man_command(const struct command *command, struct buffer *out)
{
	buffer_append_text(out, ".SS \"fermata ");
	put_roff(command->name, out);
	if (*command->arguments != '\0') {
		buffer_append_text(out, " \\fI");
		put_roff(command->arguments, out);
		buffer_append_text(out, "\\fP");
	}
	buffer_append_text(out, "\"\n");
	put_roff(command->about, out);
	man_options(command->options, out);
	buffer_append_text(out, ".PP\nExamples:\n.PP\n.EX\n");
	put_roff(command->examples, out);
	buffer_append_text(out, ".EE\n");
}

static const char man_head[] =
	".TH FERMATA 1 \"\" \"Fermata\" \"User Commands\"\n"
	".\\\" Made by gen_man from cli/commands.c: change it there, then `cmake --build build --target man`.\n"
	".SH NAME\n"
	"fermata \\- holds a running agent at an approval gate, and lets it go on exactly once\n"
	".SH SYNOPSIS\n"
	".B fermata\n"
	".I COMMAND\n"
	"[\\fIARGUMENTS\\fR] [\\fIoptions\\fR]\n"
	".br\n"
	".B fermata\\-worker\n"
	"[\\fIoptions\\fR]\n"
	".SH DESCRIPTION\n"
	"An agent that comes to a gate sends a suspend event to Kafka and ends. The worker seals the event and "
	"keeps\n"
	"it in PostgreSQL. When the decision comes, it puts the whole session on the resumes topic, where an "
	"executor\n"
	"takes it up. \\fBfermata\\-worker\\fR is the same as \\fBfermata worker\\fR.\n"
	".SH OPTIONS\n"
	"These go with every command, before or behind its name.\n";

static const char man_tail[] =
	".SH OUTPUT\n"
	"For people: aligned columns, colours only on a terminal and not with \\fBNO_COLOR\\fR set, control "
	"characters\n"
	"from outside shown as escapes. With \\fB\\-\\-json\\fR one object a line: field names as in the "
	"records, unions\n"
	"plain, times as integers (microseconds since 1970), bytes as in Avro's JSON encoding, NaN and "
	"infinities as\n"
	"strings. Errors go to standard error as one line: what failed, on what, why, and what to do.\n"
	".SH EXIT STATUS\n"
	".TP\n.B 0\nDone.\n"
	".TP\n.B 1\nThe answer is no: nothing matched, or it was refused.\n"
	".TP\n.B 2\nUsage or configuration.\n"
	".TP\n.B 69\nA service cannot be reached.\n"
	".TP\n.B 70\nA bug of Fermata.\n"
	".TP\n.B 75\nTry again.\n"
	".SH FILES\n"
	".TP\n.I ./fermata.conf\n"
	"The configuration, when neither \\fB\\-\\-config\\fR nor \\fBFERMATA_CONFIG\\fR names another.\n"
	".TP\n.I /etc/fermata/fermata.conf\n"
	"Read when the one above is not there.\n"
	".SH ENVIRONMENT\n"
	".TP\n.B FERMATA_CONFIG\n"
	"The configuration file.\n"
	".TP\n.B FERMATA_\\fIKEY\\fR\n"
	"A key of the configuration in upper case, dots as underscores: \\fBFERMATA_POSTGRES_DSN\\fR. It goes "
	"before\n"
	"the file; \\fB\\-X\\fR goes before both.\n"
	".TP\n.B NO_COLOR\n"
	"No colours when it is set and not empty.\n"
	".TP\n.B CREDENTIALS_DIRECTORY\n"
	"Of systemd: its file \\fIkeyring\\fR is a source of keys.\n";

void help_man(struct buffer *out)
{
	buffer_append_text(out, man_head);
	man_options(common_options, out);
	buffer_append_text(out, ".SH COMMANDS\n");
	for (const struct command *command = commands; command->name != NULL; command++)
		man_command(command, out);
	buffer_append_text(out, man_tail);
}
