/* A new keyring file, safely on the disk before anything is sealed with it. */
#include "vault/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 1024

static void close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* "k1-20261130-89abcdef": a key of that day (UTC). */
/* The random part tells two keyrings of one day apart: what was sealed under one then says which key it
 * misses, instead of failing under the other. */
static void make_id(char ret_id[KEK_ID_MAX + 1])
{
	time_t now = (time_t)(clock_real_us() / 1000000);
	struct tm day;

	gmtime_r(&now, &day);
	size_t len = strftime(ret_id, KEK_ID_MAX + 1, "k1-%Y%m%d", &day);
	snprintf(ret_id + len, KEK_ID_MAX + 1 - len, "-%08" PRIx32, randombytes_random());
}

static size_t make_text(const char *id, char text[TEXT_MAX])
{
	uint8_t kek[KEY_LEN];
	char kek_text[KEK_TEXT_LEN + 1];

	crypto_kdf_keygen(kek);
	kek_format(kek, kek_text);
	int len = snprintf(text, TEXT_MAX,
	                   "# Keyring of Fermata. One key a line: id, state, key.\n"
	                   "# State: primary (seals and opens; exactly one), enabled (opens), disabled.\n"
	                   "# Without this file the checkpoints in the database cannot be opened by anyone:\n"
	                   "# keep a copy of it, and not beside the backups of the database.\n"
	                   "%s primary %s\n",
	                   id, kek_text);
	sodium_memzero(kek, sizeof(kek));
	sodium_memzero(kek_text, sizeof(kek_text));
	return (size_t)len;
}

/* Opens the directory that path is in. */
static int open_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
	char *parent = slash == NULL ? strdup(".") : strndup(path, len);

	if (parent == NULL)
		return -1;
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int saved = errno;
	free(parent);
	errno = saved;
	return fd;
}

static enum fate cannot_create(const char *path, int errnum, struct error *error)
{
	if (errnum == EEXIST)
		return error_set_native(error, FATE_REJECT, ERR_NO, "EEXIST",
		                        "keyring %s is there already, and is not overwritten: what was sealed with "
		                        "it could not be opened any more",
		                        path);
	if (errnum == ENOENT)
		return error_set_native(error, FATE_FATAL, ERR_USAGE, "ENOENT",
		                        "keyring %s cannot be made: its directory does not exist, make that first",
		                        path);
	return error_set_native(error, FATE_FATAL, ERR_USAGE, strerrorname_np(errnum),
	                        "keyring %s cannot be made: %s", path, strerrordesc_np(errnum));
}

static bool write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t written = write(fd, text, len);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		text += written;
		len -= (size_t)written;
	}
	return true;
}

/* The umask can only take rights away, from ourselves too: fchmod says what is meant. */
static bool make_durable(int fd, int parent, const char *text, size_t len)
{
	return fchmod(fd, 0600) == 0 && write_all(fd, text, len) && fsync(fd) == 0 && fsync(parent) == 0;
}

enum fate vault_keyring_generate(const char *path, char ret_id[KEK_ID_MAX + 1], struct error *error)
{
	char text[TEXT_MAX];
	char id[KEK_ID_MAX + 1];
	__attribute__((cleanup(close_fd))) int parent = open_parent(path);

	if (parent < 0)
		return cannot_create(path, errno, error);
	__attribute__((cleanup(close_fd))) int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cannot_create(path, errno, error);
	make_id(id);
	size_t len = make_text(id, text);
	bool durable = make_durable(fd, parent, text, len);
	int errnum = errno;
	sodium_memzero(text, sizeof(text));
	if (!durable) {
		unlink(path);
		return error_set_errno(error, FATE_FATAL, errnum, "keyring %s cannot be written", path);
	}
	memcpy(ret_id, id, sizeof(id));
	return FATE_OK;
}
