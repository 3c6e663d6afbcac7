/*
 * Resolution: one input holds the writer's schema, the reader's and a datum, parted by lines that hold only "--"
 * (the third part is bytes). What comes out must be of the reader's schema, must come out again when it is
 * resolved from the reader's schema to itself, if that works at all, and must have a JSON encoding that is JSON.
 * What is called compatible is refused for no other reason than that it is malformed or too large.
 */
#include "core/json_scan.h"
#include "schemas/compat.h"
#include "schemas/guard.h"
#include "schemas/migrate.h"
#include "schemas/resolve.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define OUT_MAX ((size_t)4 << 20)

static void need(bool claim)
{
	if (!claim)
		abort();
}

/* Cuts the part before the next separator off; all that is left when there is none. */
static struct view cut(struct view *rest)
{
	static const char separator[] = "\n--\n";
	const uint8_t *found = memmem(rest->data, rest->len, separator, sizeof(separator) - 1);
	struct view part = { rest->data, found ? (size_t)(found - rest->data) : rest->len };
	size_t taken = found ? part.len + sizeof(separator) - 1 : part.len;

	*rest = (struct view){ rest->data + taken, rest->len - taken };
	return part;
}

/* What is of the reader's schema stays what it is under that schema, unless its aliases move it about. */
static void check_again(const struct schema *reader, struct view body)
{
	struct error error;
	struct plan *plan;
	struct buffer again;

	if (migrate_plan_new(&plan, reader, reader, &error) != FATE_OK)
		return;
	buffer_init(&again, OUT_MAX);
	if (migrate_run(plan, body, &again, &error) == FATE_OK)
		need(guard_check(reader->root, "again", buffer_view(&again), MIGRATE_VALUES_MAX, &error) == FATE_OK);
	migrate_plan_free(plan);
	buffer_done(&again);
}

static void check_json(const struct schema *reader, struct view body)
{
	struct error error;
	struct buffer json;

	buffer_init(&json, OUT_MAX);
	if (resolve_json(reader->root, body, &json, &error) == FATE_OK)
		need(json_scan(buffer_view(&json)));
	buffer_done(&json);
}

/* Is every value said to pass? may_plan: by migrate_plan_new, some do. */
static bool is_compatible(const struct schema *writer, const struct schema *reader, bool may_plan)
{
	struct error error;
	struct compat_report report;

	if (compat_check(writer, reader, &report, &error) != FATE_OK) {
		need(!may_plan);
		return false;
	}
	need(report.never != may_plan);
	need(may_plan || report.reasons_count > 0);
	return report.reasons_count == 0 && report.warnings_count == 0;
}

static void resolve(const struct schema *writer, const struct schema *reader, struct view body)
{
	struct error error;
	struct plan *plan;
	struct buffer out;

	if (migrate_plan_new(&plan, writer, reader, &error) != FATE_OK) {
		need(error.fate == FATE_REJECT && strstr(error.message, "(always)"));
		need(!is_compatible(writer, reader, false));
		return;
	}
	bool compatible = is_compatible(writer, reader, true);
	buffer_init(&out, OUT_MAX);
	enum fate fate = migrate_run(plan, body, &out, &error);
	need(fate == FATE_OK || (fate == FATE_REJECT && out.len == 0));
	need(fate == FATE_OK || !compatible || error.code != ERR_INVALID);
	if (fate == FATE_OK) {
		check_again(reader, buffer_view(&out));
		check_json(reader, buffer_view(&out));
	}
	migrate_plan_free(plan);
	buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct error error;
	struct schema *writer = NULL, *reader = NULL;
	struct view rest = { data, len };
	struct view writer_text = cut(&rest), reader_text = cut(&rest);

	if (schema_parse(&writer, writer_text, &error) == FATE_OK &&
	    schema_parse(&reader, reader_text, &error) == FATE_OK)
		resolve(writer, reader, rest);
	schema_free(writer);
	schema_free(reader);
	return 0;
}
