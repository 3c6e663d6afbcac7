/* The folder of schemas: which files there are, and what is in them. */
#include "schemas/state_inner.h"

#include "schemas/fingerprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096
#define PATH_SIZE 4096
#define SEEN_MAX  ((size_t)8 * 1024 * 1024)

struct folder {
	struct states *states;
	bool just_look;
	struct buffer seen; /* a line for each file */
	size_t files;
	struct error *error;
};

static enum fate FM_PRINTF(2, 3) refuse(struct folder *folder, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(folder->error, FATE_FATAL, ERR_USAGE, "schemas.path: %s", text);
}

static enum fate refuse_errno(struct folder *folder, const char *path)
{
	(void)error_set_errno(folder->error, FATE_FATAL, errno, "schemas.path: could not read %.150s", path);
	folder->error->code = ERR_USAGE;
	return FATE_FATAL;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The name without ".avsc"; false when it does not end so. */
static bool strip(const char *file, char *name, size_t cap)
{
	size_t len = strlen(file);

	if (len <= 5 || len - 5 >= cap || strcmp(file + len - 5, ".avsc") != 0)
		return false;
	memcpy(name, file, len - 5);
	name[len - 5] = '\0';
	return true;
}

static enum fate read_fd(struct folder *folder, int fd, const char *path, struct buffer *text)
{
	for (;;) {
		uint8_t *room = buffer_reserve(text, 65536);
		ssize_t count = room ? read(fd, room, 65536) : 0;
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return refuse_errno(folder, path);
		text->len += (size_t)count;
		if (!room || text->len > SCHEMA_TEXT_MAX)
			return refuse(folder, "%.150s has more than %zu bytes", path, SCHEMA_TEXT_MAX);
		if (count == 0)
			return FATE_OK;
	}
}

static enum fate take_file(struct folder *folder, const char *name, bool reader, const char *path)
{
	struct buffer text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refuse_errno(folder, path);
	buffer_init(&text, SCHEMA_TEXT_MAX + 2 * 65536);
	enum fate fate = read_fd(folder, fd, path, &text);
	close(fd);
	if (fate == FATE_OK)
		fate = states_add(folder->states, name, reader, buffer_view(&text), path, folder->error);
	buffer_done(&text);
	return fate;
}

static enum fate see_file(struct folder *folder, const char *name, bool reader, const char *path,
                          const struct stat *stat)
{
	if (++folder->files > FILES_MAX)
		return refuse(folder, "there are more than %d files in it", FILES_MAX);
	buffer_printf(&folder->seen, "%s %lld %lld.%09ld\n", path, (long long)stat->st_size,
	              (long long)stat->st_mtim.tv_sec, stat->st_mtim.tv_nsec);
	return folder->just_look ? FATE_OK : take_file(folder, name, reader, path);
}

static enum fate read_folder(struct folder *folder, const char *path, const char *name);

/* above: in the folder itself, where files are readers and folders hold what was written. */
static enum fate read_entry(struct folder *folder, const char *path, const char *file, const char *name)
{
	char full[PATH_SIZE], stripped[PATH_SIZE];
	struct stat stat;

	if (snprintf(full, sizeof(full), "%s/%s", path, file) >= (int)sizeof(full))
		return refuse(folder, "a path in it is too long");
	if (fstatat(AT_FDCWD, full, &stat, 0) != 0)
		return refuse_errno(folder, full);
	if (S_ISDIR(stat.st_mode))
		return name ? FATE_OK : read_folder(folder, full, file);
	if (!S_ISREG(stat.st_mode) || !strip(file, stripped, sizeof(stripped)))
		return FATE_OK;
	return see_file(folder, name ? name : stripped, !name, full, &stat);
}

static enum fate read_folder(struct folder *folder, const char *path, const char *name)
{
	struct dirent **entries = NULL;
	int len = scandir(path, &entries, not_hidden, alphasort);
	enum fate fate = len < 0 ? refuse_errno(folder, path) : FATE_OK;

	for (int i = 0; i < len; i++) {
		if (fate == FATE_OK)
			fate = read_entry(folder, path, entries[i]->d_name, name);
		free(entries[i]);
	}
	free(entries);
	return fate;
}

enum fate states_read(struct states *states, bool just_look, uint8_t ret_seen[32], struct error *error)
{
	struct folder folder = { .states = states, .just_look = just_look, .error = error };

	buffer_init(&folder.seen, SEEN_MAX);
	enum fate fate = read_folder(&folder, states->path, NULL);
	if (fate == FATE_OK && buffer_failed(&folder.seen))
		fate = error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to look at schemas.path");
	fingerprint_sha256(buffer_view(&folder.seen), ret_seen);
	buffer_done(&folder.seen);
	return fate;
}
