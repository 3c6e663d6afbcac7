#include "cli/demo_search.h"

#include "cli/dev_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void search_add(struct search *search, struct view text)
{
	if (text.len > 0 && search->len < NEEDLES_MAX)
		search->needles[search->len++] = (struct needle){ .text = text };
}

/* The length of the first words of a text and the blanks between them; 0 when it has fewer. */
static size_t run_length(struct view text, size_t words)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == ' ' && --words == 0)
			return i;
	}
	return words == 1 ? text.len : 0;
}

void search_add_runs(struct search *search, struct view text, size_t words)
{
	while (text.len > 0) {
		size_t run = run_length(text, words);
		if (run == 0)
			return;
		search_add(search, (struct view){ text.data, run });
		const uint8_t *blank = memchr(text.data, ' ', text.len);
		if (blank == NULL)
			return;
		text.len -= (size_t)(blank + 1 - text.data);
		text.data = blank + 1;
	}
}

static void look_into(struct search *search, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < search->len; i++) {
		struct needle *needle = &search->needles[i];
		const uint8_t *at = bytes;
		while ((at = memmem(at, len - (size_t)(at - bytes), needle->text.data, needle->text.len)) != NULL) {
			needle->found++;
			at++;
		}
	}
	search->files++;
	search->bytes += len;
}

/* Reads, and does not map: a file that is cut short meanwhile must not be the end of us. */
static bool read_all(int fd, uint8_t *bytes, size_t *len)
{
	size_t got = 0;

	while (got < *len) {
		ssize_t part = pread(fd, bytes + got, *len - got, (off_t)got);
		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return false;
		if (part == 0)
			break;
		got += (size_t)part;
	}
	*len = got;
	return true;
}

static bool look_at_file(struct search *search, int fd)
{
	struct stat info;

	if (fstat(fd, &info) != 0)
		return false;
	if (!S_ISREG(info.st_mode) || info.st_size == 0)
		return true;
	size_t len = (size_t)info.st_size;
	uint8_t *bytes = malloc(len);
	bool good = bytes != NULL && read_all(fd, bytes, &len);
	if (good)
		look_into(search, bytes, len);
	free(bytes);
	return good;
}

static bool visit(void *context, const char *path, bool is_directory)
{
	if (is_directory)
		return true;
	/* A socket lies among them, which cannot be opened and holds nothing. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT || errno == ENXIO;
	bool good = look_at_file(context, fd);
	close(fd);
	return good;
}

enum fate search_run(struct search *search, const char *directory, struct error *error)
{
	if (!files_walk(directory, visit, search))
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "cannot read all files in %s", directory);
	return FATE_OK;
}
