/* test_schemas_folder.h - a folder of schemas for the tests of the catalog that write into one. */
#ifndef FERMATA_TESTS_UNIT_TEST_SCHEMAS_FOLDER_H
#define FERMATA_TESTS_UNIT_TEST_SCHEMAS_FOLDER_H

#include "test_schemas_catalog.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static inline void path_of(const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", folder, name);
}

static inline void put(const char *name, const char *text)
{
	char path[256];

	path_of(name, path);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

static inline void gone(const char *name)
{
	char path[256];

	path_of(name, path);
	assert_int_equal(remove(path), 0);
}

static inline void make_folder(const char *name)
{
	char path[256];

	path_of(name, path);
	assert_int_equal(mkdir(path, 0700), 0);
}

static inline bool changed(struct catalog *catalog)
{
	struct error error = { 0 };
	bool ret;

	must(catalog_folder(catalog, &ret, &error), &error);
	return ret;
}

/* The set-up of a program's tests, and its end: every test takes away what it has put there. */
static inline int start_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fermata-catalog.XXXXXX"); /* for mkdtemp */
	arena = arena_new((size_t)64 << 20);
	assert_non_null(arena);
	return arena && mkdtemp(folder) ? 0 : -1;
}

static inline int stop_folder(void **state)
{
	(void)state;
	arena_free(arena);
	return rmdir(folder);
}

#endif
