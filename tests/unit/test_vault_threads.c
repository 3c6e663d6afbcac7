// links: vault core
/* Threads seal and open while another reloads the keyring. ThreadSanitizer has something to look at. */
#include "test_vault.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define ROUNDS  300

struct shared {
	struct vault *vault;
	atomic_int failures;
};

static bool one_round(struct vault *vault, const struct seal_context *context, struct arena *arena)
{
	uint8_t text[4096];
	struct view plain = { text, sizeof(text) }, got = VIEW_NULL;
	struct sealed sealed;
	struct error error;

	memset(text, context->checkpoint_id.bytes[0], sizeof(text));
	return vault_seal(vault, context, plain, arena, &sealed, &error) == FATE_OK &&
	       vault_unseal(vault, context, &sealed, arena, &got, &error) == FATE_OK && view_equal(plain, got);
}

static void *seal_and_open(void *argument)
{
	struct shared *shared = argument;
	struct arena *arena = arena_new(1 << 20);
	assert_non_null(arena);
	struct seal_context context = {
		.tenant = VIEW_LITERAL("default"),
		.session_id = VIEW_LITERAL("s"),
		.suspend_seq = 1,
	};

	for (int i = 0; i < ROUNDS; i++) {
		vault_random(context.checkpoint_id.bytes, 16);
		if (!one_round(shared->vault, &context, arena))
			atomic_fetch_add(&shared->failures, 1);
		arena_reset(arena);
	}
	arena_free(arena);
	return NULL;
}

static void test_reload_meanwhile(void **state)
{
	struct test_directory directory = test_directory_make();
	struct shared shared = { 0 };
	pthread_t threads[THREADS];
	char texts[2][256];
	struct error error;

	(void)state;
	snprintf(texts[0], sizeof(texts[0]), "a primary %s\nb enabled %s\n", test_kek(1), test_kek(2));
	snprintf(texts[1], sizeof(texts[1]), "a enabled %s\nb primary %s\n", test_kek(1), test_kek(2));
	shared.vault = test_vault(&directory, texts[0]);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, seal_and_open, &shared), 0);
	for (int i = 0; i < 50; i++) {
		test_write(directory.keyring, texts[i % 2], 0600);
		assert_int_equal(vault_reload(shared.vault, &error), FATE_OK);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&shared.failures), 0);
	vault_close(shared.vault);
	test_directory_remove(&directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reload_meanwhile) };

	return cmocka_run_group_tests(tests, test_start, NULL);
}
