/*
 * test_config_fixture.h - a fresh folder as the working directory, an environment without FERMATA_
 * variables, and a configuration loaded from texts, for each test of config/.
 */
#ifndef FERMATA_TESTS_UNIT_TEST_CONFIG_FIXTURE_H
#define FERMATA_TESTS_UNIT_TEST_CONFIG_FIXTURE_H

#include "config/config.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	char folder[64];
	struct config *config;
	struct error error;
};

static inline void env_clear(void)
{
	for (char **at = environ; *at != NULL;) {
		char name[256];
		size_t len = strcspn(*at, "=");
		if (strncmp(*at, "FERMATA_", 8) != 0 || len >= sizeof(name)) {
			at++;
			continue;
		}
		memcpy(name, *at, len);
		name[len] = '\0';
		unsetenv(name);
		at = environ;
	}
}

static inline int fixture_open(void **state)
{
	static struct fixture fixture;
	memset(&fixture, 0, sizeof(fixture));
	snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/fermata-config-XXXXXX");
	assert_non_null(mkdtemp(fixture.folder));
	assert_int_equal(chdir(fixture.folder), 0);
	env_clear();
	*state = &fixture;
	return 0;
}

/* The folder holds files and empty folders only. */
static inline int fixture_close(void **state)
{
	struct fixture *fixture = *state;
	config_free(fixture->config);
	env_clear();
	DIR *folder = opendir(".");
	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
		if (entry->d_name[0] != '.')
			assert_int_equal(remove(entry->d_name), 0);
	}
	closedir(folder);
	assert_int_equal(chdir("/"), 0);
	return rmdir(fixture->folder);
}

static inline void file_write_bytes(const char *path, const void *data, size_t len)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static inline void file_write(const char *path, const char *text)
{
	file_write_bytes(path, text, strlen(text));
}

/* Loads with --config and -X as given (NULL after the last). */
static inline enum fate load(struct fixture *fixture, const char *file, const char *const *overrides)
{
	struct config_request request = { .file = file, .overrides = overrides };
	while (overrides != NULL && overrides[request.overrides_len] != NULL)
		request.overrides_len++;
	config_free(fixture->config);
	memset(&fixture->error, 0, sizeof(fixture->error));
	enum fate fate = config_load(&fixture->config, &request, &fixture->error);
	assert_int_equal(fate == FATE_OK, fixture->config != NULL);
	return fate;
}

/* Loads "./fermata.conf" with this text. */
static inline void load_good(struct fixture *fixture, const char *text)
{
	file_write("fermata.conf", text);
	if (load(fixture, NULL, NULL) != FATE_OK)
		fail_msg("not loaded: %s", fixture->error.message);
}

/* The message of an error holds this. */
static inline void assert_says(const struct error *error, const char *part)
{
	if (strstr(error->message, part) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", part, error->message);
}

static inline void load_bad(struct fixture *fixture, const char *text, const char *part)
{
	file_write("fermata.conf", text);
	assert_int_equal(load(fixture, NULL, NULL), FATE_FATAL);
	assert_int_equal(fixture->error.code, ERR_USAGE);
	assert_int_equal(error_exit_code(&fixture->error), 2);
	assert_says(&fixture->error, part);
}

static inline void load_bad_override(struct fixture *fixture, const char *override, const char *part)
{
	const char *const overrides[] = { override, NULL };
	assert_int_equal(load(fixture, NULL, overrides), FATE_FATAL);
	assert_int_equal(fixture->error.code, ERR_USAGE);
	assert_says(&fixture->error, part);
}

static inline bool warned(const struct fixture *fixture, const char *part)
{
	size_t len;
	const char *const *warnings = config_warnings(fixture->config, &len);
	for (size_t i = 0; i < len; i++) {
		if (strstr(warnings[i], part) != NULL)
			return true;
	}
	return false;
}

/* What config_each says about a key: value and origin; value NULL when it is not there. */
struct wanted {
	const char *key;
	char value[512];
	char origin[512];
	bool found;
};

static inline void each_find(void *context, const struct config_setting *setting)
{
	struct wanted *wanted = context;
	if (strcmp(setting->key, wanted->key) != 0)
		return;
	wanted->found = true;
	snprintf(wanted->value, sizeof(wanted->value), "%s", setting->value);
	snprintf(wanted->origin, sizeof(wanted->origin), "%s", setting->origin);
}

static inline struct wanted shown(const struct fixture *fixture, const char *key)
{
	struct wanted wanted = { .key = key };
	config_each(fixture->config, each_find, &wanted);
	return wanted;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

#endif
