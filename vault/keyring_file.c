/* A keyring in a file: may nobody else read it? */
#include "vault/keyring.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* POSIX access lists as the kernel shows them (linux/posix_acl_xattr.h, linux/posix_acl.h): a 4-byte
 * version, then entries of tag, permission and id, all little-endian. */
#define ACL_NAME    "system.posix_acl_access"
#define ACL_VERSION 2

enum acl_tag { ACL_USER_OBJ = 0x01, ACL_USER = 0x02, ACL_MASK = 0x10 };

struct acl_entry {
	uint16_t tag_le;
	uint16_t permission_le;
	uint32_t id_le;
};

struct acl {
	uint32_t version_le;
	struct acl_entry entries[32];
};

static void close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/*
 * With an access list the group bits of the mode are its mask. systemd hands a credential to the unit's
 * user by naming that user in one (the mode then says 0440): that is as private as 0400.
 */
static bool only_we_are_named(int fd)
{
	struct acl acl;
	ssize_t size = fgetxattr(fd, ACL_NAME, &acl, sizeof(acl));
	size_t head = sizeof(acl.version_le);

	if (size < (ssize_t)head || le32toh(acl.version_le) != ACL_VERSION)
		return false;
	for (size_t i = 0; i < ((size_t)size - head) / sizeof(acl.entries[0]); i++) {
		const struct acl_entry *entry = &acl.entries[i];
		uint16_t tag = le16toh(entry->tag_le);
		bool ours =
			tag == ACL_USER_OBJ || tag == ACL_MASK || (tag == ACL_USER && le32toh(entry->id_le) == geteuid());
		if (!ours && entry->permission_le != 0)
			return false;
	}
	return true;
}

static enum fate check_private(int fd, const char *path, struct error *error)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "keyring %s cannot be looked at", path);
	if (!S_ISREG(status.st_mode))
		return error_set(error, FATE_FATAL, ERR_USAGE, "keyring %s is not a regular file", path);
	unsigned others = status.st_mode & 077u;
	if (others == 0 || ((others & 07u) == 0 && only_we_are_named(fd)))
		return FATE_OK;
	return error_set(error, FATE_FATAL, ERR_USAGE,
	                 "keyring %s can be read or changed by others than its owner (mode %04o): chmod 600 it "
	                 "(a Kubernetes secret: defaultMode 0400 and no fsGroup)",
	                 path, (unsigned)(status.st_mode & 07777u));
}

static enum fate cannot_open(const char *path, int errnum, struct error *error)
{
	if (errnum == ENOENT)
		return error_set_native(error, FATE_FATAL, ERR_USAGE, "ENOENT",
		                        "keyring %s is not there: fermata keys generate writes a new one", path);
	return error_set_native(error, FATE_FATAL, ERR_USAGE, strerrorname_np(errnum),
	                        "keyring %s cannot be opened: %s", path, strerrordesc_np(errnum));
}

/* One byte more than fits is asked for, so that a file that is too large is noticed. */
static enum fate read_all(int fd, const char *path, uint8_t *text, size_t cap, size_t *ret_len,
                          struct error *error)
{
	size_t len = 0;

	for (;;) {
		uint8_t surplus;
		ssize_t got = read(fd, len < cap ? text + len : &surplus, len < cap ? cap - len : 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, FATE_FATAL, errno, "keyring %s cannot be read", path);
		if (got == 0)
			break;
		if (len == cap)
			return error_set(error, FATE_FATAL, ERR_USAGE, "keyring %s has more than %zu bytes", path, cap);
		len += (size_t)got;
	}
	*ret_len = len;
	return FATE_OK;
}

/* Links are followed (a Kubernetes secret is one); what is judged is the file that was opened. Without
 * O_NONBLOCK a FIFO would wait for its writer for ever. */
enum fate keyring_read_file(const char *path, uint8_t *text, size_t cap, size_t *ret_len, struct error *error)
{
	__attribute__((cleanup(close_fd))) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return cannot_open(path, errno, error);
	enum fate fate = check_private(fd, path, error);
	if (fate != FATE_OK)
		return fate;
	return read_all(fd, path, text, cap, ret_len, error);
}
