#include "http/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST_MAX 255
#define BACKLOG  128

struct spec {
	char host[HOST_MAX + 1];
	char port[6];
};

static bool is_port(const char *text)
{
	unsigned port = 0;
	if (*text == '\0' || strlen(text) > 5)
		return false;
	for (const char *c = text; *c != '\0'; c++) {
		if (*c < '0' || *c > '9')
			return false;
		port = port * 10 + (unsigned)(*c - '0');
	}
	return port <= UINT16_MAX;
}

static bool take_host(struct spec *spec, const char *host, size_t len)
{
	if (len == 0 || len > HOST_MAX)
		return false;
	memcpy(spec->host, host, len);
	spec->host[len] = '\0';
	return true;
}

/* Splits at the last colon. Colons in HOST are legal within brackets only. */
static bool split(const char *listen, struct spec *spec)
{
	const char *colon = strrchr(listen, ':');
	if (colon == NULL || !is_port(colon + 1))
		return false;
	memcpy(spec->port, colon + 1, strlen(colon + 1) + 1);
	size_t len = (size_t)(colon - listen);
	if (len > 2 && listen[0] == '[' && listen[len - 1] == ']')
		return take_host(spec, listen + 1, len - 2);
	return memchr(listen, ':', len) == NULL && take_host(spec, listen, len);
}

/* NULL, and *error says why; else the caller frees it. */
static struct addrinfo *resolve(const char *listen, struct error *error)
{
	struct spec spec;
	if (!split(listen, &spec)) {
		error_set(error, FATE_FATAL, ERR_USAGE,
		          "\"%s\" is no address to listen on: write HOST:PORT, an IPv6 address in brackets", listen);
		return NULL;
	}
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	struct addrinfo *info = NULL;
	int code = getaddrinfo(spec.host, spec.port, &hints, &info);
	if (code == 0)
		return info;
	error_set(error, FATE_FATAL, ERR_USAGE, "cannot resolve \"%s\" to listen on: %s", spec.host,
	          gai_strerror(code));
	return NULL;
}

static int bind_and_listen(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int on = 1;
	bool ok = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
	if (ok && info->ai_family == AF_INET6)
		ok = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0;
	if (ok && bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

enum fate address_listen(const char *listen, int *ret_fd, struct error *error)
{
	struct addrinfo *info = resolve(listen, error);
	if (info == NULL)
		return FATE_FATAL;
	*ret_fd = bind_and_listen(info);
	int saved = errno;
	freeaddrinfo(info);
	if (*ret_fd < 0)
		return error_set_errno(error, FATE_FATAL, saved, "cannot listen on %s", listen);
	return FATE_OK;
}

static struct sockaddr_storage own_address(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		address.ss_family = AF_UNSPEC;
	return address;
}

uint16_t address_port(int fd)
{
	struct sockaddr_storage address = own_address(fd);
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

bool address_is_loopback(int fd)
{
	struct sockaddr_storage address = own_address(fd);
	if (address.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&address)->sin6_addr);
	return ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}
