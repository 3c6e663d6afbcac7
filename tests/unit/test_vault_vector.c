// links: vault core
/* Opens what vault/reference.py sealed, which shares no code with the vault: `reference.py vectors`. */
#include "test_vault.h"

#define KEK   "FERMATA-KEK-1AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh_LL1Fg"
#define PLAIN "{\"node\":\"AWAITING_HUMAN_APPROVAL\",\"\xc3\xa9\":16.0}"

struct vector {
	const char *body;
	const char *commit;
	const char *wrapped;
};

#define CHECKPOINT_ID "01936d5e-7a10-7000-8000-00000000c0de"
#define DECISION_ID   "01936d5e-7a10-7000-8000-00000000dec1"
#define EXPIRE_ID     "4269c839-0e8a-8544-b460-d1a5285a9eca"
#define WRAP_KEY      "de4e308ef477d2adec5269bcfdd5b28608ce866d622f4e3e718f80a83fdd0482"
#define DIGEST        "9415b883b22131aefc8f2bee5e530d4273d6f29864bb20618d093167be34d5fb"

static const struct vector checkpoint_vector = {
	.body = "6465666768696a6b6c6d6e6f707172737475767778797a7b20b21abbbeb9264d8d3b1517cdec8b2c34a0beb3"
			"c0624909cf3416f20cb1462b2eaa2f967092ed9d5cb9f11a738afa560b5a99c9646192d0a123d46d",
	.commit = "7a779af015f82f11da256ec743140075ca25dacc7c6ef165dbd147e3ba17e140",
	.wrapped = "82838485868788898a8b8c8d8e8f909192939495969798995784153985e95e70fcc128776aa9c1bc9228739c"
			   "27ca269c2ca120c6e7b2112749752ac72533fe117764146601a0bb64",
};

static const struct vector edits_vector = {
	.body = "6465666768696a6b6c6d6e6f707172737475767778797a7b20b21abbbeb9264d8d3b1517cdec8b2c34a0beb3"
			"c0624909cf3416f20cb1462b2eaa2f967092ed9d5cb9f11aae361e3e6e57bfb77de012325dcb60b8",
	.commit = "85be11b96aba93f09f2611ad481eaf6f175c96282294eeb344fdd798b4a314f5",
	.wrapped = "82838485868788898a8b8c8d8e8f909192939495969798995784153985e95e70fcc128776aa9c1bc9228739c"
			   "27ca269c2ca120c6e7b21127439f84259c9caba96d2fc0103eb03762",
};

static const struct vector packed_vector = {
	.body = "6465666768696a6b6c6d6e6f707172737475767778797a7b73255b29fa4c6476af016038ebdca74049ddb7b1"
			"cc6a531fc02319e816aa462953c75d058bff81ed26b5ed45b9ca695887208b51915162b915a48d5b1f4b1372"
			"e9e936d0b2444ec97a",
	.commit = "1fa0825bb37a65c191c0aee6172999820af9147b31a231429f84022735faa59c",
	.wrapped = "82838485868788898a8b8c8d8e8f909192939495969798995784153985e95e70fcc128776aa9c1bc9228739c"
			   "27ca269c2ca120c6e7b2112749752ac72533fe117764146601a0bb64",
};

static void from_hex(const char *hex, uint8_t *bytes, size_t len)
{
	assert_int_equal(strlen(hex), 2 * len);
	for (size_t i = 0; i < len; i++) {
		unsigned byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		bytes[i] = (uint8_t)byte;
	}
}

static struct uuid uuid_of(const char *text)
{
	struct uuid uuid;

	assert_true(uuid_parse(view_of(text), &uuid));
	return uuid;
}

static struct sealed sealed_of(const struct vector *vector, uint8_t *body, uint8_t compression,
                               uint32_t plain_len)
{
	struct sealed sealed = {
		.format = 1,
		.compression = compression,
		.plain_len = plain_len,
		.kek_id = "k1-20261130",
		.has_key = true,
	};
	size_t len = strlen(vector->body) / 2;

	from_hex(vector->body, body, len);
	sealed.body = (struct view){ body, len };
	from_hex(vector->commit, sealed.commit, sizeof(sealed.commit));
	from_hex(vector->wrapped, sealed.wrapped_key, sizeof(sealed.wrapped_key));
	for (uint8_t i = 0; i < 32; i++)
		sealed.schema_sha256[i] = (uint8_t)(64 + i);
	return sealed;
}

static struct seal_context context_of(const struct sealed *sealed)
{
	struct seal_context context = {
		.tenant = VIEW_LITERAL("default"),
		.session_id = VIEW_LITERAL("SESSION-808"),
		.checkpoint_id = uuid_of(CHECKPOINT_ID),
		.suspend_seq = 3,
	};

	memcpy(context.schema_sha256, sealed->schema_sha256, sizeof(context.schema_sha256));
	return context;
}

/* Sets up a vault with the vectors' key; opens one as a checkpoint, or as edits. */
static struct view open_vector(const struct vector *vector, bool edits, uint8_t compression,
                               uint32_t plain_len, struct arena *arena)
{
	struct test_directory directory = test_directory_make();
	struct vault *vault = test_vault(&directory, "k1-20261130 primary " KEK "\n");
	struct uuid checkpoint_id = uuid_of(CHECKPOINT_ID);
	struct uuid decision_id = uuid_of(DECISION_ID);
	struct view plain = VIEW_NULL;
	uint8_t body[256];
	struct error error;

	struct sealed sealed = sealed_of(vector, body, compression, plain_len);
	struct seal_context context = context_of(&sealed);
	if (edits)
		assert_int_equal(vault_unseal_edits(vault, VIEW_LITERAL("default"), &checkpoint_id, &decision_id,
		                                    &sealed, arena, &plain, &error),
		                 FATE_OK);
	else
		assert_int_equal(vault_unseal(vault, &context, &sealed, arena, &plain, &error), FATE_OK);
	vault_close(vault);
	test_directory_remove(&directory);
	return plain;
}

static void test_checkpoint(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	assert_non_null(arena);

	(void)state;
	struct view plain = open_vector(&checkpoint_vector, false, 0, sizeof(PLAIN) - 1, arena);
	assert_true(view_equal_text(plain, PLAIN));
	arena_free(arena);
}

static void test_edits(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	assert_non_null(arena);

	(void)state;
	struct view plain = open_vector(&edits_vector, true, 0, sizeof(PLAIN) - 1, arena);
	assert_true(view_equal_text(plain, PLAIN));
	arena_free(arena);
}

/* Compressed: a frame put together by hand, with the text stored and a hundred dots after it. */
static void test_packed(void **state)
{
	struct arena *arena = arena_new(1 << 20);
	assert_non_null(arena);

	(void)state;
	struct view plain = open_vector(&packed_vector, false, 1, sizeof(PLAIN) - 1 + 100, arena);
	assert_int_equal(plain.len, sizeof(PLAIN) - 1 + 100);
	assert_memory_equal(plain.data, PLAIN, sizeof(PLAIN) - 1);
	for (size_t i = sizeof(PLAIN) - 1; i < plain.len; i++)
		assert_int_equal(plain.data[i], '.');
	arena_free(arena);
}

static void test_keys(void **state)
{
	static const char text[] = "k1-20261130 primary " KEK "\n";
	struct keyring *keyring = NULL;
	const uint8_t *wrap_key;
	uint8_t expected[KEY_LEN];
	uint8_t kek[KEY_LEN];
	char again[KEK_TEXT_LEN + 1];
	struct error error;

	(void)state;
	assert_int_equal(keyring_parse(view_of(text), "vector", &keyring, &error), FATE_OK);
	assert_string_equal(keyring_primary(keyring, &wrap_key), "k1-20261130");
	from_hex(WRAP_KEY, expected, sizeof(expected));
	assert_memory_equal(wrap_key, expected, KEY_LEN);
	keyring_free(keyring);

	assert_true(kek_parse(view_of(KEK), kek));
	for (uint8_t i = 0; i < KEY_LEN; i++)
		assert_int_equal(kek[i], i);
	kek_format(kek, again);
	assert_string_equal(again, KEK);
}

static void test_digests(void **state)
{
	static const char empty_sha256[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	static const char abc_blake2b[] = "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319";
	uint8_t digest[32], expected[32];

	(void)state;
	vault_checkpoint_digest(VIEW_LITERAL("suspend"), digest);
	from_hex(DIGEST, expected, sizeof(expected));
	assert_memory_equal(digest, expected, 32);
	vault_digest(VIEW_LITERAL("abc"), digest);
	from_hex(abc_blake2b, expected, sizeof(expected));
	assert_memory_equal(digest, expected, 32);
	vault_sha256(VIEW_LITERAL(""), digest);
	from_hex(empty_sha256, expected, sizeof(expected));
	assert_memory_equal(digest, expected, 32);
	vault_digest(VIEW_NULL, digest);
	vault_sha256(VIEW_NULL, digest);
	assert_memory_equal(digest, expected, 32);
}

static void test_expire_id(void **state)
{
	struct uuid checkpoint_id = uuid_of(CHECKPOINT_ID);
	struct uuid expected = uuid_of(EXPIRE_ID);
	struct uuid id, other;

	(void)state;
	vault_expire_id(&checkpoint_id, 258, &id);
	assert_int_equal(uuid_compare(&id, &expected), 0);
	vault_expire_id(&checkpoint_id, 259, &other);
	assert_int_not_equal(uuid_compare(&id, &other), 0);
}

static void test_random(void **state)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	(void)state;
	vault_random(a, sizeof(a));
	vault_random(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_edits),   cmocka_unit_test(test_packed),
		cmocka_unit_test(test_keys),       cmocka_unit_test(test_digests), cmocka_unit_test(test_expire_id),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, test_start, NULL);
}
