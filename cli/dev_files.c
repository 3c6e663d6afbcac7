#include "cli/dev_files.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_BYTES 65536
#define TAIL_LINE  400
#define PORT_LOW   20000 /* the kernel hands out ports from 32768 up */
#define PORT_SPAN  12000
#define PORT_TRIES 200

/* ---- directories and files ----------------------------------------------------------------- */

/* May anybody pass through path and every directory above it? */
static bool is_open_to_others(const char *path)
{
	char part[DEV_PATH_MAX];
	struct stat info;

	for (size_t i = 1;; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (stat(part, &info) != 0 || (info.st_mode & S_IXOTH) == 0)
			return false;
		if (path[i] == '\0')
			return true;
	}
}

/* The directory below which temporary ones are made, free of symbolic links. */
static void temporary(bool open_to_others, char ret_path[DEV_PATH_MAX])
{
	const char *wanted = getenv("TMPDIR");
	char *real = wanted != NULL && wanted[0] == '/' ? realpath(wanted, NULL) : NULL;
	bool good =
		real != NULL && strlen(real) < DEV_ROOT_MAX - 32 && (!open_to_others || is_open_to_others(real));

	snprintf(ret_path, DEV_PATH_MAX, "%s", good ? real : "/tmp");
	free(real);
}

enum fate files_make_root(const char *name, bool open_to_others, char ret_root[DEV_ROOT_MAX],
                          struct error *error)
{
	char above[DEV_PATH_MAX];
	char path[DEV_PATH_MAX + 64];

	ret_root[0] = '\0';
	temporary(open_to_others, above);
	snprintf(path, sizeof(path), "%s/%s.XXXXXX", above, name);
	assert(strlen(path) < DEV_ROOT_MAX);
	if (mkdtemp(path) == NULL || (open_to_others && chmod(path, 0711) != 0))
		return error_set_errno(error, FATE_FATAL, errno, "cannot make a temporary directory in %s", above);
	memcpy(ret_root, path, strlen(path) + 1);
	return FATE_OK;
}

void files_join(char ret_path[DEV_PATH_MAX], const char *dir, const char *name)
{
	int len = snprintf(ret_path, DEV_PATH_MAX, "%s/%s", dir, name);
	assert(len > 0 && len < DEV_PATH_MAX);
}

enum fate files_make_directory(const char *path, mode_t mode, struct error *error)
{
	if (mkdir(path, mode) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot make directory %s", path);
	return FATE_OK;
}

static bool write_all(int fd, struct view content)
{
	while (content.len > 0) {
		ssize_t put = write(fd, content.data, content.len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return false;
		content.data += put;
		content.len -= (size_t)put;
	}
	return true;
}

enum fate files_write(const char *path, mode_t mode, struct view content, struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot write %s", path);
	bool good = write_all(fd, content);
	int errnum = errno;
	if (close(fd) != 0 && good) {
		good = false;
		errnum = errno;
	}
	return good ? FATE_OK : error_set_errno(error, FATE_FATAL, errnum, "cannot write %s", path);
}

static bool is_directory(const char *path)
{
	struct stat info;
	return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool walk_entries(DIR *directory, const char *path, files_visit *visit, void *context)
{
	const struct dirent *entry;

	while ((entry = readdir(directory)) != NULL) {
		char below[4096];
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int len = snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (len < 0 || (size_t)len >= sizeof(below) || !files_walk(below, visit, context))
			return false;
	}
	return true;
}

bool files_walk(const char *path, files_visit *visit, void *context)
{
	if (!is_directory(path))
		return visit(context, path, false);
	DIR *directory = opendir(path);
	if (directory == NULL)
		return errno == ENOENT;
	bool good = walk_entries(directory, path, visit, context);
	closedir(directory);
	return good && visit(context, path, true);
}

static bool remove_one(void *context, const char *path, bool directory)
{
	bool *all = context;

	if ((directory ? rmdir(path) : unlink(path)) != 0 && errno != ENOENT)
		*all = false;
	return true;
}

bool files_remove(const char *path)
{
	bool all = true;
	return files_walk(path, remove_one, &all) && all;
}

/* ---- the end of a log ---------------------------------------------------------------------- */

/* Up to the last TAIL_BYTES, and a NUL. Returns how many. */
static size_t read_end(const char *path, char *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got;

	bytes[0] = '\0';
	if (fd < 0)
		return 0;
	off_t size = lseek(fd, 0, SEEK_END);
	(void)lseek(fd, size > TAIL_BYTES ? size - TAIL_BYTES : 0, SEEK_SET);
	while (len < TAIL_BYTES && (got = read(fd, bytes + len, TAIL_BYTES - len)) > 0)
		len += (size_t)got;
	close(fd);
	bytes[len] = '\0';
	return len;
}

/* Where the last count lines begin. */
static size_t start_of_lines(const char *bytes, size_t len, size_t count)
{
	size_t at = len > 0 && bytes[len - 1] == '\n' ? len - 1 : len;

	for (; at > 0; at--) {
		if (bytes[at - 1] == '\n' && --count == 0)
			break;
	}
	return at;
}

void files_tail(const char *path, size_t count, void (*take)(void *context, const char *line), void *context)
{
	char *bytes = malloc(TAIL_BYTES + 1);

	if (bytes == NULL)
		return;
	size_t len = read_end(path, bytes);
	char *rest = bytes + start_of_lines(bytes, len, count);
	while (*rest != '\0') {
		char *line = strsep(&rest, "\n");
		if (strlen(line) > TAIL_LINE)
			line[TAIL_LINE] = '\0';
		take(context, line);
		if (rest == NULL)
			break;
	}
	free(bytes);
}

/* ---- programs ------------------------------------------------------------------------------ */

static bool is_program(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool files_find_program(const char *name, char ret_path[DEV_PATH_MAX])
{
	const char *path = getenv("PATH");

	if (path == NULL)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*path != '\0') {
		size_t len = strcspn(path, ":");
		int got = snprintf(ret_path, DEV_PATH_MAX, "%.*s/%s", (int)len, path, name);
		if (len > 0 && path[0] == '/' && got > 0 && got < DEV_PATH_MAX && is_program(ret_path))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

enum fate files_find_own(const char *name, char ret_path[DEV_PATH_MAX], struct error *error)
{
	char own[DEV_PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (len <= 0 || len >= (ssize_t)sizeof(own) - 1)
		return error_set_errno(error, FATE_FATAL, errno,
		                       "cannot tell where this program lies (/proc/self/exe)");
	own[len] = '\0';
	*strrchr(own, '/') = '\0';
	int got = snprintf(ret_path, DEV_PATH_MAX, "%s/%s", own, name);
	if (got >= DEV_PATH_MAX || !is_program(ret_path))
		return error_set(error, FATE_FATAL, ERR_USAGE, "there is no program %s in %s: build all of Fermata",
		                 name, own);
	return FATE_OK;
}

/* ---- ports and secrets --------------------------------------------------------------------- */

static bool is_free(int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool good = bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return good;
}

enum fate files_free_port(int *ret_port, struct error *error)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		uint32_t random;
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return error_set_errno(error, FATE_FATAL, errno, "the kernel gives no random bytes");
		*ret_port = PORT_LOW + (int)(random % PORT_SPAN);
		if (is_free(*ret_port))
			return FATE_OK;
	}
	return error_set(error, FATE_RETRY, ERR_SYSTEM, "found no free port between %d and %d", PORT_LOW,
	                 PORT_LOW + PORT_SPAN - 1);
}

enum fate files_random_hex(char *ret_text, size_t len, struct error *error)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		uint8_t random;
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return error_set_errno(error, FATE_FATAL, errno, "the kernel gives no random bytes");
		ret_text[i] = digits[random % 16];
	}
	ret_text[len] = '\0';
	return FATE_OK;
}
