// links: http core
/* The listener against clients that do what they should not, over raw sockets on loopback. */
#include "http/http.h"

#include "core/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BODY_MAX 1000

static void echo(void *context, const struct http_request *request, struct http_response *response)
{
	(void)context;
	struct view signature;
	size_t count = http_request_header(request, "x-signature", &signature);
	buffer_printf(&response->body, "%s %s %zu:", request->method, request->path, count);
	buffer_append_view(&response->body, signature);
	buffer_append_byte(&response->body, ':');
	buffer_append_view(&response->body, request->body);
}

static void refuse_teapot(void *context, const struct http_request *request, struct http_response *response)
{
	(void)request;
	response->status = 503;
	response->content_type = "application/json";
	buffer_append_text(&response->body, context);
}

static void answer_too_much(void *context, const struct http_request *request, struct http_response *response)
{
	(void)context;
	(void)request;
	for (int i = 0; i < 5; i++) {
		uint8_t *space = buffer_reserve(&response->body, 1 << 20);
		if (space == NULL)
			return;
		memset(space, 'x', 1 << 20);
		response->body.len += 1 << 20;
	}
}

static const struct http_route ROUTES[] = {
	{ "GET", "/echo", echo },
	{ "POST", "/echo", echo },
	{ "GET", "/busy", refuse_teapot },
	{ "GET", "/large", answer_too_much },
};

static struct http *start_with(const struct http_settings *given)
{
	struct http_settings settings = *given;
	if (settings.listen == NULL)
		settings.listen = "127.0.0.1:0";
	settings.routes = ROUTES;
	settings.routes_len = sizeof(ROUTES) / sizeof(ROUTES[0]);
	settings.context = (void *)(uintptr_t) "{}";
	settings.body_max = BODY_MAX;
	struct http *http = NULL;
	struct error error;
	if (http_start(&http, &settings, &error) != FATE_OK)
		fail_msg("%s", error.message);
	return http;
}

static struct http *start(void)
{
	return start_with(&(struct http_settings){ 0 });
}

static int dial(const struct http *http)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(http_port(http)) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static bool send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		data += sent;
		len -= (size_t)sent;
	}
	return true;
}

/* Everything until the other side closes, as text; a reset counts as a close. */
static char *receive_all(int fd)
{
	size_t cap = (size_t)64 * 1024;
	size_t len = 0;
	char *text = malloc(cap);
	assert_non_null(text);
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		assert_int_equal(poll(&wait, 1, 20000), 1);
		ssize_t got = recv(fd, text + len, cap - len - 1, 0);
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	text[len] = '\0';
	return text;
}

static bool send_text(int fd, const char *text)
{
	return send_all(fd, text, strlen(text));
}

static char *ask(const struct http *http, const char *request)
{
	int fd = dial(http);
	assert_true(send_text(fd, request));
	char *answer = receive_all(fd);
	close(fd);
	return answer;
}

static void expect(const struct http *http, const char *request, const char *begin, const char *end)
{
	char *answer = ask(http, request);
	if (strncmp(answer, begin, strlen(begin)) != 0)
		fail_msg("asked %s: got %s, not %s", request, answer, begin);
	size_t len = strlen(answer);
	size_t end_len = strlen(end);
	if (len < end_len || strcmp(answer + len - end_len, end) != 0)
		fail_msg("asked %s: got %s, which does not end in %s", request, answer, end);
	free(answer);
}

static void test_get(void **state)
{
	(void)state;
	struct http *http = start();
	expect(http, "GET /echo?x=1 HTTP/1.1\r\nHost: x\r\nX-Signature: one\r\n\r\n", "HTTP/1.1 200 ",
	       "GET /echo 1:one:");
	expect(http, "GET /echo HTTP/1.0\r\n\r\n", "HTTP/1.", "GET /echo 0::");
	char *answer = ask(http, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_non_null(strstr(answer, "Connection: close\r\n"));
	assert_non_null(strstr(answer, "Content-Type: text/plain; charset=utf-8\r\n"));
	assert_non_null(strstr(answer, "Content-Length: 13\r\n"));
	free(answer);
	http_stop(http);
}

static void test_headers_are_counted(void **state)
{
	(void)state;
	struct http *http = start();
	expect(http, "GET /echo HTTP/1.1\r\nHost: x\r\nX-Signature: one\r\nx-signature: two\r\n\r\n",
	       "HTTP/1.1 200 ", "GET /echo 2:one:");
	http_stop(http);
}

static void test_head_has_no_body(void **state)
{
	(void)state;
	struct http *http = start();
	expect(http, "HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "\r\n\r\n");
	http_stop(http);
}

static void test_post(void **state)
{
	(void)state;
	struct http *http = start();
	expect(http, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 ",
	       "POST /echo 0::hello");
	expect(http, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 ",
	       "POST /echo 0::");
	/* What comes behind the body is not another request. */
	expect(http,
	       "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET /busy HTTP/1.1\r\nHost: "
	       "x\r\n\r\n",
	       "HTTP/1.1 200 ", "POST /echo 0::hello");
	http_stop(http);
}

static void test_handler_chooses_status_and_type(void **state)
{
	(void)state;
	struct http *http = start();
	char *answer = ask(http, "GET /busy HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_memory_equal(answer, "HTTP/1.1 503 ", 13);
	assert_non_null(strstr(answer, "Content-Type: application/json\r\n"));
	free(answer);
	expect(http, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 500 ", "500 Internal Server Error\n");
	http_stop(http);
}

static void test_unknown_paths_and_methods(void **state)
{
	(void)state;
	struct http *http = start();
	static const char *const UNKNOWN[] = { "/", "/echo/", "/echo%00", "/%65cho", "/ECHO", "/../echo" };
	for (size_t i = 0; i < sizeof(UNKNOWN) / sizeof(UNKNOWN[0]); i++) {
		char request[128];
		snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", UNKNOWN[i]);
		expect(http, request, "HTTP/1.1 404 ", "404 Not Found\n");
	}
	char *answer = ask(http, "DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_memory_equal(answer, "HTTP/1.1 405 ", 13);
	assert_non_null(strstr(answer, "Allow: GET, POST\r\n"));
	free(answer);
	expect(http, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "\n");
	http_stop(http);
}

/* What a proxy and we might read in two ways is read by neither. */
static void test_ambiguous_framing_is_refused(void **state)
{
	(void)state;
	struct http *http = start();
	static const struct {
		const char *headers;
		const char *status;
	} CASES[] = {
		{ "Content-Length: 5\r\nContent-Length: 5\r\n", "HTTP/1.1 400 " },
		{ "Content-Length: 5\r\ncontent-length: 6\r\n", "HTTP/1.1 400 " },
		{ "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1 400 " },
		{ "Transfer-Encoding: chunked\r\n", "HTTP/1.1 411 " },
		{ "Content-Length: +5\r\n", "HTTP/1.1 400 " },
		{ "Content-Length: 5, 5\r\n", "HTTP/1.1 400 " },
		{ "Content-Length: 0x5\r\n", "HTTP/1.1 400 " },
		{ "Host: y\r\nContent-Length: 5\r\n", "HTTP/1.1 400 " },
		{ "Content-Length: 5\r\nContent-Encoding: gzip\r\n", "HTTP/1.1 415 " },
		{ "Content-Length: 1001\r\n", "HTTP/1.1 413 " },
		{ "Content-Length: 999999999999999999\r\n", "HTTP/1.1 413 " },
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char request[256];
		snprintf(request, sizeof(request), "POST /echo HTTP/1.1\r\nHost: x\r\n%s\r\n", CASES[i].headers);
		expect(http, request, CASES[i].status, "");
	}
	http_stop(http);
}

static void test_body_at_the_cap(void **state)
{
	(void)state;
	struct http *http = start();
	char request[BODY_MAX + 128];
	int head = snprintf(request, sizeof(request),
	                    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BODY_MAX);
	memset(request + head, 'b', BODY_MAX);
	request[head + BODY_MAX] = '\0';
	expect(http, request, "HTTP/1.1 200 ", "bbbbbbbbbbbb");
	http_stop(http);
}

static void test_large_head_is_refused(void **state)
{
	(void)state;
	struct http *http = start();
	int fd = dial(http);
	char line[1024];
	memset(line, 'h', sizeof(line));
	memcpy(line, "X-H: ", 5);
	memcpy(line + sizeof(line) - 2, "\r\n", 2);
	bool sent = send_text(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n");
	for (int i = 0; i < 64 && sent; i++)
		sent = send_all(fd, line, sizeof(line));
	char *answer = receive_all(fd);
	assert_true(answer[0] == '\0' || strncmp(answer, "HTTP/1.1 4", 10) == 0);
	free(answer);
	close(fd);
	expect(http, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "GET /echo 0::");
	http_stop(http);
}

/* Waits up to ms for the other side to close, reading nothing of interest. */
static bool closes_within(int fd, int ms)
{
	int64_t end = clock_mono_ms() + ms;
	for (int64_t left = ms; left > 0; left = end - clock_mono_ms()) {
		char waste[256];
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		if (poll(&wait, 1, (int)left) == 1 && recv(fd, waste, sizeof(waste), MSG_DONTWAIT) <= 0 &&
		    errno != EAGAIN)
			return true;
	}
	return false;
}

/* One byte every 50 ms, until it is cut off; returns how long that took, in ms. */
static int64_t drip(const struct http *http, const char *prefix, char byte)
{
	int fd = dial(http);
	int64_t start_ms = clock_mono_ms();
	bool open = send_text(fd, prefix);
	while (open && clock_mono_ms() - start_ms < 10000)
		open = send_all(fd, &byte, 1) && !closes_within(fd, 50);
	assert_false(open);
	close(fd);
	return clock_mono_ms() - start_ms;
}

static void test_slow_clients_are_cut_off(void **state)
{
	(void)state;
	struct http *http = start_with(&(struct http_settings){ .headers_ms = 400, .connection_ms = 1200 });
	int64_t took = drip(http, "GET /echo HTTP/1.1\r\nHost: x\r\nX-Slow: ", 's');
	assert_in_range(took, 350, 1100);
	took = drip(http, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", 'b');
	assert_in_range(took, 1100, 5000);
	http_stop(http);
}

static void test_silence_is_cut_off(void **state)
{
	(void)state;
	struct http *http = start_with(&(struct http_settings){ .headers_ms = 300, .connection_ms = 900 });
	int fd = dial(http);
	assert_true(closes_within(fd, 5000));
	close(fd);
	http_stop(http);
}

/* More than it takes at once: the rest waits, and is served when the idle ones have been cut off. */
static void test_many_connections(void **state)
{
	(void)state;
	enum { MANY = 200 };
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 2 * MANY + 64)
		skip();
	struct http *http =
		start_with(&(struct http_settings){ .headers_ms = 500, .connection_ms = 1500, .connections = 50 });
	int fds[MANY];
	for (int i = 0; i < MANY; i++)
		fds[i] = dial(http);
	expect(http, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "GET /echo 0::");
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	for (int i = 0; i < MANY; i++)
		expect(http, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "GET /echo 0::");
	http_stop(http);
}

static void test_threads_and_stop_with_open_connections(void **state)
{
	(void)state;
	struct http *http = start_with(&(struct http_settings){ .threads = 3, .connections = 32 });
	int idle = dial(http);
	int begun = dial(http);
	assert_true(send_text(begun, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"));
	for (int i = 0; i < 50; i++)
		expect(http, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "GET /echo 0::");
	int64_t before = clock_mono_ms();
	http_stop(http);
	assert_in_range(clock_mono_ms() - before, 0, 2000);
	close(idle);
	close(begun);
	http_stop(NULL);
}

static void test_addresses(void **state)
{
	(void)state;
	static const char *const WRONG[] = { "",
		                                 "9464",
		                                 ":9464",
		                                 "127.0.0.1",
		                                 "127.0.0.1:",
		                                 "127.0.0.1:x",
		                                 "127.0.0.1:65536",
		                                 "127.0.0.1:-1",
		                                 "::1:0",
		                                 "[::1]",
		                                 "[]:0",
		                                 "127.0.0.1:123456",
		                                 "a b:0",
		                                 "999.1.1.1.1:0" };
	for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
		struct http *http = NULL;
		struct error error;
		struct http_settings settings = { .listen = WRONG[i] };
		assert_int_equal(http_start(&http, &settings, &error), FATE_FATAL);
		assert_int_equal(error.code, ERR_USAGE);
		assert_non_null(strstr(error.message, "listen on"));
	}
	struct http *http = start_with(&(struct http_settings){ .listen = "localhost:0" });
	assert_null(http_warning(http));
	http_stop(http);
}

static void test_a_port_that_is_taken(void **state)
{
	(void)state;
	struct http *first = start();
	char listen[32];
	snprintf(listen, sizeof(listen), "127.0.0.1:%u", http_port(first));
	struct http *second = NULL;
	struct error error;
	struct http_settings settings = { .listen = listen };
	assert_int_equal(http_start(&second, &settings, &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_SYSTEM);
	assert_string_equal(error.native, "EADDRINUSE");
	assert_non_null(strstr(error.message, listen));
	http_stop(first);
}

static void test_ipv6(void **state)
{
	(void)state;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool have = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	if (!have)
		skip();
	struct http *http = start_with(&(struct http_settings){ .listen = "[::1]:0" });
	assert_int_not_equal(http_port(http), 0);
	assert_null(http_warning(http));
	http_stop(http);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_headers_are_counted),
		cmocka_unit_test(test_head_has_no_body),
		cmocka_unit_test(test_post),
		cmocka_unit_test(test_handler_chooses_status_and_type),
		cmocka_unit_test(test_unknown_paths_and_methods),
		cmocka_unit_test(test_ambiguous_framing_is_refused),
		cmocka_unit_test(test_body_at_the_cap),
		cmocka_unit_test(test_large_head_is_refused),
		cmocka_unit_test(test_slow_clients_are_cut_off),
		cmocka_unit_test(test_silence_is_cut_off),
		cmocka_unit_test(test_many_connections),
		cmocka_unit_test(test_threads_and_stop_with_open_connections),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_a_port_that_is_taken),
		cmocka_unit_test(test_ipv6),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
