/*
 * seeds FOLDER... - runs a fuzz target over every file of the folders, and over each of them cut short and
 * with bytes turned, without libFuzzer: so that gcc builds the targets too, and every run of the tests
 * tries them.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX    65536
#define STEPS       400 /* cuts and turns of one file, spread over its length */
#define PATH_LENGTH 4096

static uint8_t file[FILE_MAX];

static void run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len + (len == 0));

	if (!copy)
		abort();
	memcpy(copy, data, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void run_file(const char *path)
{
	FILE *stream = fopen(path, "rb");
	if (!stream)
		return;
	size_t len = fread(file, 1, sizeof(file), stream);
	fclose(stream);
	run(file, len);
	size_t stride = len / STEPS + 1;
	for (size_t i = 0; i < len; i += stride) {
		run(file, i);
		file[i] ^= (uint8_t)(1u << i % 8);
		run(file, len);
		file[i] ^= (uint8_t)(1u << i % 8);
	}
}

int main(int argc, char **argv)
{
	char path[PATH_LENGTH];

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		if (!folder)
			return 1;
		for (struct dirent *entry; (entry = readdir(folder));) {
			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			run_file(path);
		}
		closedir(folder);
	}
	return 0;
}
