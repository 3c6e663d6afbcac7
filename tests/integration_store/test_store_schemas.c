/* Schema texts and what a registry said: kept once, found again, by many at once. */
#include "tests/integration_store/store_fixture.h"

#include "store/store_schemas.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4
#define TEXTS     40
#define REGISTRY  "https://registry.example/apis/ccompat/v7"

static struct error error;

/* A schema whose canonical form is that of number `form`, and whose text is that of number `text`. */
static struct schema_row schema_of(int form, int text)
{
	struct schema_row row = { .fingerprint = UINT64_C(0x0102030405060700) + (uint64_t)form };

	memset(row.text_sha256, text, sizeof(row.text_sha256));
	memset(row.sha256, form, sizeof(row.sha256));
	row.text = view_of(arena_printf(arena, "{\"type\":\"fixed\",\"name\":\"F%d\",\"size\":%d}", form, text));
	return row;
}

static int begin(void **state)
{
	(void)state;
	return begin_test(open_store("schemas"), (size_t)1 << 24);
}

static void keep(const struct schema_row *row, int64_t now)
{
	assert_ok(store_schemas_keep(store, row, 1, now, &error), error);
}

static bool same_row(const struct schema_row *a, const struct schema_row *b)
{
	return memcmp(a->text_sha256, b->text_sha256, 32) == 0 && memcmp(a->sha256, b->sha256, 32) == 0 &&
	       a->fingerprint == b->fingerprint && view_equal(a->text, b->text);
}

static void a_text_is_kept_once_and_found_by_its_form(void **state)
{
	(void)state;
	struct schema_row rows[] = { schema_of(1, 12), schema_of(1, 11), schema_of(2, 20), schema_of(1, 12) };
	struct schema_row found;
	bool is_found;

	assert_ok(store_schemas_keep(store, rows, 0, T0, &error), error);
	keep(&rows[0], T0 + 5);
	assert_ok(store_schemas_keep(store, rows, 4, T0 + 9, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.schema_text"), 3);
	assert_int_equal(world_number("SELECT min(seen_at) FROM fermata.schema_text"), T0 + 5);
	/* The bytes of the fingerprint stand as they do in the header of a record. */
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.schema_text WHERE fingerprint = '\\x0207060504030201'"),
		1);

	assert_ok(store_schema_by_sha256(store, rows[1].sha256, arena, &is_found, &found, &error), error);
	assert_true(is_found && same_row(&found, &rows[0])); /* seen first */
	memset(found.sha256, 9, sizeof(found.sha256));
	assert_ok(store_schema_by_sha256(store, found.sha256, arena, &is_found, &found, &error), error);
	assert_false(is_found);
	assert_true(view_is_null(found.text));
}

static void a_fingerprint_may_be_that_of_several_forms(void **state)
{
	(void)state;
	struct schema_row first = schema_of(1, 12);
	struct schema_row again = schema_of(1, 11);
	struct schema_row other = schema_of(2, 20);
	struct schema_row *rows;
	size_t len;

	other.fingerprint = first.fingerprint; /* 64 bits can be made to collide */
	keep(&first, T0);
	keep(&again, T0 + 1);
	keep(&other, T0 + 2);
	assert_ok(store_schema_by_fingerprint(store, first.fingerprint, arena, &rows, &len, &error), error);
	assert_int_equal(len, 2);
	assert_true(same_row(&rows[0], &first) && same_row(&rows[1], &other));
	assert_ok(store_schema_by_fingerprint(store, 1, arena, &rows, &len, &error), error);
	assert_int_equal(len, 0);
}

static void what_does_not_fit_the_arena_is_said(void **state)
{
	(void)state;
	struct schema_row row = schema_of(1, 12);
	struct arena *small = arena_new(256);
	struct schema_row *rows;
	size_t len;
	char text[4096];

	memset(text, 'x', sizeof(text));
	row.text = (struct view){ (const uint8_t *)text, sizeof(text) };
	keep(&row, T0);
	assert_fate(FATE_REJECT, store_schema_by_fingerprint(store, row.fingerprint, small, &rows, &len, &error),
	            error);
	assert_int_equal(error.code, ERR_MEMORY);
	arena_free(small);
	/* A text that PostgreSQL cannot hold is refused as such, and changes nothing. */
	struct schema_row odd = schema_of(3, 30);
	odd.text = (struct view){ (const uint8_t *)"a\0b", 3 };
	assert_fate(FATE_REJECT, store_schemas_keep(store, &odd, 1, T0, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.schema_text"), 1);
}

/* ---- what a registry said ---- */

static struct registry_fact fact_of(enum registry_fact_kind kind, const char *ref, int32_t id, int schema)
{
	struct registry_fact fact = { .kind = kind, .ref = view_of(ref), .id = id };

	if (schema != 0)
		fact.schema = schema_of(schema, schema);
	return fact;
}

/* What is kept of the fact, as "id text" (text shortened to its form); "" when it is not there. */
static const char *found_fact(const char *registry, enum registry_fact_kind kind, const char *ref)
{
	bool found;
	int32_t id;
	struct view text;

	assert_ok(store_registry_find(store, registry, kind, view_of(ref), arena, &found, &id, &text, &error),
	          error);
	if (!found)
		return "";
	struct view form = view_is_null(text) ? VIEW_LITERAL("-") : (struct view){ text.data + 24, 2 };
	return arena_printf(arena, "%d %.*s", (int)id, (int)form.len, (const char *)form.data);
}

static void an_id_keeps_what_it_had_and_a_reader_is_replaced(void **state)
{
	(void)state;
	const char guid[] = "00112233445566778899aabbccddeeff";
	struct registry_fact before[] = { fact_of(FACT_ID, "17", 17, 1), fact_of(FACT_GUID, guid, 0, 1),
		                              fact_of(FACT_READER, "a.State", 17, 1),
		                              fact_of(FACT_OWN, "resumes-value", 4, 0),
		                              fact_of(FACT_READER, "b.State", 0, 1) };
	struct registry_fact after[] = {
		fact_of(FACT_ID, "17", 17, 2),
		fact_of(FACT_GUID, guid, 0, 2),
		fact_of(FACT_READER, "a.State", 18, 3),
		fact_of(FACT_READER, "a.State", 19, 2), /* the last one of a call stands */
		fact_of(FACT_OWN, "resumes-value", 5, 2),
		fact_of(FACT_ID, "18", 18, 2),
		fact_of(FACT_ID, "18", 18, 3), /* the first one of a call stands */
	};

	assert_ok(store_registry_keep(store, REGISTRY, before, 0, T0, &error), error);
	assert_ok(store_registry_keep(store, REGISTRY, before, 5, T0, &error), error);
	assert_string_equal(found_fact(REGISTRY, FACT_OWN, "resumes-value"), "4 -");
	assert_string_equal(found_fact(REGISTRY, FACT_ID, "18"), "");
	assert_ok(store_registry_keep(store, REGISTRY, after, 7, T0 + 1, &error), error);
	assert_string_equal(found_fact(REGISTRY, FACT_ID, "17"), "17 F1");
	assert_string_equal(found_fact(REGISTRY, FACT_GUID, guid), "0 F1");
	assert_string_equal(found_fact(REGISTRY, FACT_READER, "a.State"), "19 F2");
	assert_string_equal(found_fact(REGISTRY, FACT_OWN, "resumes-value"), "5 F2");
	assert_string_equal(found_fact(REGISTRY, FACT_ID, "18"), "18 F2");
	/* Another registry's ids are other ids. */
	assert_string_equal(found_fact("http://other", FACT_ID, "17"), "");
	assert_string_equal(found_fact(REGISTRY, FACT_READER, "17"), "");
}

static void readers_are_listed_by_name(void **state)
{
	(void)state;
	struct registry_fact facts[] = { fact_of(FACT_READER, "b.State", 0, 2), fact_of(FACT_ID, "9", 9, 3),
		                             fact_of(FACT_READER, "a.State", 7, 1) };
	struct registry_fact other = fact_of(FACT_READER, "c.State", 7, 1);
	struct registry_reader *readers;
	size_t len;

	assert_ok(store_registry_keep(store, REGISTRY, facts, 3, T0, &error), error);
	assert_ok(store_registry_keep(store, "http://other", &other, 1, T0, &error), error);
	assert_ok(store_registry_readers(store, REGISTRY, arena, &readers, &len, &error), error);
	assert_int_equal(len, 2);
	assert_true(view_equal_text(readers[0].name, "a.State") && readers[0].id == 7);
	assert_true(view_equal(readers[0].text, facts[2].schema.text));
	assert_true(view_equal_text(readers[1].name, "b.State") && readers[1].id == 0);
	assert_true(view_equal(readers[1].text, facts[0].schema.text));
	assert_ok(store_registry_readers(store, "http://third", arena, &readers, &len, &error), error);
	assert_int_equal(len, 0);
}

/* A fault anywhere leaves nothing of a call: neither the texts nor the facts. */
static void facts_come_with_their_texts_or_not_at_all(void **state)
{
	(void)state;
	struct registry_fact facts[] = { fact_of(FACT_ID, "1", 1, 1), fact_of(FACT_ID, "2", 2, 2) };

	facts[1].ref = (struct view){ (const uint8_t *)"2\0", 2 };
	assert_fate(FATE_REJECT, store_registry_keep(store, REGISTRY, facts, 2, T0, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.schema_text"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.registry_schema"), 0);
	assert_ok(store_registry_keep(store, REGISTRY, facts, 1, T0, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.schema_text"), 1);
}

/* ---- many at once ---- */

/* Keeps the same texts and facts as the others do, in an order of its own. */
static void keep_in_a_child(int child)
{
	struct store *own = open_store("child");
	struct registry_fact facts[TEXTS];
	char refs[TEXTS][8];

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < TEXTS; i++) {
			int number = child % 2 == 0 ? i + 1 : TEXTS - i;
			snprintf(refs[i], sizeof(refs[i]), "%d", number);
			facts[i] = fact_of(round % 2 == 0 ? FACT_ID : FACT_READER, refs[i], child + 1, number);
		}
		if (store_registry_keep(own, REGISTRY, facts, TEXTS, T0 + child, &error) != FATE_OK) {
			fprintf(stderr, "%s\n", error.message);
			_exit(1);
		}
	}
	store_close(own);
	_exit(0);
}

static void many_may_keep_the_same_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			keep_in_a_child(i);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert_int_equal(world_number("SELECT count(*) FROM fermata.schema_text"), TEXTS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.registry_schema"), 2 * TEXTS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.registry_schema s JOIN fermata.schema_text t"
	                              " USING (text_sha256) WHERE t.sha256 <> decode(repeat(lpad(to_hex("
	                              "s.ref::int), 2, '0'), 32), 'hex')"),
	                 0);
}

/* ---- looking at it ---- */

struct seen_list {
	int len;
	int stop_at; /* 0: never */
	char texts[512];
};

static bool note_seen(void *context, const struct schema_seen *seen)
{
	struct seen_list *list = context;
	size_t used = strlen(list->texts);

	snprintf(list->texts + used, sizeof(list->texts) - used, "%d:%d:%s:%d:%d;", seen->schema.text_sha256[0],
	         (int)(seen->seen_at - T0), view_is_null(seen->registry) ? "-" : "R", (int)seen->registry_id,
	         seen->reader ? 1 : 0);
	return ++list->len != list->stop_at;
}

static void all_are_listed_with_what_is_known_of_them(void **state)
{
	(void)state;
	struct schema_row plain = schema_of(9, 90);
	struct registry_fact facts[] = { fact_of(FACT_READER, "a.State", 0, 1), fact_of(FACT_ID, "7", 7, 1),
		                             fact_of(FACT_GUID, "00112233445566778899aabbccddeeff", 0, 2) };
	struct seen_list list = { 0 };

	keep(&plain, T0);
	assert_ok(store_registry_keep(store, REGISTRY, facts, 3, T0 + 1, &error), error);
	struct arena *page = arena_new(1 << 16);
	assert_ok(store_schemas_each(store, page, note_seen, &list, &error), error);
	assert_string_equal(list.texts, "90:0:-:0:0;1:1:R:7:1;2:1:R:0:0;");
	list = (struct seen_list){ .stop_at = 2 };
	assert_ok(store_schemas_each(store, page, note_seen, &list, &error), error);
	assert_int_equal(list.len, 2);
	arena_free(page);
}

static void what_waits_is_counted_by_its_schema(void **state)
{
	(void)state;
	struct schema_use *uses;
	size_t len;

	for (uint32_t i = 1; i <= 4; i++) {
		struct checkpoint *checkpoint = make_checkpoint(arena, i, 10);
		memset(checkpoint->sealed.schema_sha256, i == 4 ? 2 : 1, 32);
		insert_checkpoint(store, arena, checkpoint);
	}
	decide_checkpoint(store, arena, 2);
	world_run("UPDATE fermata.checkpoint SET state = 'RESUMED' WHERE session_id = 'session-3'");
	assert_ok(store_schemas_used(store, arena, &uses, &len, &error), error);
	assert_int_equal(len, 2);
	assert_true(uses[0].sha256[0] == 1 && uses[0].waiting == 2);
	assert_true(uses[1].sha256[0] == 2 && uses[1].waiting == 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_text_is_kept_once_and_found_by_its_form),
		TEST(a_fingerprint_may_be_that_of_several_forms),
		TEST(what_does_not_fit_the_arena_is_said),
		TEST(an_id_keeps_what_it_had_and_a_reader_is_replaced),
		TEST(readers_are_listed_by_name),
		TEST(facts_come_with_their_texts_or_not_at_all),
		TEST(many_may_keep_the_same_at_once),
		TEST(all_are_listed_with_what_is_known_of_them),
		TEST(what_waits_is_counted_by_its_schema),
	};

	return run_in_world(tests);
}
