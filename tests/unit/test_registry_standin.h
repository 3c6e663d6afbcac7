/*
 * A server that stands for a registry, and for all that may answer in its place: one thread, one connection
 * at a time (a new one ends the one before it). What it answers is a table of rules that the test may
 * change between questions; what it was asked last is kept.
 */
#ifndef FERMATA_TESTS_UNIT_TEST_REGISTRY_STANDIN_H
#define FERMATA_TESTS_UNIT_TEST_REGISTRY_STANDIN_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define STANDIN_REQUEST_MAX ((size_t)8 * 1024 * 1024)
#define STANDIN_TRICKLE_MS  20

enum manner {
	PLAIN,   /* keeps the connection */
	LEAVE,   /* answers, and closes without having said so */
	SILENT,  /* takes the question and says nothing */
	TRICKLE, /* a byte every STANDIN_TRICKLE_MS, for ever: first the answer, then blanks */
	RESET,   /* closes with a reset before it answers */
	CUT,     /* says half of what it announced, and closes */
	ENDLESS, /* the body again and again, announced by nothing */
	CHATTY,  /* headers without an end */
	NOISE,   /* the body alone, which is no HTTP */
};

struct rule {
	const char *request; /* what the request line begins with; NULL: anything */
	const char *status;  /* "200 OK", with more header lines behind it if wanted */
	const char *body;    /* NULL: none */
	enum manner manner;
};

/* Copies, kept to the end: the thread may still be answering by the rules before. */
struct rules {
	struct rules *before;
	size_t len;
	struct rule rule[];
};

struct standin {
	int listener, stop;
	uint16_t port;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	struct rules *rules;
	char *last; /* the last request, whole, with a NUL */
	size_t requests, connections;
};

static inline bool standin_write(int fd, const char *data, size_t len)
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

/* False: the client has gone, or the test is over. */
static inline bool standin_wait(const struct standin *standin, int fd, int ms)
{
	struct pollfd waits[] = { { .fd = standin->stop, .events = POLLIN }, { .fd = fd, .events = POLLRDHUP } };

	return poll(waits, 2, ms) == 0;
}

static inline void standin_trickle(const struct standin *standin, int fd, const char *text)
{
	while (standin_wait(standin, fd, STANDIN_TRICKLE_MS)) {
		if (!standin_write(fd, *text == '\0' ? " " : text, 1))
			return;
		text += *text != '\0';
	}
}

static inline void standin_repeat(int fd, const char *head, const char *text)
{
	bool more = standin_write(fd, head, strlen(head));

	while (more)
		more = standin_write(fd, text, strlen(text));
}

/* Answers one question. Returns whether the connection goes on. */
static inline bool standin_answer(const struct standin *standin, int fd, const struct rule *rule)
{
	const char *body = rule->body == NULL ? "" : rule->body;
	size_t len = strlen(body);
	char head[1024];

	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", rule->status, len);
	switch (rule->manner) {
	case PLAIN:
	case LEAVE:
		return standin_write(fd, head, strlen(head)) && standin_write(fd, body, len) && rule->manner == PLAIN;
	case SILENT:
		(void)standin_wait(standin, fd, -1);
		return false;
	case TRICKLE:
		snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n\r\n%s", rule->status, body);
		standin_trickle(standin, fd, head);
		return false;
	case RESET:
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
		return false;
	case CUT:
		(void)(standin_write(fd, head, strlen(head)) && standin_write(fd, body, len / 2));
		return false;
	case ENDLESS:
		snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n\r\n", rule->status);
		standin_repeat(fd, head, body);
		return false;
	case CHATTY:
		snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n", rule->status);
		standin_repeat(fd, head, "X-Said: and another thing, and another thing, and another thing\r\n");
		return false;
	case NOISE:
		break;
	}
	(void)standin_write(fd, body, len);
	return false;
}

static inline const struct rule *standin_rule(struct standin *standin)
{
	static const struct rule nothing = { NULL, "404 Not Found", "<html>no such page</html>", PLAIN };

	for (size_t i = 0; standin->rules != NULL && i < standin->rules->len; i++) {
		const struct rule *rule = &standin->rules->rule[i];
		if (rule->request == NULL || strncmp(standin->last, rule->request, strlen(rule->request)) == 0)
			return rule;
	}
	return &nothing;
}

/* One whole request into text; false when the client goes first. */
static inline bool standin_read(const struct standin *standin, int fd, char *text)
{
	size_t len = 0, whole = 0;

	for (;;) {
		struct pollfd waits[] = { { .fd = standin->stop, .events = POLLIN },
			                      { .fd = standin->listener, .events = POLLIN },
			                      { .fd = fd, .events = POLLIN } };
		if (poll(waits, 3, -1) < 0 || waits[0].revents != 0 || waits[2].revents == 0)
			return false;
		ssize_t got = recv(fd, text + len, STANDIN_REQUEST_MAX - len - 1, 0);
		if (got <= 0)
			return false;
		len += (size_t)got;
		text[len] = '\0';
		const char *end = whole == 0 ? strstr(text, "\r\n\r\n") : NULL;
		if (end != NULL) {
			const char *announced = strstr(text, "Content-Length: ");
			whole = (size_t)(end + 4 - text);
			if (announced != NULL && announced < end)
				whole += strtoul(announced + 16, NULL, 10);
		}
		if (whole > 0 && len >= whole)
			return true;
	}
}

static inline void standin_serve(struct standin *standin, int fd, char *text)
{
	bool more = true;

	while (more && standin_read(standin, fd, text)) {
		pthread_mutex_lock(&standin->lock);
		standin->requests++;
		free(standin->last);
		standin->last = strdup(text);
		const struct rule *rule = standin_rule(standin);
		pthread_mutex_unlock(&standin->lock);
		more = standin_answer(standin, fd, rule);
	}
	close(fd);
}

static inline void *standin_run(void *context)
{
	struct standin *standin = context;
	char *text = malloc(STANDIN_REQUEST_MAX);
	bool more = text != NULL;

	while (more) {
		struct pollfd waits[] = { { .fd = standin->stop, .events = POLLIN },
			                      { .fd = standin->listener, .events = POLLIN } };
		more = poll(waits, 2, -1) > 0 && waits[0].revents == 0;
		int fd = more ? accept(standin->listener, NULL, NULL) : -1;
		if (fd < 0)
			continue;
		pthread_mutex_lock(&standin->lock);
		standin->connections++;
		pthread_mutex_unlock(&standin->lock);
		standin_serve(standin, fd, text);
	}
	free(text);
	return NULL;
}

/* port 0: any. */
static inline void standin_listen(struct standin *standin, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	socklen_t len = sizeof(address);
	int one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	standin->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(standin->listener >= 0);
	(void)setsockopt(standin->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(standin->listener, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(standin->listener, 16), 0);
	assert_int_equal(getsockname(standin->listener, (struct sockaddr *)&address, &len), 0);
	standin->port = ntohs(address.sin_port);
	standin->stop = eventfd(0, EFD_CLOEXEC);
	assert_true(standin->stop >= 0);
	assert_int_equal(pthread_create(&standin->thread, NULL, standin_run, standin), 0);
}

static inline struct standin *standin_start(void)
{
	struct standin *standin = calloc(1, sizeof(*standin));

	assert_non_null(standin);
	pthread_mutex_init(&standin->lock, NULL);
	standin_listen(standin, 0);
	return standin;
}

/* An outage: nobody listens on the port any more. */
static inline void standin_go(struct standin *standin)
{
	uint64_t one = 1;

	assert_int_equal(write(standin->stop, &one, sizeof(one)), sizeof(one));
	pthread_join(standin->thread, NULL);
	close(standin->listener);
	close(standin->stop);
}

static inline void standin_stop(struct standin *standin)
{
	standin_go(standin);
	while (standin->rules != NULL) {
		struct rules *rules = standin->rules;
		standin->rules = rules->before;
		for (size_t i = 0; i < rules->len; i++) {
			free((char *)(uintptr_t)rules->rule[i].request);
			free((char *)(uintptr_t)rules->rule[i].status);
			free((char *)(uintptr_t)rules->rule[i].body);
		}
		free(rules);
	}
	pthread_mutex_destroy(&standin->lock);
	free(standin->last);
	free(standin);
}

static inline char *standin_copy(const char *text)
{
	return text == NULL ? NULL : strdup(text);
}

static inline void standin_rules(struct standin *standin, const struct rule *rules, size_t len)
{
	struct rules *copy = calloc(1, sizeof(*copy) + len * sizeof(*rules));

	assert_non_null(copy);
	copy->len = len;
	for (size_t i = 0; i < len; i++) {
		copy->rule[i].request = standin_copy(rules[i].request);
		copy->rule[i].status = standin_copy(rules[i].status);
		copy->rule[i].body = standin_copy(rules[i].body);
		copy->rule[i].manner = rules[i].manner;
	}
	pthread_mutex_lock(&standin->lock);
	copy->before = standin->rules;
	standin->rules = copy;
	pthread_mutex_unlock(&standin->lock);
}

#define STANDIN_RULES(standin, ...)                                                                          \
	standin_rules(standin, (const struct rule[]){ __VA_ARGS__ },                                             \
	              sizeof((const struct rule[]){ __VA_ARGS__ }) / sizeof(struct rule))

/* A copy of the last request, for the caller to free. */
static inline char *standin_last(struct standin *standin)
{
	pthread_mutex_lock(&standin->lock);
	char *last = standin->last == NULL ? NULL : strdup(standin->last);
	pthread_mutex_unlock(&standin->lock);
	assert_non_null(last);
	return last;
}

static inline size_t standin_requests(struct standin *standin)
{
	pthread_mutex_lock(&standin->lock);
	size_t requests = standin->requests;
	pthread_mutex_unlock(&standin->lock);
	return requests;
}

static inline size_t standin_connections(struct standin *standin)
{
	pthread_mutex_lock(&standin->lock);
	size_t connections = standin->connections;
	pthread_mutex_unlock(&standin->lock);
	return connections;
}

#endif
