/* Text as a schema; what is one has a canonical form that is a schema with the same canonical form, and
 * guards bytes. A line of JSON as a suspend, and as the value of an edit. */
#include "schemas/codec.h"
#include "schemas/guard.h"
#include "schemas/json.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void need(bool claim)
{
	if (!claim)
		abort();
}

static void check_canonical(const struct schema *schema)
{
	struct error error;
	struct schema *again;
	struct buffer first, second;

	buffer_init(&first, SCHEMA_CANONICAL_MAX);
	buffer_init(&second, SCHEMA_CANONICAL_MAX);
	if (schema_canonical(schema, &first, &error) == FATE_OK && first.len <= SCHEMA_TEXT_MAX) {
		need(schema_parse(&again, buffer_view(&first), &error) == FATE_OK);
		need(schema_canonical(again, &second, &error) == FATE_OK);
		need(view_equal(buffer_view(&first), buffer_view(&second)));
		schema_free(again);
	}
	buffer_done(&first);
	buffer_done(&second);
}

static void check_line(struct view line)
{
	struct error error;
	struct suspend_event event;
	struct suspend_filled filled;
	struct config_entry entry;
	struct arena *arena = arena_new((size_t)64 << 20);
	struct buffer out;

	need(arena != NULL);
	buffer_init(&out, SIZE_MAX);
	if (suspend_from_json(line, arena, &event, &filled, &error) == FATE_OK)
		need(suspend_to_json(&event, &out, &error) == FATE_OK);
	(void)!config_entry_from_text(VIEW_LITERAL("k"), line, arena, &entry, &error);
	buffer_done(&out);
	arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct error error;
	struct schema *schema;
	size_t ignored;

	if (schema_parse(&schema, (struct view){ data, len }, &error) == FATE_OK) {
		check_canonical(schema);
		(void)!guard_prefix(schema->root, "X", (struct view){ data, len }, 100000, &ignored, &error);
		schema_free(schema);
	}
	check_line((struct view){ data, len });
	return 0;
}
