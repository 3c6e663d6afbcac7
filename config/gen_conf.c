/*
 * gen_conf.c - makes config/fermata.conf and docs/configuration.md from the tables of the keys.
 *
 *   fermata_gen_conf write DIR    writes both below the project's folder
 *   fermata_gen_conf check DIR    exit 1 when what is there differs from what would be written
 */
#include "config/kafka_owned.h"
#include "config/params.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 20)
#define WIDTH    100 /* columns of the comments in fermata.conf */

/* --- what both files say about a key --- */

static const char *type_name(const struct param_info *info)
{
	switch (info->type) {
	case TYPE_NUMBER:
		if (strcmp(info->unit, "bytes") == 0)
			return "size";
		return strcmp(info->unit, "ms") == 0 ? "duration" : "number";
	case TYPE_FLAG:
		return "flag";
	case TYPE_CHOICE:
		return "choice";
	case TYPE_LIST:
		return "words";
	case TYPE_TEXT:
		break;
	}
	if (strcmp(info->unit, "address") == 0)
		return "HOST:PORT";
	if (strcmp(info->unit, "url") == 0)
		return "URL";
	return info->unit[0] == '\0' ? "text" : info->unit;
}

/* "step|strict" with something else between the values. */
static void write_choices(struct buffer *out, const char *choices, const char *between)
{
	for (; *choices != '\0'; choices++) {
		if (*choices == '|')
			buffer_append_text(out, between);
		else
			buffer_append_byte(out, (uint8_t)*choices);
	}
}

/* What is allowed: "size, 256 B to 256 MiB". */
static void write_allowed(struct buffer *out, const struct param_info *info)
{
	char low[32], high[32];
	if (info->type == TYPE_CHOICE) {
		write_choices(out, info->unit, ", ");
		return;
	}
	buffer_append_text(out, type_name(info));
	if (info->type == TYPE_NUMBER)
		buffer_printf(out, ", %s to %s", param_format_number(info, info->min, low, sizeof(low)),
		              param_format_number(info, info->max, high, sizeof(high)));
}

/* Sections are named by the first part of a key. */
static int section_len(const char *key)
{
	return (int)(strchr(key, '.') - key);
}

/* Does the key begin another section than the one before it? */
static bool begins_section(int i)
{
	const char *key = param_info((enum param)i)->key;
	int len = section_len(key);
	if (i == 0)
		return true;
	const char *before = param_info((enum param)(i - 1))->key;
	return section_len(before) != len || strncmp(key, before, (size_t)len) != 0;
}

/* --- fermata.conf --- */

/* Writes a text as comment lines of at most WIDTH columns. */
static void write_comment(struct buffer *out, const char *text)
{
	size_t column = 0;
	while (*text != '\0') {
		size_t word = strcspn(text, " ");
		if (column > 0 && column + 1 + word > WIDTH) {
			buffer_append_byte(out, '\n');
			column = 0;
		}
		buffer_append_text(out, column == 0 ? "# " : " ");
		buffer_append(out, text, word);
		column += word + (column == 0 ? 2 : 1);
		text += word;
		text += strspn(text, " ");
	}
	buffer_append_byte(out, '\n');
}

static void write_setting(struct buffer *out, const struct param_info *info, const char *name)
{
	buffer_append_byte(out, '\n');
	write_comment(out, info->line);
	write_comment(out, info->paragraph);
	buffer_append_text(out, "# (");
	write_allowed(out, info);
	buffer_append_text(out, ")\n");
	buffer_printf(out, info->fallback[0] == '\0' ? "#%s =\n" : "#%s = %s\n", name, info->fallback);
}

static const char conf_head[] =
	"# fermata.conf - every key of Fermata with its default. Made from config/params.def.\n"
	"#\n"
	"# Fermata reads the file of --config, else of FERMATA_CONFIG, else ./fermata.conf, else\n"
	"# /etc/fermata/fermata.conf. -X key=value and the environment (FERMATA_LOG_LEVEL for log.level) come\n"
	"# before the file. `fermata config check` shows what counts and where it came from.\n"
	"#\n"
	"# A # begins a comment at the start of a line or after a blank. A value that holds \" #\" or has blanks "
	"at\n"
	"# its ends stands in double quotes, where \\\" and \\\\ are a quote and a backslash.\n"
	"# Sizes: B, KiB, MiB, GiB. Durations: ms, s, m, h, d. Flags: true, yes, on, false, no, off.\n"
	"# A text or a secret can be kept in a file of its own: postgres.dsn_file = /run/secrets/dsn\n";

static const char conf_kafka[] = "\n# Any other property of librdkafka: PROP = value for all connections, "
								 "consumer.PROP and producer.PROP\n"
								 "# for those that read and those that write. For example:\n"
								 "#security.protocol = SASL_SSL\n"
								 "#sasl.mechanism = SCRAM-SHA-512\n"
								 "#sasl.username = fermata\n"
								 "#sasl.password_file = /run/secrets/kafka_password\n"
								 "#producer.compression.type = zstd\n";

static const char conf_routes[] =
	"\n# Routes send the resumes of some agents to topics of their own. The first that matches counts, in "
	"the\n"
	"# order of this file; what matches none goes to topics.resumes. NAME is yours to choose.\n"
	"#[routes.NAME]\n";

static void write_conf(struct buffer *out)
{
	buffer_append_text(out, conf_head);
	for (int i = 0; i < PARAM_COUNT; i++) {
		const struct param_info *info = param_info((enum param)i);
		if (begins_section(i))
			buffer_printf(out, "\n[%.*s]\n", section_len(info->key), info->key);
		write_setting(out, info, info->key + section_len(info->key) + 1);
		if (i == PARAM_KAFKA_BOOTSTRAP_SERVERS)
			buffer_append_text(out, conf_kafka);
	}
	buffer_append_text(out, conf_routes);
	for (int i = 0; i < ROUTE_FIELD_COUNT; i++)
		write_setting(out, route_field_info((enum route_field)i), route_field_info((enum route_field)i)->key);
}

/* --- configuration.md --- */

static const char md_head[] =
	"# Configuration\n"
	"\n"
	"*Made from `config/params.def` by `cmake --build build --target config-files`; do not edit.*\n"
	"\n"
	"## Where a value comes from\n"
	"\n"
	"1. the command line: `-X key=value`, before or after the command, as often as needed;\n"
	"2. the environment: `FERMATA_` and the key in upper case, dots as underscores: `FERMATA_LOG_LEVEL`;\n"
	"3. the file: that of `--config FILE`, else of `FERMATA_CONFIG`, else `./fermata.conf`, else\n"
	"   `/etc/fermata/fermata.conf`. A file that is named and missing is an error; no file at all is fine;\n"
	"4. the default.\n"
	"\n"
	"`fermata config check` prints every value that counts, with secrets masked, and where it came from.\n"
	"\n"
	"An unknown key in the file or on the command line is an error that names the nearest known one. An "
	"unknown\n"
	"`FERMATA_` variable is a warning, since Kubernetes makes some; an empty one counts as not set. In the\n"
	"environment underscores below `kafka.` are dots: `FERMATA_KAFKA_CONSUMER_SESSION_TIMEOUT_MS` is\n"
	"`kafka.consumer.session.timeout.ms`.\n"
	"\n"
	"## The file\n"
	"\n"
	"```ini\n"
	"# a comment\n"
	"log.level = debug\n"
	"\n"
	"[postgres]                     # puts \"postgres.\" before the keys that follow; [] ends that\n"
	"dsn = host=db user=fermata\n"
	"\n"
	"[kafka]\n"
	"bootstrap.servers = kafka-1:9092,kafka-2:9092\n"
	"sasl.password = pass#word      # a # after anything but a blank belongs to the value\n"
	"sasl.username = \"me # myself\"  # a value with \" #\" in it, or with blanks at its ends, stands in "
	"double quotes\n"
	"```\n"
	"\n"
	"In double quotes `\\\"` and `\\\\` are a quote and a backslash, and nothing else is special. Values on "
	"the command\n"
	"line and in the environment are taken as they are, without quotes and comments. The text is UTF-8, a "
	"line has at\n"
	"most 64 KiB and the file 1 MiB. A key that is given twice in the file counts as given last, with a "
	"warning.\n"
	"\n"
	"- *size*: a whole number and `B`, `KiB`, `MiB` or `GiB`; without a unit, bytes.\n"
	"- *duration*: a whole number and `ms`, `s`, `m`, `h` or `d`; only 0 needs no unit.\n"
	"- *flag*: `true`, `yes`, `on`, `false`, `no`, `off`.\n"
	"- *words*: blanks between them; a word with blanks in it stands in single quotes, where `''` is a "
	"quote.\n"
	"\n"
	"## Secrets\n"
	"\n"
	"Any text, and any property of Kafka, may be kept in a file: `KEY_file` names it, one newline at its end "
	"is taken\n"
	"off. `postgres.dsn_file = /run/secrets/dsn`, "
	"`FERMATA_KAFKA_SASL_PASSWORD_FILE=/run/secrets/kafka_password`. To\n"
	"give `KEY` and `KEY_file` in the same place is an error. Secrets are not shown anywhere: a connection "
	"string is\n"
	"shown without its passwords; passwords and tokens, and a property of Kafka whose name speaks of a "
	"password, a secret\n"
	"or a private key, not at all.\n"
	"\n"
	"## Keys\n";

static const char md_kafka[] = "\n"
							   "## Properties of Kafka\n"
							   "\n"
							   "`kafka.PROP` goes to librdkafka as `PROP` for all connections, "
							   "`kafka.consumer.PROP` to those that read,\n"
							   "`kafka.producer.PROP` to those that write; the narrower one wins. "
							   "librdkafka's own documentation lists them.\n"
							   "Those that the protocol sets for itself are refused:\n"
							   "\n"
							   "| property | why |\n"
							   "|---|---|\n";

static const char md_routes[] = "\n"
								"## Routes\n"
								"\n"
								"Routes send the resumes of some agents to topics of their own, limit for "
								"how long they should be run, or keep\n"
								"what was not approved from the topic. A route has a name, "
								"`routes.NAME.FIELD`, and the first that matches tenant\n"
								"and agent counts, in the order in which their names first appear. What "
								"matches none goes to `topics.resumes`.\n"
								"\n"
								"```ini\n"
								"[routes.deploys]\n"
								"agent = deploy-*\n"
								"topic = fermata.resumes.deploys\n"
								"resume_ttl = 2h\n"
								"```\n"
								"\n"
								"| key | allowed | default | meaning |\n"
								"|---|---|---|---|\n";

/* A cell of a table: '|' would end it, and '*' be taken for emphasis. */
static void write_cell(struct buffer *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '|' || *text == '*')
			buffer_append_byte(out, '\\');
		buffer_append_byte(out, (uint8_t)*text);
	}
}

static void write_row(struct buffer *out, const struct param_info *info, const char *prefix)
{
	buffer_printf(out, "| `%s%s` | ", prefix, info->key);
	write_allowed(out, info);
	buffer_printf(out, info->fallback[0] == '\0' ? " | |%s " : " | `%s` | ", info->fallback);
	write_cell(out, info->line);
	buffer_append_text(out, ". ");
	write_cell(out, info->paragraph);
	buffer_append_text(out, " |\n");
}

static void write_owned(struct buffer *out)
{
	for (size_t i = 0; i < kafka_owned_table_len; i++) {
		buffer_append_text(out, "| `");
		for (const char *at = kafka_owned_table[i].names; *at != '\0'; at++) {
			if (*at == ' ')
				buffer_append_text(out, "`, `");
			else
				buffer_append_byte(out, (uint8_t)*at);
		}
		buffer_printf(out, "` | %s |\n", kafka_owned_table[i].reason);
	}
	buffer_append_text(out, "| anything that ends in `_cb` | it is a function of a program and no text |\n");
}

static void write_markdown(struct buffer *out)
{
	buffer_append_text(out, md_head);
	for (int i = 0; i < PARAM_COUNT; i++) {
		const struct param_info *info = param_info((enum param)i);
		if (begins_section(i))
			buffer_printf(out, "\n### %.*s\n\n| key | allowed | default | meaning |\n|---|---|---|---|\n",
			              section_len(info->key), info->key);
		write_row(out, info, "");
	}
	buffer_append_text(out, md_routes);
	for (int i = 0; i < ROUTE_FIELD_COUNT; i++)
		write_row(out, route_field_info((enum route_field)i), "routes.NAME.");
	buffer_append_text(out, md_kafka);
	write_owned(out);
}

/* --- writing and comparing --- */

struct product {
	const char *path; /* below the project's folder */
	void (*write)(struct buffer *out);
};

static const struct product products[] = {
	{ "config/fermata.conf", write_conf },
	{ "docs/configuration.md", write_markdown },
};

static bool save(const char *path, struct view text)
{
	FILE *file = fopen(path, "w");
	bool good = file != NULL && fwrite(text.data, 1, text.len, file) == text.len;
	if (file != NULL && fclose(file) != 0)
		good = false;
	if (!good)
		perror(path);
	return good;
}

static bool is_same(const char *path, struct view text)
{
	static char held[FILE_MAX];
	FILE *file = fopen(path, "r");
	size_t len = file == NULL ? 0 : fread(held, 1, sizeof(held), file);
	if (file != NULL)
		fclose(file);
	bool same = len == text.len && memcmp(held, text.data, len) == 0;
	if (!same)
		fprintf(stderr, "%s is not what config/*.def make of it: cmake --build build --target config-files\n",
		        path);
	return same;
}

static bool make(const struct product *product, const char *folder, bool writing)
{
	char path[4096];
	struct buffer out;
	snprintf(path, sizeof(path), "%s/%s", folder, product->path);
	buffer_init(&out, FILE_MAX);
	product->write(&out);
	bool good =
		!buffer_failed(&out) && (writing ? save(path, buffer_view(&out)) : is_same(path, buffer_view(&out)));
	buffer_done(&out);
	return good;
}

int main(int argc, char **argv)
{
	bool writing = argc == 3 && strcmp(argv[1], "write") == 0;
	if (!writing && (argc != 3 || strcmp(argv[1], "check") != 0)) {
		fprintf(stderr, "usage: fermata_gen_conf write|check DIR\n");
		return 2;
	}
	bool good = true;
	for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++)
		good = make(&products[i], argv[2], writing) && good;
	return good ? 0 : 1;
}
