#include "cli/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 * 1024)

static enum fate read_all(int fd, size_t ceiling, struct buffer *out, struct error *error)
{
	size_t start = out->len;

	for (;;) {
		uint8_t *room = buffer_reserve(out, READ_BYTES);
		ssize_t count = room == NULL ? 0 : read(fd, room, READ_BYTES);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			(void)error_set_errno(error, FATE_FATAL, errno, "it could not be read");
			error->code = ERR_USAGE;
			return FATE_FATAL;
		}
		if (room == NULL || out->len - start + (size_t)count > ceiling)
			return error_set(error, FATE_REJECT, ERR_NO, "it has more than %zu bytes", ceiling);
		if (count == 0)
			return FATE_OK;
		out->len += (size_t)count;
	}
}

enum fate whole_read(const char *path, size_t ceiling, struct buffer *out, struct error *error)
{
	int fd = strcmp(path, "-") != 0 ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	enum fate fate;

	if (fd < 0) {
		(void)error_set_errno(error, FATE_FATAL, errno, "could not open %.160s", path);
		error->code = ERR_USAGE;
		return FATE_FATAL;
	}
	fate = read_all(fd, ceiling, out, error);
	if (fd != STDIN_FILENO)
		close(fd);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "%.100s", path);
}
