/*
 * http.h - a small HTTP/1.1 listener with caps and deadlines: the worker's metrics and health pages, the
 * bridge's webhooks. The only user of libmicrohttpd.
 *
 * One request a connection: every answer says "Connection: close", so that the deadlines are those of the
 * connection, and what a client sends behind its request is never read as another one.
 *
 * Refused before a handler sees it: two Content-Length, a Transfer-Encoding (411: a body comes with its
 * length), a Content-Encoding on a body (415), a body above the cap (413), headers above 16 KiB (431), an
 * unknown path (404), another method (405; HEAD goes where GET goes, the body is left away).
 */
#ifndef FERMATA_HTTP_HTTP_H
#define FERMATA_HTTP_HTTP_H

#include "core/memory.h"

/* A listener that runs. */
struct http;

/* A request whose head and body have come whole. Everything in it ends when the handler returns. */
struct http_request {
	const char *method; /* as in the handler table: a HEAD shows as "GET" */
	const char *path;   /* percent-decoded, without the query */
	struct view body;   /* never null; empty where there is none */
	void *foreign;      /* for http_request_header */
};

/* What the handler answers. Before it is called: 200, "text/plain; charset=utf-8", an empty body with a
 * ceiling of 4 MiB (more than that is answered as 500). */
struct http_response {
	unsigned status;
	const char *content_type; /* must outlive the listener: a literal */
	struct buffer body;       /* the listener's; the handler appends */
};

/* Called on a thread of the listener, with settings->context. With more than one thread it must expect to
 * be called by several at once. It may block, which holds up the other requests of its thread. */
typedef void http_handler(void *context, const struct http_request *request, struct http_response *response);

/* A row of the table of handlers. */
struct http_route {
	const char *method; /* "GET", "POST" */
	const char *path;   /* exactly this path */
	http_handler *handler;
};

struct http_settings {
	const char *listen;              /* "127.0.0.1:9464", "[::1]:0", "localhost:80"; port 0: any free one */
	const struct http_route *routes; /* must outlive the listener */
	size_t routes_len;
	void *context;          /* given to each handler */
	size_t body_max;        /* bytes of a body; 0: a body is refused */
	unsigned connections;   /* at once, the rest waits to be accepted; 0: 64 */
	unsigned threads;       /* that run handlers; 0: 1 */
	unsigned headers_ms;    /* from accept until the headers are there; 0: 15,000 */
	unsigned connection_ms; /* from accept until the answer is away; 0: 30,000 */
};

/* Listens and serves, on threads of its own in which all signals are blocked. FATAL with ERR_USAGE when
 * settings->listen is no address, FATAL with ERR_SYSTEM when it cannot be had (in use, not permitted).
 * settings is copied, what it points at is borrowed (see there). */
FM_MUSTCHECK enum fate http_start(struct http **ret_http, const struct http_settings *settings,
                                  struct error *error);

/* The port that it listens on. */
uint16_t http_port(const struct http *http);

/* One line that is worth a warning at start, or NULL: a libmicrohttpd before 1.0.0 (whose parser is lenient
 * where 1.0 is strict) on an address that other machines reach. */
const char *http_warning(const struct http *http);

/* Ends: takes no more connections, waits for handlers that run, closes everything. NULL is legal. */
void http_stop(struct http *http);

/* How often the request has the header (any case of name), the first value in *ret_value (else null). Who
 * takes a header for proof must insist on 1. */
size_t http_request_header(const struct http_request *request, const char *name, struct view *ret_value);

#endif
