// links: schemas core
/* A file of the folder that cannot be used: what may stand in it waits, and nothing else does. */
#include "test_schemas_folder.h"

#define NEW_NAME                                                                                             \
	"{\"type\":\"record\",\"name\":\"New\",\"namespace\":\"app\",\"aliases\":[\"Old\",\"b.Older\"],"         \
	"\"fields\":7}"

static void make_link(const char *name, const char *to)
{
	char path[256];

	path_of(name, path);
	assert_int_equal(symlink(to, path), 0);
}

/* It waits for its reader, which is told to be broken. */
static void waits(struct catalog *catalog, const char *name, const char *file)
{
	struct app_state in = state_of(name, V1);
	struct schema_want want = misses(catalog, &in);
	char text[BROKEN_WHY_SIZE];

	assert_int_equal(want.kind, WANT_READER);
	assert_string_equal(want.name, name);
	assert_true(catalog_is_broken(catalog, &want, text, sizeof(text)));
	assert_non_null(strstr(text, file));
}

static bool passes(struct catalog *catalog, const char *name)
{
	struct app_state in = state_of(name, V1);

	return body_of(catalog, &in) == NULL;
}

static bool loads(struct catalog *catalog, const char *name)
{
	struct app_state in = state_of(name, V1);
	const char *body = body_of(catalog, &in);

	return body != NULL && strcmp(body, "\x0e\x02") == 0;
}

struct seen {
	char text[1024];
};

static void see(void *context, const struct catalog_broken *file)
{
	struct seen *seen = context;
	size_t len = strlen(seen->text);

	snprintf(seen->text + len, sizeof(seen->text) - len, "%s %s%s: %s\n", file->file, file->name,
	         file->reader ? "!" : "", file->why);
}

static void test_a_reader(void **state)
{
	struct app_state json = { .present = true,
		                      .schema = VIEW_LITERAL("app.State"),
		                      .encoding = ENCODING_JSON,
		                      .body = VIEW_LITERAL("{}") };

	(void)state;
	put("app.State.avsc", "{\"type\":\"recrod\",\"name\":\"State\",\"namespace\":\"app\"}");
	put("app.Other.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	struct catalog *catalog = new_catalog(folder, true, true);
	struct seen seen = { "" };
	catalog_each_broken(catalog, see, &seen);
	assert_int_equal(catalog_broken(catalog), 1);
	assert_non_null(strstr(seen.text, "app.State.avsc app.State!: schema: "));
	waits(catalog, "app.State", "app.State.avsc");
	learn_reader(catalog, "app.State", V3);
	catalog_deny(catalog, &(struct schema_want){ .kind = WANT_READER, .name = "app.State" }, LONG_MS, NULL);
	waits(catalog, "app.State", "app.State.avsc"); /* whatever others have, or have not */
	assert_true(loads(catalog, "app.Other"));
	assert_null(body_of(catalog, &json));
	assert_true(body_of(catalog, &(struct app_state){ 0 }) == NULL);
	put("app.State.avsc", V2 " ");
	assert_true(changed(catalog));
	assert_int_equal(catalog_broken(catalog), 0);
	assert_true(loads(catalog, "app.State"));
	put("app.State.avsc", "");
	assert_true(changed(catalog)); /* nor by what it was before */
	waits(catalog, "app.State", "app.State.avsc");
	gone("app.State.avsc");
	gone("app.Other.avsc");
	gone("app.State/1.avsc");
	gone("app.State");
	catalog_free(catalog);
}

/* Nobody answers wants: then it is refused, and says why. */
static void test_nobody_is_asked(void **state)
{
	struct error error = { 0 };
	struct app_state in = state_of("app.State", V1), out;
	struct schema_want want;
	struct view from;

	(void)state;
	put("app.State.avsc", "{");
	struct catalog *catalog = new_catalog(folder, false, false);
	assert_int_equal(state_migrate(catalog, &in, arena, &out, &from, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	assert_non_null(strstr(error.message, "app.State.avsc cannot be used"));
	gone("app.State.avsc");
	catalog_free(catalog);
}

/* Which other names it is to read is known where its text is whole. */
static void test_its_other_names(void **state)
{
	(void)state;
	put("file.avsc", NEW_NAME);
	struct catalog *catalog = new_catalog(folder, false, true);
	waits(catalog, "file", "file.avsc");
	waits(catalog, "app.New", "file.avsc");
	waits(catalog, "app.Old", "file.avsc");
	waits(catalog, "c.Older", "file.avsc");
	assert_true(passes(catalog, "app.Third"));
	put("file.avsc", "{\"type\":" NEW_NAME "}");
	assert_true(changed(catalog));
	waits(catalog, "app.New", "file.avsc");
	waits(catalog, "app.Old", "file.avsc");
	assert_true(passes(catalog, "app.Third"));
	put("file.avsc", "{\"type\":\"record\",\"name\":\"New\",\"aliases\":");
	assert_true(changed(catalog));
	waits(catalog, "app.Third", "file.avsc");
	put("file.avsc", "{\"name\":\"New\",\"name\":\"Other\"}");
	assert_true(changed(catalog));
	waits(catalog, "app.Third", "file.avsc");
	put("file.avsc", "{\"name\":\"New\",\"aliases\":[7]}");
	assert_true(changed(catalog));
	waits(catalog, "app.Third", "file.avsc");
	put("app.Third.avsc", V2);
	make_folder("app.Third");
	put("app.Third/1.avsc", V1);
	assert_true(changed(catalog));
	assert_true(loads(catalog, "app.Third")); /* it has a reader of its own */
	put("file.avsc", "[\"nonsense\", 7]");
	assert_true(changed(catalog));
	assert_true(passes(catalog, "app.New"));
	waits(catalog, "file", "file.avsc");
	gone("file.avsc");
	gone("app.Third.avsc");
	gone("app.Third/1.avsc");
	gone("app.Third");
	catalog_free(catalog);
}

static void test_what_was_written(void **state)
{
	const struct schema_want suspend = want_of(WANT_FINGERPRINT, "fermata.v1.SuspendEvent", 5);
	const struct schema_want approval = want_of(WANT_FINGERPRINT, "fermata.v1.ApprovalEvent", 5);
	const struct schema_want sealed = { .kind = WANT_SHA256 }, id = { .kind = WANT_ID, .id = 5 };
	char text[BROKEN_WHY_SIZE];

	(void)state;
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	make_link("app.State/2.avsc", "/nowhere/at/all");
	make_folder("fermata.v1.SuspendEvent");
	put("fermata.v1.SuspendEvent/1.avsc", "7");
	struct catalog *catalog = new_catalog(folder, false, true);
	struct app_state in = state_of("app.State", V3);
	in.body = VIEW_LITERAL("\x0e\x02\x04");
	struct seen seen = { "" };
	catalog_each_broken(catalog, see, &seen);
	assert_non_null(strstr(seen.text, "app.State/2.avsc app.State: it could not be read: No such file"));
	assert_non_null(strstr(seen.text, "fermata.v1.SuspendEvent/1.avsc fermata.v1.SuspendEvent: schema: "));
	assert_true(loads(catalog, "app.State"));
	assert_true(passes(catalog, "app.Other")); /* no reader is broken */
	struct schema_want want = misses(catalog, &in);
	assert_int_equal(want.kind, WANT_STATE);
	assert_true(catalog_is_broken(catalog, &want, text, sizeof(text)));
	assert_non_null(strstr(text, "app.State/2.avsc"));
	assert_false(catalog_is_denied(catalog, &want));
	catalog_deny(catalog, &want, LONG_MS, NULL);
	assert_true(catalog_is_denied(catalog, &want)); /* and it waits all the same */
	assert_int_equal(misses(catalog, &in).kind, WANT_STATE);
	assert_true(catalog_is_broken(catalog, &suspend, text, sizeof(text)));
	assert_true(catalog_is_broken(catalog, &sealed, text, sizeof(text)));
	assert_false(catalog_is_broken(catalog, &approval, text, sizeof(text)));
	assert_false(catalog_is_broken(catalog, &id, text, sizeof(text)));
	gone("app.State/2.avsc");
	put("app.State/2.avsc", V3 " ");
	assert_true(changed(catalog));
	assert_true(catalog_broken(catalog) == 1);
	assert_non_null(body_of(catalog, &in));
	gone("fermata.v1.SuspendEvent/1.avsc");
	gone("fermata.v1.SuspendEvent");
	gone("app.State/1.avsc");
	gone("app.State/2.avsc");
	gone("app.State");
	gone("app.State.avsc");
	assert_true(changed(catalog));
	assert_false(catalog_is_broken(catalog, &suspend, text, sizeof(text)));
	catalog_free(catalog);
}

/* Loops and what is too long are faults of one file, too; a file that comes back is noticed. */
static void test_what_cannot_be_read(void **state)
{
	static char large[1024 * 1024 + 2];
	struct seen seen = { "" };

	(void)state;
	memset(large, ' ', sizeof(large) - 1);
	put("large.avsc", large);
	make_link("loop.avsc", "loop.avsc");
	make_link("nothing", "/nowhere/at/all"); /* not a schema's name */
	struct catalog *catalog = new_catalog(folder, false, true);
	catalog_each_broken(catalog, see, &seen);
	assert_int_equal(catalog_broken(catalog), 2);
	assert_non_null(strstr(seen.text, "large.avsc large!: it has more than"));
	assert_non_null(strstr(seen.text, "loop.avsc loop!: it could not be read: "));
	assert_false(changed(catalog));
	waits(catalog, "app.Any", "large.avsc");
	gone("loop.avsc");
	gone("large.avsc");
	gone("nothing");
	assert_true(changed(catalog));
	assert_true(passes(catalog, "app.Any"));
	catalog_free(catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reader),
		cmocka_unit_test(test_nobody_is_asked),
		cmocka_unit_test(test_its_other_names),
		cmocka_unit_test(test_what_was_written),
		cmocka_unit_test(test_what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, start_folder, stop_folder);
}
