// links: vault core
/* Seals and opens, and everything that must not open: each byte flipped, each binding changed. */
#include "test_vault.h"
#include "vault/vault_impl.h"

struct fixture {
	struct test_directory directory;
	struct vault *vault;
	struct arena *arena;
	struct seal_context context;
	struct uuid decision_id;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char text[256];

	fixture->directory = test_directory_make();
	snprintf(text, sizeof(text), "k1 primary %s\nk2 enabled %s\nold disabled %s\n", test_kek(1), test_kek(2),
	         test_kek(3));
	fixture->vault = test_vault(&fixture->directory, text);
	fixture->arena = arena_new(TEST_ARENA);
	assert_non_null(fixture->arena);
	fixture->context = (struct seal_context){
		.tenant = VIEW_LITERAL("default"),
		.session_id = VIEW_LITERAL("SESSION-808"),
		.suspend_seq = 42,
	};
	memset(fixture->context.checkpoint_id.bytes, 0x17, 16);
	memset(fixture->context.schema_sha256, 0x99, 32);
	memset(fixture->decision_id.bytes, 0x23, 16);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	vault_close(fixture->vault);
	arena_free(fixture->arena);
	test_directory_remove(&fixture->directory);
	free(fixture);
	return 0;
}

/* len bytes that shrink well, or not at all. */
static struct view text_of(struct fixture *fixture, size_t len, bool random)
{
	static const char words[] = "the migration waits for review; ";
	uint8_t *bytes = arena_alloc(fixture->arena, len);

	assert_non_null(bytes);
	if (random)
		vault_random(bytes, len);
	for (size_t i = 0; !random && i < len; i++)
		bytes[i] = (uint8_t)words[i % (sizeof(words) - 1)];
	return (struct view){ bytes, len };
}

static struct sealed seal(struct fixture *fixture, struct view plain)
{
	struct sealed sealed;
	struct error error;

	assert_int_equal(vault_seal(fixture->vault, &fixture->context, plain, fixture->arena, &sealed, &error),
	                 FATE_OK);
	return sealed;
}

static struct sealed seal_edits(struct fixture *fixture, struct view plain)
{
	struct sealed sealed;
	struct error error;

	assert_int_equal(vault_seal_edits(fixture->vault, fixture->context.tenant,
	                                  &fixture->context.checkpoint_id, &fixture->decision_id, plain,
	                                  fixture->arena, &sealed, &error),
	                 FATE_OK);
	return sealed;
}

static enum fate open_edits(struct fixture *fixture, const struct sealed *sealed, struct view *ret_plain,
                            struct error *error)
{
	return vault_unseal_edits(fixture->vault, fixture->context.tenant, &fixture->context.checkpoint_id,
	                          &fixture->decision_id, sealed, fixture->arena, ret_plain, error);
}

static void assert_opens(struct fixture *fixture, const struct sealed *sealed, struct view plain)
{
	struct view got = VIEW_NULL;
	struct error error;

	assert_int_equal(vault_unseal(fixture->vault, &fixture->context, sealed, fixture->arena, &got, &error),
	                 FATE_OK);
	assert_non_null(got.data);
	assert_true(got.len == plain.len && (plain.len == 0 || memcmp(got.data, plain.data, plain.len) == 0));
}

static void assert_refused(struct fixture *fixture, const struct sealed *sealed, enum error_code code)
{
	struct view got = VIEW_NULL;
	struct error error;

	assert_int_equal(vault_unseal(fixture->vault, &fixture->context, sealed, fixture->arena, &got, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, code);
	assert_null(got.data);
}

static void test_round_trip(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 15, 64, 2048, 32768, 1 << 20, 8 << 20 };
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int random = 0; random < 2; random++) {
			struct view plain = text_of(fixture, sizes[i], random);
			struct sealed sealed = seal(fixture, plain);
			assert_int_equal(sealed.format, 1);
			assert_int_equal(sealed.plain_len, sizes[i]);
			assert_int_equal(sealed.compression, sizes[i] >= 64 && !random);
			assert_true(sealed.body.len <= sizes[i] + 40);
			assert_string_equal(sealed.kek_id, "k1");
			assert_memory_equal(sealed.schema_sha256, fixture->context.schema_sha256, 32);
			assert_opens(fixture, &sealed, plain);
			arena_reset(fixture->arena);
		}
	}
}

/* What a thread gave back is made anew by the next call. */
static void test_after_a_rest(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 2048, false);

	vault_rest();
	struct sealed sealed = seal(fixture, plain);
	assert_int_equal(sealed.compression, 1);
	vault_rest();
	assert_opens(fixture, &sealed, plain);
	vault_rest();
	vault_rest();
	sealed = seal(fixture, plain);
	assert_opens(fixture, &sealed, plain);
}

static void test_nothing_repeats(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 100, false);
	struct sealed a = seal(fixture, plain), b = seal(fixture, plain);

	assert_memory_not_equal(a.body.data, b.body.data, 24);
	assert_memory_not_equal(a.body.data + 24, b.body.data + 24, 24);
	assert_memory_not_equal(a.wrapped_key, b.wrapped_key, 24);
	assert_memory_not_equal(a.wrapped_key + 24, b.wrapped_key + 24, 32);
	assert_memory_not_equal(a.commit, b.commit, 32);
}

/* Flips every bit of bytes, one after the other; opens must be refused each time. */
static void flip_each(struct fixture *fixture, const struct sealed *sealed, uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1 << bit);
			assert_refused(fixture, sealed, ERR_TAMPERED);
			bytes[i] ^= (uint8_t)(1 << bit);
		}
	}
}

static void flip_all(struct fixture *fixture, struct view plain)
{
	struct sealed sealed = seal(fixture, plain);
	uint8_t *body = (uint8_t *)(uintptr_t)sealed.body.data;

	flip_each(fixture, &sealed, body, sealed.body.len);
	flip_each(fixture, &sealed, sealed.commit, sizeof(sealed.commit));
	flip_each(fixture, &sealed, sealed.wrapped_key, sizeof(sealed.wrapped_key));
	flip_each(fixture, &sealed, sealed.schema_sha256, sizeof(sealed.schema_sha256));
	flip_each(fixture, &sealed, &sealed.format, 1);
	flip_each(fixture, &sealed, &sealed.compression, 1);
	flip_each(fixture, &sealed, (uint8_t *)&sealed.plain_len, sizeof(sealed.plain_len));
	assert_opens(fixture, &sealed, plain);
}

static void test_every_bit_flipped(void **state)
{
	struct fixture *fixture = *state;

	flip_all(fixture, text_of(fixture, 300, false)); /* compressed */
	flip_all(fixture, text_of(fixture, 200, true));  /* and not */
	flip_all(fixture, text_of(fixture, 0, false));
}

/* Everything that the AAD binds and that is not in the row itself. */
static void test_every_binding_flipped(void **state)
{
	struct fixture *fixture = *state;
	uint8_t tenant[] = "default", session_id[] = "SESSION-808";
	struct seal_context *context = &fixture->context;

	context->tenant = (struct view){ tenant, 7 };
	context->session_id = (struct view){ session_id, 11 };
	struct sealed sealed = seal(fixture, text_of(fixture, 500, false));
	flip_each(fixture, &sealed, tenant, 7);
	flip_each(fixture, &sealed, session_id, 11);
	flip_each(fixture, &sealed, context->checkpoint_id.bytes, 16);
	flip_each(fixture, &sealed, (uint8_t *)&context->suspend_seq, 8);
	flip_each(fixture, &sealed, context->schema_sha256, 32);
	context->tenant.len = 6;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	context->tenant = VIEW_NULL;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
}

/* The schema's digest is bound by the tags too, not only by being compared with the row's. */
static void test_schema_in_both_places(void **state)
{
	struct fixture *fixture = *state;
	struct sealed sealed = seal(fixture, text_of(fixture, 500, false));

	sealed.schema_sha256[0] ^= 1;
	fixture->context.schema_sha256[0] ^= 1;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
}

/* A byte that moves from one field to its neighbour leaves the same bytes in the same order. */
static void test_fields_do_not_flow(void **state)
{
	struct fixture *fixture = *state;

	fixture->context.tenant = VIEW_LITERAL("ab");
	fixture->context.session_id = VIEW_LITERAL("c");
	struct sealed sealed = seal(fixture, text_of(fixture, 100, false));
	fixture->context.tenant = VIEW_LITERAL("a");
	fixture->context.session_id = VIEW_LITERAL("bc");
	assert_refused(fixture, &sealed, ERR_TAMPERED);
}

static void test_every_length(void **state)
{
	struct fixture *fixture = *state;
	struct sealed sealed = seal(fixture, text_of(fixture, 200, false));
	size_t whole = sealed.body.len;

	for (size_t len = 0; len < whole; len++) {
		sealed.body.len = len;
		assert_refused(fixture, &sealed, ERR_TAMPERED);
	}
	sealed.body = VIEW_NULL;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
}

/* Any mixture of the parts of two rows: only what belongs together opens. */
static void test_swapped(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 400, true);
	struct sealed mine = seal(fixture, plain), swapped;

	fixture->context.checkpoint_id.bytes[15] ^= 1;
	struct sealed other = seal(fixture, plain);
	assert_refused(fixture, &mine, ERR_TAMPERED);
	for (int parts = 0; parts < 7; parts++) {
		swapped = other;
		if ((parts & 1) == 0)
			swapped.body = mine.body;
		if ((parts & 2) == 0)
			memcpy(swapped.commit, mine.commit, sizeof(mine.commit));
		if ((parts & 4) == 0)
			memcpy(swapped.wrapped_key, mine.wrapped_key, sizeof(mine.wrapped_key));
		assert_refused(fixture, &swapped, ERR_TAMPERED);
	}
	assert_opens(fixture, &other, plain);
}

/* A second seal of the same checkpoint has another key: its body does not fit the first one's. */
static void test_swapped_within(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 400, true);
	struct sealed first = seal(fixture, plain), second = seal(fixture, plain);

	struct view body = first.body;
	first.body = second.body;
	assert_refused(fixture, &first, ERR_TAMPERED);
	memcpy(first.commit, second.commit, sizeof(first.commit));
	assert_refused(fixture, &first, ERR_TAMPERED);
	first.body = body;
	assert_refused(fixture, &first, ERR_TAMPERED);
}

static void test_key_refusals(void **state)
{
	struct fixture *fixture = *state;
	struct sealed sealed = seal(fixture, text_of(fixture, 100, false));

	snprintf(sealed.kek_id, sizeof(sealed.kek_id), "k2"); /* there, and another */
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	snprintf(sealed.kek_id, sizeof(sealed.kek_id), "k9");
	assert_refused(fixture, &sealed, ERR_KEY);
	snprintf(sealed.kek_id, sizeof(sealed.kek_id), "old");
	assert_refused(fixture, &sealed, ERR_KEY);
	sealed.kek_id[0] = '\0';
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	snprintf(sealed.kek_id, sizeof(sealed.kek_id), "k1\n");
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	memset(sealed.kek_id, 'a', sizeof(sealed.kek_id)); /* without its NUL */
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	snprintf(sealed.kek_id, sizeof(sealed.kek_id), "k1");
	sealed.has_key = false;
	assert_refused(fixture, &sealed, ERR_KEY);
}

static void test_absurd_rows(void **state)
{
	struct fixture *fixture = *state;
	struct sealed good = seal(fixture, text_of(fixture, 1000, false)), sealed = good;

	memset(sealed.commit, 0, sizeof(sealed.commit));
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	sealed = good;
	sealed.plain_len = UINT32_MAX;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	sealed.plain_len = PLAIN_MAX + 1;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	sealed.plain_len = 0;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	sealed = good;
	sealed.compression = COMPRESSION_NONE;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
}

/* A row that claims much and verifies as nothing must not make us ask for memory. */
static void test_claims_cost_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct sealed sealed = seal(fixture, text_of(fixture, 1000, false));
	size_t used = arena_used(fixture->arena);

	sealed.plain_len = PLAIN_MAX;
	assert_refused(fixture, &sealed, ERR_TAMPERED);
	assert_int_equal(arena_used(fixture->arena), used);
}

/* A writer that has the keys and lies about the length: everything verifies but the frame. */
static void test_bomb(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 1 << 20, false);
	struct sealed honest = seal(fixture, plain);
	struct binding binding = binding_of_checkpoint(&fixture->context);
	static const uint32_t lies[] = { 1 << 10, (1 << 20) - 1, (1 << 20) + 1, 8 << 20 };
	uint8_t *body = arena_alloc(fixture->arena, honest.body.len);
	uint8_t *frame = arena_alloc(fixture->arena, honest.body.len);
	const uint8_t *wrap_key;
	struct data_keys keys;
	struct error error;

	keyring_primary(fixture->vault->keyring, &wrap_key);
	assert_int_equal(envelope_unwrap(&honest, &binding, wrap_key, &keys, &error), FATE_OK);
	assert_int_equal(envelope_open(&keys, &binding, &honest, frame, &error), FATE_OK);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct sealed sealed = honest;
		sealed.plain_len = lies[i];
		envelope_close(&keys, &binding, (struct view){ frame, honest.body.len - 40 }, body, &sealed);
		assert_refused(fixture, &sealed, ERR_TAMPERED);
	}
	struct sealed garbage = honest;
	memset(frame, 0x5a, 64);
	envelope_close(&keys, &binding, (struct view){ frame, honest.body.len - 40 }, body, &garbage);
	assert_refused(fixture, &garbage, ERR_TAMPERED);
	data_keys_wipe(&keys);
}

static void test_edits(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 300, false), got = VIEW_NULL;
	struct sealed sealed = seal_edits(fixture, plain);
	struct error error;

	assert_int_equal(open_edits(fixture, &sealed, &got, &error), FATE_OK);
	assert_true(view_equal(plain, got));
	fixture->decision_id.bytes[0] ^= 1;
	assert_int_equal(open_edits(fixture, &sealed, &got, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TAMPERED);
	fixture->decision_id.bytes[0] ^= 1;
	fixture->context.checkpoint_id.bytes[0] ^= 1;
	assert_int_equal(open_edits(fixture, &sealed, &got, &error), FATE_REJECT);
	fixture->context.checkpoint_id.bytes[0] ^= 1;
	fixture->context.tenant = VIEW_LITERAL("other");
	assert_int_equal(open_edits(fixture, &sealed, &got, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TAMPERED);
}

/* Edits do not open as a checkpoint nor the other way round, and neither do their wrapped keys. */
static void test_edits_are_apart(void **state)
{
	struct fixture *fixture = *state;
	struct binding checkpoint, edits;
	struct view plain = text_of(fixture, 300, true), got;
	struct data_keys keys;
	const uint8_t *wrap_key;
	struct error error;

	memset(fixture->context.schema_sha256, 0, 32);
	fixture->decision_id = fixture->context.checkpoint_id;
	struct sealed of_checkpoint = seal(fixture, plain), of_edits = seal_edits(fixture, plain);
	assert_refused(fixture, &of_edits, ERR_TAMPERED);
	assert_int_equal(open_edits(fixture, &of_checkpoint, &got, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TAMPERED);

	checkpoint = binding_of_checkpoint(&fixture->context);
	edits = binding_of_edits(fixture->context.tenant, &fixture->context.checkpoint_id, &fixture->decision_id);
	keyring_primary(fixture->vault->keyring, &wrap_key);
	assert_int_equal(envelope_unwrap(&of_edits, &edits, wrap_key, &keys, &error), FATE_OK);
	assert_int_equal(envelope_unwrap(&of_edits, &checkpoint, wrap_key, &keys, &error), FATE_REJECT);
	assert_int_equal(envelope_unwrap(&of_checkpoint, &edits, wrap_key, &keys, &error), FATE_REJECT);
	data_keys_wipe(&keys);
}

static void test_every_bit_of_edits(void **state)
{
	struct fixture *fixture = *state;
	struct sealed sealed = seal_edits(fixture, text_of(fixture, 64, true));
	uint8_t *body = (uint8_t *)(uintptr_t)sealed.body.data;
	struct {
		uint8_t *bytes;
		size_t len;
	} parts[] = {
		{ body, sealed.body.len }, { sealed.commit, 32 },      { sealed.wrapped_key, 72 },
		{ &sealed.format, 1 },     { &sealed.compression, 1 }, { (uint8_t *)&sealed.plain_len, 4 },
	};
	struct view got;
	struct error error;

	for (size_t part = 0; part < sizeof(parts) / sizeof(parts[0]); part++) {
		for (size_t bit = 0; bit < 8 * parts[part].len; bit++) {
			parts[part].bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
			assert_int_equal(open_edits(fixture, &sealed, &got, &error), FATE_REJECT);
			assert_int_equal(error.code, ERR_TAMPERED);
			parts[part].bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
		}
	}
	assert_int_equal(open_edits(fixture, &sealed, &got, &error), FATE_OK);
}

static void test_too_much(void **state)
{
	struct fixture *fixture = *state;
	static uint8_t long_text[256];
	struct view plain = { long_text, PLAIN_MAX + 1u }; /* never read */
	struct sealed sealed;
	struct error error;

	memset(long_text, 'x', sizeof(long_text));
	assert_int_equal(vault_seal(fixture->vault, &fixture->context, plain, fixture->arena, &sealed, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	plain.len = 10;
	fixture->context.session_id = (struct view){ long_text, 255 };
	fixture->context.tenant = (struct view){ long_text, 255 };
	sealed = seal(fixture, plain);
	assert_opens(fixture, &sealed, plain);
	fixture->context.tenant.len = 256;
	assert_int_equal(vault_seal(fixture->vault, &fixture->context, plain, fixture->arena, &sealed, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID);
	fixture->context.tenant.len = 255;
	fixture->context.session_id.len = 256;
	assert_refused(fixture, &sealed, ERR_INVALID);
}

/* An arena that is full is the world's fault and not the row's. */
static void test_full_arena(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 5000, true), got = VIEW_NULL;
	struct arena *small = arena_new(1000);
	assert_non_null(small);
	struct sealed sealed = seal(fixture, plain), other;
	struct error error;

	assert_int_equal(vault_seal(fixture->vault, &fixture->context, plain, small, &other, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
	assert_int_equal(vault_unseal(fixture->vault, &fixture->context, &sealed, small, &got, &error),
	                 FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
	arena_free(small);
}

static void rewrite(struct fixture *fixture, const char *k1, const char *k2)
{
	char text[256];
	struct error error;

	snprintf(text, sizeof(text), "k1 %s %s\nk2 %s %s\n", k1, test_kek(1), k2, test_kek(2));
	test_write(fixture->directory.keyring, text, 0600);
	assert_int_equal(vault_reload(fixture->vault, &error), FATE_OK);
}

static void test_rotation(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 700, false);
	struct sealed first = seal(fixture, plain);

	rewrite(fixture, "enabled", "primary");
	struct sealed second = seal(fixture, plain);
	assert_string_equal(first.kek_id, "k1");
	assert_string_equal(second.kek_id, "k2");
	assert_opens(fixture, &first, plain);
	assert_opens(fixture, &second, plain);
	rewrite(fixture, "disabled", "primary");
	assert_refused(fixture, &first, ERR_KEY);
	assert_opens(fixture, &second, plain);
}

/* On failure the old keys stay. */
static void test_bad_reload(void **state)
{
	struct fixture *fixture = *state;
	struct view plain = text_of(fixture, 700, false);
	struct sealed sealed = seal(fixture, plain);
	struct error error;

	test_write(fixture->directory.keyring, "k1 primary rubbish\n", 0600);
	assert_int_equal(vault_reload(fixture->vault, &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_opens(fixture, &sealed, plain);
	unlink(fixture->directory.keyring);
	assert_int_equal(vault_reload(fixture->vault, &error), FATE_FATAL);
	assert_opens(fixture, &sealed, plain);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_round_trip),
		test(test_after_a_rest),
		test(test_nothing_repeats),
		test(test_every_bit_flipped),
		test(test_every_binding_flipped),
		test(test_schema_in_both_places),
		test(test_fields_do_not_flow),
		test(test_every_length),
		test(test_swapped),
		test(test_swapped_within),
		test(test_key_refusals),
		test(test_absurd_rows),
		test(test_claims_cost_nothing),
		test(test_bomb),
		test(test_edits),
		test(test_edits_are_apart),
		test(test_every_bit_of_edits),
		test(test_too_much),
		test(test_full_arena),
		test(test_rotation),
		test(test_bad_reload),
	};

	return cmocka_run_group_tests(tests, test_start, NULL);
}
