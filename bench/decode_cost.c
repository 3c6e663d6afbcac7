/*
 * What it costs that bytes are guarded before avro-c sees them: a suspend event of 2 KiB and one of 32 KiB, decoded
 * by avro-c alone as any program would (the schema as it stands in SuspendEvent.avsc, a generic value that is used
 * again), beside the guard, the guard and avro-c, and the whole of the codec, which also copies into structs and
 * checks the values.
 *
 *     decode_cost [ROUNDS]
 *
 * One JSON line each: nanoseconds of CPU time of one event, and that beside avro-c alone in the same run. Each round
 * measures all of them in turn, the median of the rounds counts: on a shared machine only the ratios mean anything.
 */
#include "schemas/codec.h"
#include "schemas/guard.h"
#include "schemas/schema.h"

#include <avro.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS      101
#define ROUNDS_MAX  100000
#define ROUND_BYTES ((size_t)2 * 1024 * 1024) /* decoded by each in a round */
#define ENTRIES_MAX 256
#define VALUES_MAX  2000000
#define SPARE_BYTES 330 /* of a record, its history aside */

struct bench {
	struct view body;
	struct codec *codec;
	struct arena *arena;
	const struct schema *schema; /* ours */
	avro_reader_t reader;
	avro_value_t plain; /* of the schema as it stands */
	avro_value_t wire;  /* of the codec's, where maps are arrays of entries */
};

static void need(bool claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "decode_cost: %s\n", what);
	exit(1);
}

/* ---- the event ---- */

/* Prose, and a number that is different each time. */
static struct view chatter(struct arena *arena, size_t len, unsigned number)
{
	static const char words[] =
		"the plan is to copy the table, check the rows, swap the names and drop the old ";
	char *text = arena_alloc(arena, len + 1);

	need(text != NULL, "no memory");
	for (size_t i = 0; i < len; i++)
		text[i] = words[(i + number) % (sizeof(words) - 1)];
	snprintf(text, len + 1, "%08x", number * 2654435761u);
	text[8] = ' ';
	return (struct view){ (const uint8_t *)text, len };
}

/* Turns of a chat of 150 to 600 bytes, as bench/rebuild.py has them. */
static void fill_history(struct suspend_event *event, struct history_entry *entries, struct arena *arena,
                         size_t size)
{
	size_t left = size - SPARE_BYTES;

	for (unsigned i = 0; i < ENTRIES_MAX && left > 24; i++) {
		size_t len = 150 + i * 97 % 450;
		len = len < left - 12 ? len : left - 12;
		entries[i] = (struct history_entry){ .role = i % 2 ? ROLE_AGENT : ROLE_USER,
			                                 .content = chatter(arena, len < 16 ? 16 : len, i),
			                                 .at = TIME_NONE };
		event->history_len = i + 1;
		left -= len + 12 < left ? len + 12 : left;
	}
	event->history = entries;
}

static struct view make_event(struct codec *codec, struct arena *arena, size_t size, struct buffer *out)
{
	static struct history_entry entries[ENTRIES_MAX];
	struct view path[] = { VIEW_LITERAL("root"), VIEW_LITERAL("deploy") };
	struct config_entry config[] = {
		{ .key = VIEW_LITERAL("VRAM_limit_gb"), .kind = CONFIG_DOUBLE, .value.real = 16.0 },
		{ .key = VIEW_LITERAL("user_id"), .kind = CONFIG_STRING, .value.string = VIEW_LITERAL("usr_99") },
		{ .key = VIEW_LITERAL("retries"), .kind = CONFIG_LONG, .value.number = 3 },
	};
	struct tool_permission tools[] = { { VIEW_LITERAL("deploy"), PERMISSION_ASK },
		                               { VIEW_LITERAL("search"), PERMISSION_ALLOW } };
	struct suspend_event event = {
		.checkpoint_id_text = VIEW_LITERAL("019400a1-7c3e-7d21-9f00-5b1c2d3e4f50"),
		.session_id = VIEW_LITERAL("SESSION-808"),
		.suspend_seq = 1,
		.tenant = VIEW_LITERAL("default"),
		.agent = VIEW_LITERAL("planner"),
		.agent_version = VIEW_LITERAL("4.2.0"),
		.suspended_at = INT64_C(1764500000000000),
		.step = { .graph = VIEW_LITERAL("release"),
		          .node = VIEW_LITERAL("AWAITING_HUMAN_APPROVAL"),
		          .resume_at = VIEW_LITERAL("deploy"),
		          .path = path,
		          .path_len = 2 },
		.config = config,
		.config_len = 3,
		.tool_permissions = tools,
		.tool_permissions_len = 2,
		.gate = { .gate_id = VIEW_LITERAL("deploy"),
		          .title = VIEW_LITERAL("Deploy the migration"),
		          .action = { .present = true,
		                      .tool = VIEW_LITERAL("deploy"),
		                      .arguments = VIEW_LITERAL("{\"environment\":\"production\"}"),
		                      .risk = RISK_HIGH,
		                      .summary = VIEW_LITERAL("Runs the migration on the production database") },
		          .requested_by = VIEW_LITERAL("planner"),
		          .required_approvals = 1,
		          .expires_at = TIME_NONE },
	};
	struct error error;

	fill_history(&event, entries, arena, size);
	need(codec_put_suspend(codec, &event, out, &error) == FATE_OK, error.message);
	return (struct view){ out->data + 10, out->len - 10 }; /* after the single-object header */
}

/* ---- what is measured ---- */

static void decode(struct bench *bench, avro_value_t *value)
{
	avro_reader_memory_set_source(bench->reader, (const char *)bench->body.data, (int64_t)bench->body.len);
	need(avro_value_read(bench->reader, value) == 0, avro_strerror());
	avro_value_reset(value);
}

static void run_avro(struct bench *bench)
{
	decode(bench, &bench->plain);
}

static void run_guard(struct bench *bench)
{
	struct error error;

	need(guard_check(bench->schema->root, "SuspendEvent", bench->body, VALUES_MAX, &error) == FATE_OK,
	     error.message);
}

static void run_guarded(struct bench *bench)
{
	run_guard(bench);
	decode(bench, &bench->wire);
}

static void run_codec(struct bench *bench)
{
	struct suspend_event event;
	struct error error;

	need(codec_read_suspend_body(bench->codec, bench->body, bench->arena, &event, &error) == FATE_OK,
	     error.message);
	arena_reset(bench->arena);
}

static const struct subject {
	const char *name;
	void (*run)(struct bench *bench);
} subjects[] = {
	{ "avro-c alone", run_avro },
	{ "guard", run_guard },
	{ "guard and avro-c", run_guarded },
	{ "codec: guard, avro-c, structs, checks", run_codec },
};

#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t len)
{
	qsort(values, len, sizeof(*values), compare);
	return values[len / 2];
}

static void measure(struct bench *bench, size_t rounds)
{
	size_t times = ROUND_BYTES / bench->body.len;
	double *ns[SUBJECTS], bare = 0;

	for (size_t i = 0; i < SUBJECTS; i++)
		need((ns[i] = calloc(rounds, sizeof(double))) != NULL, "no memory");
	for (size_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < SUBJECTS; i++) {
			int64_t start = cpu_ns();
			for (size_t n = 0; n < times; n++)
				subjects[i].run(bench);
			ns[i][round] = (double)(cpu_ns() - start) / (double)times;
		}
	}
	for (size_t i = 0; i < SUBJECTS; i++) {
		double middle = median(ns[i], rounds);
		bare = i == 0 ? middle : bare;
		printf("{\"bytes\":%zu,\"what\":\"%s\",\"ns\":%.0f,\"beside_avro_c_alone\":%.2f}\n", bench->body.len,
		       subjects[i].name, middle, middle / bare);
		free(ns[i]);
	}
}

/* ---- setting up ---- */

static avro_value_t value_of(struct view text)
{
	avro_schema_t schema;
	avro_value_t value = { NULL, NULL };

	need(avro_schema_from_json_length((const char *)text.data, text.len, &schema) == 0, avro_strerror());
	avro_value_iface_t *iface = avro_generic_class_from_schema(schema);
	need(iface != NULL && avro_generic_value_new(iface, &value) == 0, avro_strerror());
	avro_schema_decref(schema);
	avro_value_iface_decref(iface);
	return value;
}

static void run(struct bench *bench, size_t size, size_t rounds)
{
	struct buffer event;
	struct arena *arena = arena_new((size_t)1 << 20);

	need(arena != NULL, "no memory");
	buffer_init(&event, (size_t)1 << 20);
	bench->body = make_event(bench->codec, arena, size, &event);
	measure(bench, rounds);
	buffer_done(&event);
	arena_free(arena);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
	struct view text = codec_schema_text(RECORD_SUSPEND);
	struct codec_settings settings = { 0 };
	struct bench bench = { .reader = avro_reader_memory("", 0), .arena = arena_new((size_t)16 << 20) };
	struct schema *schema;
	struct buffer wire;
	struct error error;

	need(rounds > 0 && rounds <= ROUNDS_MAX, "usage: decode_cost [ROUNDS]");
	need(bench.reader != NULL && bench.arena != NULL, "no memory");
	buffer_init(&wire, SCHEMA_TEXT_MAX);
	need(codec_new(&bench.codec, &settings, &error) == FATE_OK, error.message);
	need(schema_parse(&schema, text, &error) == FATE_OK, error.message);
	need(schema_wire_text(schema, schema->root, &wire, &error) == FATE_OK, error.message);
	bench.schema = schema;
	bench.plain = value_of(text);
	bench.wire = value_of(buffer_view(&wire));
	run(&bench, 2 * 1024, rounds);
	run(&bench, 32 * 1024, rounds);
	avro_value_decref(&bench.plain);
	avro_value_decref(&bench.wire);
	avro_reader_free(bench.reader);
	codec_free(bench.codec);
	schema_free(schema);
	arena_free(bench.arena);
	buffer_done(&wire);
	return 0;
}
