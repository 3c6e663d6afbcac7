/* test_vault.h - what the tests of the vault share: keys, keyring files, a context to seal in. */
#ifndef FERMATA_TESTS_UNIT_TEST_VAULT_H
#define FERMATA_TESTS_UNIT_TEST_VAULT_H

#include "vault/keyring.h"
#include "vault/vault.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEST_ARENA (256u << 20)

/* A key that is all one byte, as text. Static memory, a new one for each of 8 calls. */
static inline const char *test_kek(uint8_t byte)
{
	static char texts[8][KEK_TEXT_LEN + 1];
	static unsigned next;
	uint8_t kek[KEY_LEN];
	char *text = texts[next++ % 8];

	memset(kek, byte, sizeof(kek));
	kek_format(kek, text);
	return text;
}

/* A path in a fresh directory that test_directory_remove takes away again. */
struct test_directory {
	char path[64];
	char keyring[96];
};

static inline struct test_directory test_directory_make(void)
{
	struct test_directory directory = { .path = "/tmp/fermata-test-vault-XXXXXX" };

	assert_non_null(mkdtemp(directory.path));
	snprintf(directory.keyring, sizeof(directory.keyring), "%s/keyring", directory.path);
	return directory;
}

static inline void test_directory_remove(const struct test_directory *directory)
{
	unlink(directory->keyring);
	assert_int_equal(rmdir(directory->path), 0);
}

static inline void test_write(const char *path, const char *text, mode_t mode)
{
	(void)unlink(path); /* one that may only be read is there from the test before */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* A vault over a keyring of that text. */
static inline struct vault *test_vault(const struct test_directory *directory, const char *text)
{
	struct vault_source source = { .keyring_file = directory->keyring };
	struct vault *vault = NULL;
	struct error error;

	test_write(directory->keyring, text, 0600);
	assert_int_equal(vault_open(&vault, &source, &error), FATE_OK);
	return vault;
}

static inline int test_start(void **state)
{
	struct error error;

	(void)state;
	return vault_start(&error) == FATE_OK ? 0 : -1;
}

/* Does a text of an error hold any piece of 8 characters of a key's text (after its prefix)? */
static inline bool test_leaks(const char *message, const char *kek_text)
{
	size_t prefix = sizeof(KEK_PREFIX) - 1;

	for (size_t i = prefix; i + 8 <= strlen(kek_text); i++)
		if (memmem(message, strlen(message), kek_text + i, 8) != NULL)
			return true;
	return false;
}

#endif
