// links: worker schemas vault store core
// The judge and edits: sealed as intake seals them, compared by what they say and not by their bytes.
#include "test_judge.h"
#include "test_vault.h"

#include "schemas/codec.h"

struct room {
	struct world *world;
	struct vault *vault;
	struct codec *codec;
	struct test_directory directory;
};

static int setup(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	struct codec_settings settings = { 0 };
	struct error error;
	char line[160];

	assert_non_null(room);
	assert_int_equal(vault_start(&error), FATE_OK);
	snprintf(line, sizeof(line), "k1 primary %s\n", test_kek(7));
	room->directory = test_directory_make();
	room->vault = test_vault(&room->directory, line);
	assert_int_equal(codec_new(&room->codec, &settings, &error), FATE_OK);
	room->world = world_new();
	room->world->settings.vault = room->vault;
	room->world->settings.codec = room->codec;
	room->world->settings.policy.allow_edits = true;
	*state = room;
	return 0;
}

static int teardown(void **state)
{
	struct room *room = *state;

	world_free(room->world);
	codec_free(room->codec);
	vault_close(room->vault);
	test_directory_remove(&room->directory);
	free(room);
	return 0;
}

/* ---- edits ---- */

static struct config_entry number_entry(const char *key, int64_t number)
{
	return (struct config_entry){ .key = view_of(key), .kind = CONFIG_LONG, .value = { .number = number } };
}

static void seal(struct room *room, struct item *item, struct config_entry *config, size_t len)
{
	struct decision *decision = item->decision;
	struct edits edits = { .present = true, .config = config, .config_len = len };
	struct buffer plain;
	struct error error;

	buffer_init(&plain, 1 << 20);
	assert_int_equal(codec_put_edits(room->codec, &edits, &plain, &error), FATE_OK);
	assert_int_equal(vault_seal_edits(room->vault, VIEW_LITERAL(""), &decision->checkpoint_id, &decision->id,
	                                  buffer_view(&plain), room->world->kept, &decision->edits, &error),
	                 FATE_OK);
	decision->has_edits = true;
	buffer_done(&plain);
}

/* An approval that sets VRAM_limit_gb, and user_id before or after it. */
static struct item *editing(struct room *room, int number, const char *who, int64_t limit, bool swapped)
{
	struct world *w = room->world;
	struct item *item = APPROVE_BY(number, 1, who);
	struct config_entry config[2];

	config[swapped] = number_entry("VRAM_limit_gb", limit);
	config[!swapped] = number_entry("user_id", 99);
	seal(room, item, config, 2);
	return item;
}

static void equal_edits_count_in_any_order(void **state)
{
	struct room *room = *state;
	struct world *w = room->world;

	BATCH(SUSPEND(1, .quorum = 3));
	BATCH(editing(room, 1, "ann", 16, false));
	BATCH(editing(room, 2, "bob", 16, true), editing(room, 3, "cyd", 16, false));
	assert_counted(1);
	assert_counted(2);
	assert_decided(1, VERDICT_APPROVED);
}

static void the_first_approval_fixes_the_edits(void **state)
{
	struct room *room = *state;
	struct world *w = room->world;

	BATCH(SUSPEND(1, .quorum = 2));
	BATCH(editing(room, 1, "ann", 16, false));
	BATCH(editing(room, 2, "bob", 24, false), APPROVE_BY(3, 1, "cyd"));
	assert_refused(2, "edits"); /* others */
	assert_refused(3, "edits"); /* none */
	assert_state(1, GATE_PENDING);
	BATCH(editing(room, 4, "bob", 16, false));
	assert_decided(1, VERDICT_APPROVED);
}

static void none_is_fixed_too(void **state)
{
	struct room *room = *state;
	struct world *w = room->world;

	BATCH(SUSPEND(1, .quorum = 2), APPROVE_BY(1, 1, "ann"), editing(room, 2, "bob", 16, false));
	assert_refused(2, "edits");
	BATCH(APPROVE_BY(3, 1, "bob"));
	assert_decided(1, VERDICT_APPROVED);
}

static void early_edits_are_compared_when_the_suspend_comes(void **state)
{
	struct room *room = *state;
	struct world *w = room->world;

	BATCH(editing(room, 1, "ann", 16, false), editing(room, 2, "bob", 24, false));
	BATCH(editing(room, 3, "cyd", 16, true));
	BATCH(SUSPEND(1, .quorum = 2));
	assert_counted(1);
	assert_refused(2, "edits");
	assert_counted(3);
	assert_decided(1, VERDICT_APPROVED);
}

static void edits_that_are_not_allowed(void **state)
{
	struct room *room = *state;
	struct world *w = room->world;
	struct item *rejecting = editing(room, 2, "bob", 16, false);

	w->settings.policy.allow_edits = false;
	rejecting->decision->kind = DECISION_REJECT;
	BATCH(SUSPEND(1), editing(room, 1, "ann", 16, false), rejecting);
	assert_refused(1, "edits");
	assert_refused(2, "edits");
	assert_state(1, GATE_PENDING);
}

static void edits_that_cannot_be_opened_are_not_the_same(void **state)
{
	struct room *room = *state;
	struct world *w = room->world;

	BATCH(SUSPEND(1, .quorum = 2), editing(room, 1, "ann", 16, false));
	decision_of(w, 1)->edits.commit[0] ^= 1;
	BATCH(editing(room, 2, "bob", 16, false));
	assert_refused(2, "edits");
	decision_of(w, 1)->edits.has_key = false; /* erased */
	BATCH(editing(room, 3, "cyd", 16, false));
	assert_refused(3, "edits");
	assert_state(1, GATE_PENDING);
}

/* They may be much larger opened than sealed: a batch's own memory must not be what they are opened in. */
static void large_edits_are_compared_in_memory_of_their_own(void **state)
{
	enum { KEYS = 20000, LIMIT = 100000 };
	struct room *room = *state;
	struct world *w = room->world;
	struct config_entry *config = calloc(KEYS, sizeof(*config));
	char(*keys)[8] = calloc(KEYS, sizeof(*keys));
	struct item *items[2] = { APPROVE_BY(1, 1, "ann"), APPROVE_BY(2, 1, "bob") };
	struct batch_request request = { 0 };
	struct batch_loaded loaded = { 0 };
	struct batch_write write;
	struct error error;

	for (int i = 0; i < KEYS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		config[i] = number_entry(keys[i], i);
	}
	seal(room, items[0], config, KEYS);
	seal(room, items[1], config, KEYS);
	free(config);
	free(keys);
	BATCH(SUSPEND(1, .quorum = 2));
	struct arena *small = arena_new(LIMIT);
	assert_non_null(small);
	assert_int_equal(judge_request(items, 2, small, &request, &error), FATE_OK);
	load_rows(w, &request, &loaded);
	assert_int_equal(judge_batch(&w->settings, items, 2, &request, &loaded, small, &write, &w->tally, &error),
	                 FATE_OK);
	assert_int_equal(w->tally.counted, 2);
	arena_free(small);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_edits_count_in_any_order),
		TEST(the_first_approval_fixes_the_edits),
		TEST(none_is_fixed_too),
		TEST(early_edits_are_compared_when_the_suspend_comes),
		TEST(edits_that_are_not_allowed),
		TEST(edits_that_cannot_be_opened_are_not_the_same),
		TEST(large_edits_are_compared_in_memory_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
