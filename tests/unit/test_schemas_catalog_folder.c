// links: schemas core
/* The folder of the catalog: which reader stands, what a reload changes, how it is listed, and all of it while others
 * look. */
#include "test_schemas_folder.h"

#include <pthread.h>
#include <stdatomic.h>

static void test_folder_before_registry(void **state)
{
	struct catalog *catalog = new_catalog(folder, true, true);
	struct app_state old = state_of("app.State", V1);

	(void)state;
	learn_reader(catalog, "app.State", V3);
	learn(catalog, &(struct schema_want){ .kind = WANT_ID, .id = 3 }, V1); /* not as a state */
	assert_int_equal(misses(catalog, &old).kind, WANT_STATE);
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	gone("app.State.avsc");
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04"); /* what was found is known still */
	gone("app.State/1.avsc");
	assert_true(changed(catalog));
	assert_false(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04");
	gone("app.State");
	catalog_free(catalog);
}

static void test_reload(void **state)
{
	(void)state;
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	struct catalog *catalog = new_catalog(folder, false, false);
	struct app_state old = state_of("app.State", V1);
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	put("app.State.avsc", V3 " ");
	put("broken.avsc", "{");
	assert_true(changed(catalog)); /* what is good is taken in beside it */
	assert_int_equal(catalog_broken(catalog), 1);
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04");
	gone("broken.avsc");
	assert_true(changed(catalog));
	assert_int_equal(catalog_broken(catalog), 0);
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04");
	assert_int_equal(catalog_readers(catalog), 1);
	gone("app.State.avsc");
	assert_true(changed(catalog));
	assert_null(body_of(catalog, &old));
	assert_int_equal(catalog_readers(catalog), 0);
	put("app.State.avsc", V2);
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	assert_int_equal(catalog_schemas(catalog), 3);
	gone("app.State.avsc");
	gone("app.State/1.avsc");
	gone("app.State");
	catalog_free(catalog);
}

/* One canonical form in two texts, which differ in what they match: decimals of one scale, and of another. */
static void test_same_form_in_two_texts(void **state)
{
#define DECIMAL(scale)                                                                                       \
	STATE("{\"name\":\"n\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":4,"        \
	      "\"scale\":" scale "}}")
#define WITH_EXTRA                                                                                           \
	STATE("{\"name\":\"n\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":4,"        \
	      "\"scale\":2}}," DEFAULT("extra", "1"))
	(void)state;
	make_folder("app.State");
	make_folder("a.Other");
	put("a.Other/1.avsc", DECIMAL("1"));
	put("app.State/1.avsc", DECIMAL("2"));
	put("app.State.avsc", WITH_EXTRA);
	struct catalog *catalog = new_catalog(folder, false, false);
	struct app_state in = state_of("app.State", DECIMAL("1"));
	in.body = VIEW_LITERAL("\x02\x01");
	assert_string_equal(body_of(catalog, &in), "\x02\x01\x02"); /* the same folder before another */
	gone("app.State/1.avsc");
	put("app.State/2.avsc", DECIMAL("3"));
	assert_true(changed(catalog));
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;
	assert_int_equal(state_migrate(catalog, &in, arena, &out, &from, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID); /* what is there now before what was */
	gone("app.State/2.avsc");
	gone("app.State.avsc");
	gone("app.State");
	gone("a.Other/1.avsc");
	gone("a.Other");
	catalog_free(catalog);
}

struct listing {
	char text[2048];
	size_t most;
};

static bool list(void *context, const struct catalog_entry *entry)
{
	static const char *const from[] = { "program", "folder", "elsewhere" };
	struct listing *listing = context;
	size_t len = strlen(listing->text);

	snprintf(listing->text + len, sizeof(listing->text) - len, "%s%s %s %d\n", entry->name,
	         entry->reader ? "!" : "", from[entry->from], (int)entry->registry_id);
	return --listing->most > 0;
}

static void test_each(void **state)
{
	struct listing listing = { .most = 100 };
	struct schema_want want = { .kind = WANT_ID, .id = 12 };

	(void)state;
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	put("plain.avsc", "\"int\"");
	struct catalog *catalog = new_catalog(folder, true, true);
	learn(catalog, &want, STATE(FIELD("x", "int")));
	learn_reader(catalog, "z.Z", "\"string\"");
	catalog_each(catalog, list, &listing);
	assert_string_equal(listing.text, "app.State! folder 0\n"
	                                  "app.State folder 0\n"
	                                  "app.State elsewhere 12\n"
	                                  "fermata.v1.ApprovalEvent! program 0\n"
	                                  "fermata.v1.GateEvent! program 0\n"
	                                  "fermata.v1.ResumeEvent! program 0\n"
	                                  "fermata.v1.SuspendEvent! program 0\n"
	                                  "plain! folder 0\n"
	                                  "string! elsewhere 0\n");
	listing = (struct listing){ .most = 1 };
	catalog_each(catalog, list, &listing);
	assert_string_equal(listing.text, "app.State! folder 0\n");
	gone("app.State/1.avsc");
	gone("app.State");
	gone("app.State.avsc");
	gone("plain.avsc");
	catalog_free(catalog);
}

/* ---- many threads ---- */

struct crowd {
	struct catalog *catalog;
	struct app_state old;
	atomic_bool stop;
	atomic_size_t seen;
};

static void *look(void *context)
{
	struct crowd *crowd = context;
	struct arena *own = arena_new((size_t)1 << 20);
	assert_non_null(own);
	struct app_state out;
	struct schema_want want;
	struct view from;
	struct error error;
	struct listing listing = { .most = 100 };
	bool sound = own != NULL;

	while (sound && !atomic_load(&crowd->stop)) {
		arena_reset(own);
		enum fate fate = state_migrate(crowd->catalog, &crowd->old, own, &out, &from, &want, &error);
		/* By one reader or the other, or by none: never by half of one. */
		sound = fate == FATE_OK && (view_equal(out.body, VIEW_LITERAL("\x0e\x02")) ||
		                            view_equal(out.body, VIEW_LITERAL("\x0e\x02\x04")) || view_is_null(from));
		if (atomic_fetch_add(&crowd->seen, 1) % 16 == 0)
			catalog_each(crowd->catalog, list, &listing);
		listing = (struct listing){ .most = 100 };
	}
	arena_free(own);
	return sound ? crowd : NULL;
}

static void test_threads(void **state)
{
	struct crowd crowd = { .old = state_of("app.State", V1) };
	pthread_t threads[3];
	void *sound;

	(void)state;
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	crowd.catalog = new_catalog(folder, true, true);
	learn_reader(crowd.catalog, "app.State", V3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look, &crowd), 0);
	for (int i = 0; i < 200 || i % 2 != 0 || atomic_load(&crowd.seen) < 1000; i++) {
		struct schema_want want = { .kind = WANT_ID, .id = i };
		if (i % 2 == 0)
			put("app.State.avsc", i % 4 == 0 ? V2 : V3 " ");
		else
			gone("app.State.avsc");
		assert_true(changed(crowd.catalog));
		learn_reader(crowd.catalog, "app.State", i % 3 == 0 ? V2 : V3);
		learn(crowd.catalog, &want, i % 3 == 0 ? V2 : V3);
		want.id = -1;
		catalog_deny(crowd.catalog, &want, LONG_MS, NULL);
	}
	atomic_store(&crowd.stop, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], &sound), 0);
		assert_non_null(sound);
	}
	gone("app.State/1.avsc");
	gone("app.State");
	catalog_free(crowd.catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folder_before_registry),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_same_form_in_two_texts),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, start_folder, stop_folder);
}
