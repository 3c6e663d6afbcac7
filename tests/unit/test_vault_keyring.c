// links: vault core
/* Keyrings: hostile texts, files that others can read, the one source, a new file. */
#include "test_vault.h"

#include <endian.h>
#include <errno.h>
#include <sys/xattr.h>

static enum fate parse(const char *text, size_t len, struct error *error)
{
	struct keyring *keyring = NULL;
	enum fate fate = keyring_parse((struct view){ (const uint8_t *)text, len }, "ring", &keyring, error);

	keyring_free(keyring);
	return fate;
}

static void assert_parses(const char *text)
{
	struct error error;

	assert_int_equal(parse(text, strlen(text), &error), FATE_OK);
}

/* expected: a piece of the message. No error ever says a piece of the key. */
static void assert_wrong(const char *text, const char *expected)
{
	struct error error;

	assert_int_equal(parse(text, strlen(text), &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_int_equal(error_exit_code(&error), 2);
	if (strstr(error.message, expected) == NULL)
		fail_msg("'%s' is not in: %s", expected, error.message);
	for (uint8_t byte = 1; byte < 4; byte++)
		assert_false(test_leaks(error.message, test_kek(byte)));
}

static char *text_of(const char *fmt, ...) FM_PRINTF(1, 2);
static char *text_of(const char *fmt, ...)
{
	static char text[4][2048];
	static unsigned next;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text[next % 4], sizeof(text[0]), fmt, args);
	va_end(args);
	return text[next++ % 4];
}

static void test_good_texts(void **state)
{
	const char *k = test_kek(1), *l = test_kek(2);

	(void)state;
	assert_parses(text_of("k primary %s", k));
	assert_parses(text_of("# c\n\n  \t \nk primary %s\r\n   # d\r\n", k));
	assert_parses(text_of("\tk \t primary\t%s \t\nl enabled %s\nm disabled %s", k, l, k));
	assert_parses(text_of("A.b_c-9 primary %s\n#\n", k));
	assert_parses(text_of("%.*s primary %s\n", 63,
	                      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", k));
}

static void test_wrong_texts(void **state)
{
	const char *k = test_kek(1), *l = test_kek(2);

	(void)state;
	assert_wrong("", "no primary");
	assert_wrong("# nothing\n", "no primary");
	assert_wrong(text_of("k enabled %s\n", k), "no primary");
	assert_wrong(text_of("k primary %s\nl primary %s\n", k, l), "line 2: line 1 has a primary");
	assert_wrong(text_of("k primary %s\n\nk enabled %s\n", k, l), "line 3: there is a key k already");
	assert_wrong(text_of("k Primary %s\n", k), "line 1: its second word");
	assert_wrong(text_of("k primaryx %s\n", k), "line 1: its second word");
	assert_wrong("k", "line 1: its second word");
	assert_wrong("k primary", "line 1: its third word");
	assert_wrong(text_of("k primary %s extra\n", k), "more than three words");
	assert_wrong(text_of("k primary %s # why\n", k), "more than three words");
	assert_wrong(text_of("k:1 primary %s\n", k), "line 1: its first word");
	assert_wrong(text_of("\xef\xbb\xbfk primary %s\n", k), "line 1: its first word");
	assert_wrong(text_of("\xc3\xa9 primary %s\n", k), "line 1: its first word");
	assert_wrong(text_of("%.*s primary %s\n", 64,
	                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", k),
	             "line 1: its first word");
}

/* The words in the wrong order must not put a key into the error text. */
static void test_misplaced_key(void **state)
{
	const char *k = test_kek(1);
	char lower[KEK_TEXT_LEN + 1];

	(void)state;
	assert_wrong(text_of("%s primary k\n", k), "line 1: its first word");
	assert_wrong(text_of("%s\n", k), "line 1: its first word");
	assert_wrong(text_of("k %s primary\n", k), "line 1: its second word");
	assert_wrong(text_of("primary %s k\n", k), "line 1: its second word");
	snprintf(lower, sizeof(lower), "%s", k);
	memcpy(lower, "fermata-kek", 11);
	assert_wrong(text_of("%s primary %s\n%s primary %s\n", lower, k, lower, k), "line 1: its first word");
}

/* Every character of a key changed, cut at every length, and one too long. */
static void test_mistyped_key(void **state)
{
	char key[KEK_TEXT_LEN + 2];

	(void)state;
	for (size_t i = 0; i < KEK_TEXT_LEN; i++) {
		snprintf(key, sizeof(key), "%s", test_kek(1));
		key[i] = key[i] == 'Z' ? 'Y' : 'Z';
		assert_wrong(text_of("k primary %s\n", key), "line 1: its third word");
		snprintf(key, sizeof(key), "%s", test_kek(1));
		key[i] = '\0';
		assert_wrong(text_of("k primary %s\n", key), "line 1: its third word");
	}
	snprintf(key, sizeof(key), "%sA", test_kek(1));
	assert_wrong(text_of("k primary %s\n", key), "line 1: its third word");
	snprintf(key, sizeof(key), "%s", test_kek(0xff)); /* has _ in it: not the other alphabet's / */
	char *slash = strchr(key, '_');
	assert_non_null(slash);
	*slash = '/';
	assert_wrong(text_of("k primary %s\n", key), "line 1: its third word");
}

static void test_binary_texts(void **state)
{
	char text[4096];
	struct error error;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		vault_random(text, sizeof(text));
		assert_int_equal(parse(text, (size_t)round, &error), FATE_FATAL);
	}
	int len = snprintf(text, sizeof(text), "k primary %s\nl enabled ", test_kek(1));
	text[len] = '\0';
	assert_int_equal(parse(text, (size_t)len + 1, &error), FATE_FATAL);
	for (int i = 0; i < 256; i++)
		if (i != 'k' && i != '#' && i != '\n') {
			snprintf(text, sizeof(text), "x primary %s", test_kek(1));
			text[1] = (char)i; /* between the words: only a space or a tab will do */
			enum fate fate = parse(text, strlen(test_kek(1)) + 10, &error);
			assert_int_equal(fate, i == ' ' || i == '\t' || i == '\r' ? FATE_OK : FATE_FATAL);
		}
}

static void test_too_many_keys(void **state)
{
	static char text[300 * 100];
	size_t len = 0;
	struct error error;

	(void)state;
	for (int i = 0; i < KEYRING_KEYS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "k%d %s %s\n", i, i ? "enabled" : "primary",
		                        test_kek(1));
	assert_int_equal(parse(text, len, &error), FATE_OK);
	snprintf(text + len, sizeof(text) - len, "more enabled %s\n", test_kek(1));
	assert_wrong(text, "too many keys");
}

static enum fate open_file(const char *path, struct error *error)
{
	struct vault_source source = { .keyring_file = path };
	struct vault *vault = NULL;
	enum fate fate = vault_open(&vault, &source, error);

	vault_close(vault);
	return fate;
}

static void assert_file(const char *path, const char *expected)
{
	struct error error = { 0 };

	enum fate fate = open_file(path, &error);
	assert_int_equal(fate, expected == NULL ? FATE_OK : FATE_FATAL);
	if (expected == NULL)
		return;
	assert_int_equal(error.code, ERR_USAGE);
	if (strstr(error.message, expected) == NULL || strstr(error.message, path) == NULL)
		fail_msg("'%s' is not in: %s", expected, error.message);
}

static void test_permissions(void **state)
{
	struct test_directory directory = test_directory_make();
	const char *text = text_of("k primary %s\n", test_kek(1));

	(void)state;
	assert_file(directory.keyring, "is not there");
	for (mode_t mode = 0400; mode <= 0677; mode++) {
		if ((mode & 0700) != 0400 && (mode & 0700) != 0600)
			continue;
		test_write(directory.keyring, text, mode);
		assert_file(directory.keyring, (mode & 077) == 0 ? NULL : "chmod 600");
	}
	test_directory_remove(&directory);
}

static void test_no_regular_file(void **state)
{
	struct test_directory directory = test_directory_make();
	char link[128];

	(void)state;
	assert_file(directory.path, "not a regular file");
	assert_file("/dev/null", "not a regular file");
	assert_int_equal(mkfifo(directory.keyring, 0600), 0);
	assert_file(directory.keyring, "not a regular file"); /* and does not wait for a writer */
	unlink(directory.keyring);
	/* A link is followed, as those of a Kubernetes secret. */
	snprintf(link, sizeof(link), "%s/link", directory.path);
	assert_int_equal(symlink("keyring", link), 0);
	assert_file(link, "is not there");
	test_write(directory.keyring, text_of("k primary %s\n", test_kek(1)), 0400);
	assert_file(link, NULL);
	unlink(directory.keyring);
	test_write(directory.keyring, "", 0440);
	assert_file(link, "chmod 600");
	unlink(link);
	test_directory_remove(&directory);
}

static void test_huge_file(void **state)
{
	struct test_directory directory = test_directory_make();
	static char text[KEYRING_TEXT_MAX + 2];

	(void)state;
	memset(text, '\n', sizeof(text) - 1);
	memcpy(text + 1, "k primary ", 10);
	memcpy(text + 11, test_kek(1), KEK_TEXT_LEN);
	test_write(directory.keyring, text, 0600);
	assert_file(directory.keyring, "more than 65536");
	text[KEYRING_TEXT_MAX] = '\0';
	test_write(directory.keyring, text, 0600);
	assert_file(directory.keyring, NULL);
	test_directory_remove(&directory);
}

struct acl_entry {
	uint16_t tag, permission;
	uint32_t id;
};

/* Gives the file an access list: its owner rw, one user r, the group and others as given. Answers
 * whether the file system has such lists. */
static bool set_acl(const char *path, uint32_t user, uint16_t group)
{
	struct {
		uint32_t version;
		struct acl_entry entries[5];
	} acl = {
		htole32(2),
		{
			{ htole16(0x01), htole16(6), UINT32_MAX },
			{ htole16(0x02), htole16(4), htole32(user) },
			{ htole16(0x04), htole16(group), UINT32_MAX },
			{ htole16(0x10), htole16(4), UINT32_MAX },
			{ htole16(0x20), htole16(0), UINT32_MAX },
		},
	};

	return setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0;
}

/* systemd gives a unit's user its credential by naming it in an access list: mode 0440 and yet private. */
static void test_access_list(void **state)
{
	struct test_directory directory = test_directory_make();
	struct stat status;

	(void)state;
	test_write(directory.keyring, text_of("k primary %s\n", test_kek(1)), 0600);
	if (!set_acl(directory.keyring, geteuid(), 0)) {
		test_directory_remove(&directory);
		skip();
	}
	assert_int_equal(stat(directory.keyring, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
	assert_file(directory.keyring, NULL);
	assert_true(set_acl(directory.keyring, geteuid() + 1, 0));
	assert_file(directory.keyring, "chmod 600");
	assert_true(set_acl(directory.keyring, geteuid(), 4));
	assert_file(directory.keyring, "chmod 600");
	test_directory_remove(&directory);
}

static enum fate open_source(const struct vault_source *source, struct error *error)
{
	struct vault *vault = NULL;
	enum fate fate = vault_open(&vault, source, error);

	vault_close(vault);
	return fate;
}

static void test_one_source(void **state)
{
	struct test_directory directory = test_directory_make();
	const char *command[] = { "cat", directory.keyring, NULL };
	const char *nothing[] = { NULL };
	struct vault_source source = { 0 };
	struct error error;

	(void)state;
	assert_int_equal(open_source(&source, &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_non_null(strstr(error.message, "keys generate"));
	source.keyring_command = nothing;
	assert_int_equal(open_source(&source, &error), FATE_FATAL);
	/* A directory of credentials without ours is no source... */
	source = (struct vault_source){ .credentials_directory = directory.path };
	assert_int_equal(open_source(&source, &error), FATE_FATAL);
	assert_non_null(strstr(error.message, "has no credential keyring"));
	source.keyring_command = command;
	assert_int_equal(open_source(&source, &error), FATE_RETRY); /* ...so that the command is asked */
	test_write(directory.keyring, text_of("k primary %s\n", test_kek(1)), 0400);
	assert_int_equal(open_source(&source, &error), FATE_FATAL);
	assert_non_null(strstr(error.message, "several keyrings"));
	source.keyring_command = NULL;
	assert_int_equal(open_source(&source, &error), FATE_OK);
	source.keyring_file = directory.keyring;
	assert_int_equal(open_source(&source, &error), FATE_FATAL);
	source.credentials_directory = NULL;
	assert_int_equal(open_source(&source, &error), FATE_OK);
	source.keyring_command = command;
	assert_int_equal(open_source(&source, &error), FATE_FATAL);
	source.keyring_file = NULL;
	assert_int_equal(open_source(&source, &error), FATE_OK);
	test_directory_remove(&directory);
}

static void test_generate(void **state)
{
	struct test_directory directory = test_directory_make();
	char id[KEK_ID_MAX + 1] = "", today[32];
	struct stat status;
	struct error error;

	(void)state;
	mode_t umask_before = umask(0777);
	assert_int_equal(vault_keyring_generate(directory.keyring, id, &error), FATE_OK);
	umask(umask_before);
	assert_int_equal(stat(directory.keyring, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	clock_format(clock_real_us(), today, sizeof(today));
	assert_int_equal(strlen(id), strlen("k1-20261130-89abcdef"));
	assert_memory_equal(id, "k1-", 3);
	assert_memory_equal(id + 3, today, 4);
	assert_file(directory.keyring, NULL);

	assert_int_equal(vault_keyring_generate(directory.keyring, id, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_NO);
	assert_int_equal(error_exit_code(&error), 1);
	test_directory_remove(&directory);
}

static void test_generate_nowhere(void **state)
{
	struct test_directory directory = test_directory_make();
	char path[128], id[KEK_ID_MAX + 1] = "kept";
	struct error error;

	(void)state;
	snprintf(path, sizeof(path), "%s/missing/keyring", directory.path);
	assert_int_equal(vault_keyring_generate(path, id, &error), FATE_FATAL);
	assert_int_equal(error_exit_code(&error), 2);
	assert_non_null(strstr(error.message, "directory does not exist"));
	assert_int_equal(vault_keyring_generate("", id, &error), FATE_FATAL);
	assert_int_equal(vault_keyring_generate("/dev/null/keyring", id, &error), FATE_FATAL);
	/* A link that leads nowhere is there too, and is not followed. */
	assert_int_equal(symlink("elsewhere", directory.keyring), 0);
	assert_int_equal(vault_keyring_generate(directory.keyring, id, &error), FATE_REJECT);
	assert_string_equal(id, "kept");
	test_directory_remove(&directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_texts),       cmocka_unit_test(test_wrong_texts),
		cmocka_unit_test(test_misplaced_key),    cmocka_unit_test(test_mistyped_key),
		cmocka_unit_test(test_binary_texts),     cmocka_unit_test(test_too_many_keys),
		cmocka_unit_test(test_permissions),      cmocka_unit_test(test_no_regular_file),
		cmocka_unit_test(test_huge_file),        cmocka_unit_test(test_access_list),
		cmocka_unit_test(test_one_source),       cmocka_unit_test(test_generate),
		cmocka_unit_test(test_generate_nowhere),
	};

	return cmocka_run_group_tests(tests, test_start, NULL);
}
