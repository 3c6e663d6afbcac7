#include "http/http.h"

#include "http/address.h"
#include "http/reaper.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CONNECTIONS_DEFAULT   64
#define HEADERS_MS_DEFAULT    15000
#define CONNECTION_MS_DEFAULT 30000
#define CONNECTION_MEMORY     ((size_t)16 * 1024) /* bytes for the head of a request and of its answer */
#define ANSWER_MAX            ((size_t)4 * 1024 * 1024)

struct http {
	struct http_settings settings;
	struct MHD_Daemon *daemon;
	struct reaper *reaper;
	uint16_t port;
	bool loopback;
};

/* What is kept from the head of a request to its end. */
struct exchange {
	struct buffer body;
};

/* ---- the head ---- */

struct header_search {
	const char *name;
	size_t name_len;
	size_t count;
	struct view first;
};

static enum MHD_Result compare_header(void *context, enum MHD_ValueKind kind, const char *key, size_t key_len,
                                      const char *value, size_t value_len)
{
	struct header_search *search = context;
	(void)kind;
	if (key_len == search->name_len && strncasecmp(key, search->name, key_len) == 0 && search->count++ == 0)
		search->first = (struct view){ (const uint8_t *)(value != NULL ? value : ""), value_len };
	return MHD_YES;
}

static struct header_search find_header(struct MHD_Connection *connection, const char *name)
{
	struct header_search search = { .name = name, .name_len = strlen(name) };
	MHD_get_connection_values_n(connection, MHD_HEADER_KIND, compare_header, &search);
	return search;
}

size_t http_request_header(const struct http_request *request, const char *name, struct view *ret_value)
{
	struct header_search search = find_header(request->foreign, name);
	*ret_value = search.first;
	return search.count;
}

/* Digits only; SIZE_MAX when it is anything else or too much for a size_t. */
static size_t content_length(struct view text)
{
	size_t length = 0;
	if (text.len == 0 || text.len > 18)
		return SIZE_MAX;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return SIZE_MAX;
		length = length * 10 + (size_t)(text.data[i] - '0');
	}
	return length;
}

/* 0, or the status that the request is refused with by its head alone. libmicrohttpd before 1.0 takes
 * the first of two lengths, and a length beside chunks: what stands behind a proxy must not. */
static unsigned check_framing(const struct http *http, struct MHD_Connection *connection)
{
	struct header_search length = find_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct header_search chunks = find_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	if (length.count > 1 || (length.count > 0 && chunks.count > 0) ||
	    find_header(connection, MHD_HTTP_HEADER_HOST).count > 1)
		return MHD_HTTP_BAD_REQUEST;
	if (chunks.count > 0)
		return MHD_HTTP_LENGTH_REQUIRED;
	if (length.count == 0)
		return 0;
	size_t bytes = content_length(length.first);
	if (bytes == SIZE_MAX)
		return MHD_HTTP_BAD_REQUEST;
	if (bytes > http->settings.body_max)
		return MHD_HTTP_CONTENT_TOO_LARGE;
	if (find_header(connection, MHD_HTTP_HEADER_CONTENT_ENCODING).count > 0)
		return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	return 0;
}

/* ---- routes ---- */

static const char *method_of(const char *method)
{
	return strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? MHD_HTTP_METHOD_GET : method;
}

/* NULL: *ret_status says 404 or 405. */
static const struct http_route *find_route(const struct http *http, const char *method, const char *path,
                                           unsigned *ret_status)
{
	*ret_status = MHD_HTTP_NOT_FOUND;
	for (size_t i = 0; i < http->settings.routes_len; i++) {
		const struct http_route *route = &http->settings.routes[i];
		if (strcmp(route->path, path) != 0)
			continue;
		if (strcmp(route->method, method_of(method)) == 0)
			return route;
		*ret_status = MHD_HTTP_METHOD_NOT_ALLOWED;
	}
	return NULL;
}

/* ---- answers ---- */

/* Every answer to a 405 names the methods that the path does take (RFC 9110, 15.5.6). */
static void add_allow(const struct http *http, const char *path, struct MHD_Response *foreign)
{
	char methods[64] = "";
	size_t len = 0;
	for (size_t i = 0; i < http->settings.routes_len; i++) {
		const struct http_route *route = &http->settings.routes[i];
		size_t more = strlen(route->method);
		if (strcmp(route->path, path) != 0 || len + more + 3 > sizeof(methods))
			continue;
		if (len > 0) {
			memcpy(methods + len, ", ", 2);
			len += 2;
		}
		memcpy(methods + len, route->method, more + 1);
		len += more;
	}
	MHD_add_response_header(foreign, MHD_HTTP_HEADER_ALLOW, methods);
}

static enum MHD_Result send_answer(const struct http *http, struct MHD_Connection *connection,
                                   const char *path, unsigned status, const char *content_type,
                                   struct view body)
{
	/* MUST_COPY does not write to its argument; the type is the library's. */
	struct MHD_Response *foreign =
		MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.data, MHD_RESPMEM_MUST_COPY);
	if (foreign == NULL)
		return MHD_NO;
	MHD_add_response_header(foreign, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	MHD_add_response_header(foreign, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(foreign, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(foreign, "X-Content-Type-Options", "nosniff");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		add_allow(http, path, foreign);
	enum MHD_Result result = MHD_queue_response(connection, status, foreign);
	MHD_destroy_response(foreign);
	return result;
}

static enum MHD_Result refuse(const struct http *http, struct MHD_Connection *connection, const char *path,
                              unsigned status)
{
	char text[128];
	struct buffer body;
	buffer_init(&body, sizeof(text));
	buffer_printf(&body, "%u %s\n", status, MHD_get_reason_phrase_for(status));
	struct view view = buffer_failed(&body) ? VIEW_LITERAL("") : buffer_view(&body);
	enum MHD_Result result = send_answer(http, connection, path, status, "text/plain; charset=utf-8", view);
	buffer_done(&body);
	return result;
}

static enum MHD_Result call_handler(const struct http *http, struct MHD_Connection *connection,
                                    const struct http_route *route, const struct exchange *exchange)
{
	struct http_request request = {
		.method = route->method,
		.path = route->path,
		.body = exchange->body.len > 0 ? buffer_view(&exchange->body) : VIEW_LITERAL(""),
		.foreign = connection,
	};
	struct http_response response = { .status = MHD_HTTP_OK, .content_type = "text/plain; charset=utf-8" };
	buffer_init(&response.body, ANSWER_MAX);
	route->handler(http->settings.context, &request, &response);
	enum MHD_Result result;
	if (buffer_failed(&response.body))
		result = refuse(http, connection, route->path, MHD_HTTP_INTERNAL_SERVER_ERROR);
	else
		result = send_answer(http, connection, route->path, response.status, response.content_type,
		                     buffer_view(&response.body));
	buffer_done(&response.body);
	return result;
}

/* ---- libmicrohttpd's calls ---- */

/* The first call for a request: its head is there, nothing of its body. */
static enum MHD_Result begin_exchange(struct http *http, struct MHD_Connection *connection,
                                      const char *method, const char *path, void **state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (info == NULL || info->socket_context == NULL)
		return MHD_NO; /* nobody watches it */
	reaper_headers_done(http->reaper, info->socket_context);
	unsigned status = check_framing(http, connection);
	unsigned unrouted;
	if (status == 0 && find_route(http, method, path, &unrouted) == NULL)
		status = unrouted;
	if (status != 0)
		return refuse(http, connection, path, status);
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	if (exchange == NULL)
		return MHD_NO;
	buffer_init(&exchange->body, http->settings.body_max);
	*state = exchange;
	return MHD_YES;
}

/* Called for the head, for each piece of the body, and once more when it is whole. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *piece,
                                  size_t *piece_len, void **state)
{
	struct http *http = context;
	(void)version;
	if (*state == NULL)
		return begin_exchange(http, connection, method, path, state);
	struct exchange *exchange = *state;
	if (*piece_len > 0) {
		buffer_append(&exchange->body, piece, *piece_len);
		*piece_len = 0;
		return MHD_YES;
	}
	unsigned status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	const struct http_route *route = find_route(http, method, path, &status);
	if (buffer_failed(&exchange->body) || route == NULL)
		return refuse(http, connection, path, status);
	return call_handler(http, connection, route, exchange);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *state;
	(void)context;
	(void)connection;
	(void)code;
	if (exchange == NULL)
		return;
	buffer_done(&exchange->body);
	free(exchange);
	*state = NULL;
}

/* CLOSED comes before the socket is closed, so the reaper never shuts a number that is used again. */
static void on_connection(void *context, struct MHD_Connection *connection, void **watched,
                          enum MHD_ConnectionNotificationCode code)
{
	struct http *http = context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*watched = info == NULL ? NULL : reaper_watch(http->reaper, info->connect_fd);
	} else if (*watched != NULL) {
		reaper_leave(http->reaper, *watched);
		*watched = NULL;
	}
}

/* Paths are compared as they were sent: one name a page, no %00. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	return strlen(text);
}

/* ---- start and stop ---- */

static struct http_settings with_defaults(const struct http_settings *given)
{
	struct http_settings settings = *given;
	if (settings.connections == 0)
		settings.connections = CONNECTIONS_DEFAULT;
	if (settings.threads == 0)
		settings.threads = 1;
	if (settings.headers_ms == 0)
		settings.headers_ms = HEADERS_MS_DEFAULT;
	if (settings.connection_ms == 0)
		settings.connection_ms = CONNECTION_MS_DEFAULT;
	settings.listen = NULL; /* it is borrowed for http_start only */
	return settings;
}

static bool start_daemon(struct http *http, int fd)
{
	const struct http_settings *settings = &http->settings;
	struct MHD_OptionItem pool[] = {
		{ MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)settings->threads, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};
	if (settings->threads < 2)
		pool[0].option = MHD_OPTION_END;
	http->daemon = MHD_start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, on_request, http,         /* whom to call */
		MHD_OPTION_LISTEN_SOCKET, fd,                                          /* it is the daemon's now */
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,                     /* for the reaper */
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,                       /* frees the exchange */
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,                      /* paths as sent */
		MHD_OPTION_CONNECTION_LIMIT, settings->connections,                    /* the rest waits */
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,                 /* for heads */
		MHD_OPTION_CONNECTION_TIMEOUT, (settings->connection_ms + 999) / 1000, /* seconds of silence */
		MHD_OPTION_STRICT_FOR_CLIENT, 1,                                       /* a Host, no bare LF */
		MHD_OPTION_ARRAY, pool, MHD_OPTION_END);
	return http->daemon != NULL;
}

/* Its threads inherit the mask: signals are for the main's. */
static enum fate start_threads(struct http *http, int fd, struct error *error)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	const struct http_settings *settings = &http->settings;
	enum fate fate = reaper_open(&http->reaper, settings->connections, settings->headers_ms,
	                             settings->connection_ms, error);
	if (fate != FATE_OK) {
		close(fd);
	} else if (!start_daemon(http, fd)) {
		reaper_close(http->reaper);
		fate = error_set(error, FATE_FATAL, ERR_SYSTEM, "libmicrohttpd cannot start its threads");
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return fate;
}

enum fate http_start(struct http **ret_http, const struct http_settings *settings, struct error *error)
{
	int fd = -1;
	enum fate fate = address_listen(settings->listen, &fd, error);
	if (fate != FATE_OK)
		return fate;
	struct http *http = calloc(1, sizeof(*http));
	if (http == NULL) {
		close(fd);
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a listener");
	}
	http->settings = with_defaults(settings);
	http->port = address_port(fd);
	http->loopback = address_is_loopback(fd);
	fate = start_threads(http, fd, error);
	if (fate != FATE_OK) {
		free(http);
		return fate;
	}
	*ret_http = http;
	return FATE_OK;
}

uint16_t http_port(const struct http *http)
{
	return http->port;
}

static bool is_lenient(const char *version)
{
	return strtol(version, NULL, 10) < 1;
}

const char *http_warning(const struct http *http)
{
	if (http->loopback || !is_lenient(MHD_get_version()))
		return NULL;
	return "libmicrohttpd before 1.0.0 listens on an address that other machines reach: put a proxy in front "
		   "of it";
}

void http_stop(struct http *http)
{
	if (http == NULL)
		return;
	MHD_stop_daemon(http->daemon);
	reaper_close(http->reaper);
	free(http);
}
