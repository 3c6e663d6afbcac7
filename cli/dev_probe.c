#include "cli/dev_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char request[] = "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
static const char wanted[] = "HTTP/1.1 200";

static bool ask(int fd, int port)
{
	struct timeval second = { .tv_sec = 1 };
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	char answer[sizeof(wanted)];

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)) != 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(request) - 1)
		return false;
	return recv(fd, answer, sizeof(wanted) - 1, MSG_WAITALL) == (ssize_t)sizeof(wanted) - 1 &&
	       memcmp(answer, wanted, sizeof(wanted) - 1) == 0;
}

bool probe_ready(int port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	bool ready = ask(fd, port);
	close(fd);
	return ready;
}
