/* Questions to a registry over HTTP: libcurl, and what its errors and the statuses of answers mean. */
#include "schemas/registry_inner.h"

#include "core/clock.h"

#include <stdio.h>
#include <string.h>

#define HEAD_MAX ((size_t)64 * 1024) /* bytes of an answer's headers and trailers, which nobody reads */

/* --- what stays the same --- */

static size_t take(char *data, size_t size, size_t count, void *context)
{
	struct buffer *into = context;

	buffer_append(into, data, size * count);
	return buffer_failed(into) ? 0 : size * count;
}

/* Called about every second, and whenever something comes. */
static int look_up(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	struct registry *registry = context;

	(void)total;
	(void)now;
	(void)up_total;
	(void)up_now;
	return atomic_load(&registry->interrupted) ? 1 : 0;
}

static bool set_headers(struct registry *registry)
{
	static const char *const lines[] = {
		"Accept: application/vnd.schemaregistry.v1+json, application/json",
		"Content-Type: application/vnd.schemaregistry.v1+json",
		"Expect:", /* nobody asks whether a body may come */
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct curl_slist *longer = curl_slist_append(registry->headers, lines[i]);
		if (longer == NULL)
			return false;
		registry->headers = longer;
	}
	return true;
}

#define SET(option, value) (curl_easy_setopt(registry->curl, option, value) == CURLE_OK)

static bool set_callbacks(struct registry *registry)
{
	return SET(CURLOPT_WRITEFUNCTION, take) && SET(CURLOPT_WRITEDATA, &registry->answer) &&
	       SET(CURLOPT_HEADERFUNCTION, take) && SET(CURLOPT_HEADERDATA, &registry->head) &&
	       SET(CURLOPT_XFERINFOFUNCTION, look_up) && SET(CURLOPT_XFERINFODATA, registry) &&
	       SET(CURLOPT_NOPROGRESS, 0L) && SET(CURLOPT_ERRORBUFFER, registry->curl_says) &&
	       SET(CURLOPT_HTTPHEADER, registry->headers);
}

/* Credentials go to the address that was configured and nowhere else: no redirect, no proxy. A resolver
 * that hangs is left to itself (QUICK_EXIT). */
static bool set_manners(struct registry *registry)
{
	return SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_QUICK_EXIT, 1L) &&
	       SET(CURLOPT_PROTOCOLS_STR, "http,https") && SET(CURLOPT_FOLLOWLOCATION, 0L) &&
	       SET(CURLOPT_PROXY, "") && SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) &&
	       SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) && SET(CURLOPT_PATH_AS_IS, 1L) &&
	       SET(CURLOPT_TCP_KEEPALIVE, 1L) && SET(CURLOPT_MAXCONNECTS, 1L) &&
	       SET(CURLOPT_USERAGENT, "fermata/" FERMATA_VERSION);
}

static bool given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static bool set_credentials(struct registry *registry, const struct registry_settings *settings)
{
	if (given(settings->token))
		return SET(CURLOPT_HTTPAUTH, CURLAUTH_BEARER) && SET(CURLOPT_XOAUTH2_BEARER, settings->token);
	if (given(settings->user))
		return SET(CURLOPT_HTTPAUTH, CURLAUTH_BASIC) && SET(CURLOPT_USERNAME, settings->user) &&
		       SET(CURLOPT_PASSWORD, settings->password == NULL ? "" : settings->password);
	return true;
}

/* A key that wants a password makes OpenSSL ask for it on the terminal: it gets an empty one. GnuTLS
 * refuses by itself, and with a password would take no plain key any more. */
static bool asks_for_passwords(void)
{
	const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;

	return library != NULL && strncmp(library, "OpenSSL", 7) == 0;
}

/* Files are read anew for each connection, so that they may be replaced. */
static bool set_tls(struct registry *registry, const struct registry_settings *settings)
{
	bool good = SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) && SET(CURLOPT_SSL_VERIFYPEER, 1L) &&
	            SET(CURLOPT_SSL_VERIFYHOST, 2L);

	(void)SET(CURLOPT_CA_CACHE_TIMEOUT, 0L); /* not every TLS library has such a cache */
	if (asks_for_passwords())
		good = good && SET(CURLOPT_KEYPASSWD, "");
	if (given(settings->ca_file)) /* and not the system's folder besides */
		good = good && SET(CURLOPT_CAINFO, settings->ca_file) && SET(CURLOPT_CAPATH, NULL);
	if (given(settings->cert_file))
		good = good && SET(CURLOPT_SSLCERT, settings->cert_file);
	if (given(settings->key_file))
		good = good && SET(CURLOPT_SSLKEY, settings->key_file);
	return good;
}

bool registry_set_up(struct registry *registry, const struct registry_settings *settings)
{
	return set_headers(registry) && set_callbacks(registry) && set_manners(registry) &&
	       set_credentials(registry, settings) && set_tls(registry, settings);
}

/* --- one question --- */

/* What is worth saying besides libcurl's own words. Whatever keeps an answer away may mend: everything is
 * RETRY. */
static const struct {
	CURLcode code;
	const char *advice;
} advices[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, "is the host in registry.url right?" },
	{ CURLE_COULDNT_CONNECT, "is it up, and registry.url right?" },
	{ CURLE_OPERATION_TIMEDOUT, "is it up? registry.timeout is how long it may take" },
	{ CURLE_PEER_FAILED_VERIFICATION, "registry.ca_file names the authorities that are trusted" },
	{ CURLE_SSL_CACERT_BADFILE, "is registry.ca_file a PEM file of certificates?" },
	{ CURLE_SSL_CERTPROBLEM, "are registry.cert_file and registry.key_file PEM files that fit each other?" },
	{ CURLE_SSL_CONNECT_ERROR,
	  "does it speak TLS there? registry.cert_file and registry.key_file have to fit each other" },
	{ CURLE_WEIRD_SERVER_REPLY, "does it speak HTTP there?" },
	{ CURLE_UNSUPPORTED_PROTOCOL, "does it speak HTTP there?" },
};

static enum fate no_answer(struct registry *registry, CURLcode code, struct error *error)
{
	const char *why = registry->curl_says[0] != '\0' ? registry->curl_says : curl_easy_strerror(code);
	const char *advice = "is it up?";
	char native[16], shown[112];

	if (code == CURLE_OUT_OF_MEMORY)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to ask the schema registry");
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		if (advices[i].code == code)
			advice = advices[i].advice;
	}
	snprintf(native, sizeof(native), "curl %d", (int)code);
	put_line(view_of(why), shown, sizeof(shown));
	return error_set_native(error, FATE_RETRY, ERR_SERVICE, native, "it gives no answer (%s); %s", shown,
	                        advice);
}

static enum fate judge_transfer(struct registry *registry, CURLcode code, struct reply *ret_reply,
                                struct error *error)
{
	long status = 0;

	(void)curl_easy_getinfo(registry->curl, CURLINFO_RESPONSE_CODE, &status);
	*ret_reply = (struct reply){ .status = status };
	if (atomic_load(&registry->interrupted))
		return error_set(error, FATE_RETRY, ERR_SERVICE, "the question was interrupted");
	if (buffer_failed(&registry->answer) && status / 100 == 2)
		return buffer_refused(&registry->answer, error,
		                      "the answer has more than the %zu bytes that are taken",
		                      registry->answer.ceiling);
	if (buffer_failed(&registry->answer))
		return FATE_OK;
	if (registry->head.starved)
		return buffer_refused(&registry->head, error, "headers");
	if (buffer_failed(&registry->head))
		return error_set(error, FATE_RETRY, ERR_SERVICE, "the answer has more than %zu bytes of headers",
		                 registry->head.ceiling);
	if (code != CURLE_OK)
		return no_answer(registry, code, error);
	ret_reply->body = buffer_view(&registry->answer);
	return FATE_OK;
}

/* The question's own time, or what is left of the call's. */
static bool set_time(struct registry *registry)
{
	int64_t left = registry->deadline_ms - clock_mono_ms();

	if (left > registry->timeout_ms)
		left = registry->timeout_ms;
	return left > 0 && SET(CURLOPT_TIMEOUT_MS, (long)left) && SET(CURLOPT_CONNECTTIMEOUT_MS, (long)left);
}

static bool set_question(struct registry *registry)
{
	struct buffer url;
	struct view body = buffer_view(&registry->question);

	buffer_init(&url, (size_t)1 << 20);
	buffer_append_text(&url, registry->name);
	buffer_append_view(&url, buffer_view(&registry->path));
	buffer_append_byte(&url, '\0');
	bool good =
		!buffer_failed(&url) && !buffer_failed(&registry->path) && SET(CURLOPT_URL, (const char *)url.data);
	buffer_done(&url);
	if (body.len == 0)
		return good && SET(CURLOPT_HTTPGET, 1L);
	return good && SET(CURLOPT_POST, 1L) && SET(CURLOPT_POSTFIELDSIZE, (long)body.len) &&
	       SET(CURLOPT_POSTFIELDS, (const char *)body.data);
}

enum fate registry_exchange(struct registry *registry, size_t max, struct reply *ret_reply,
                            struct error *error)
{
	*ret_reply = (struct reply){ 0 };
	buffer_done(&registry->answer);
	buffer_init(&registry->answer, max);
	buffer_done(&registry->head);
	buffer_init(&registry->head, HEAD_MAX);
	registry->curl_says[0] = '\0';
	if (!set_time(registry))
		return error_set(error, FATE_RETRY, ERR_SERVICE, "it is too slow for registry.timeout; is it up?");
	if (!set_question(registry))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to ask the schema registry");
	return judge_transfer(registry, curl_easy_perform(registry->curl), ret_reply, error);
}

/* --- what a status means --- */

static const struct {
	long status;
	enum fate fate;
	enum error_code code;
	const char *text;
} meanings[] = {
	{ 401, FATE_RETRY, ERR_SERVICE,
	  "it does not take the credentials; look at registry.user or registry.token" },
	{ 403, FATE_RETRY, ERR_SERVICE,
	  "it denies the access; look at what registry.user or registry.token may do" },
	{ 408, FATE_RETRY, ERR_SERVICE, "it says that it took too long" },
	{ 409, FATE_REJECT, ERR_INVALID, "it refuses" },
	{ 413, FATE_REJECT, ERR_TOO_LARGE, "it says that the question is too large" },
	{ 422, FATE_REJECT, ERR_INVALID, "it refuses" },
	{ 429, FATE_RETRY, ERR_SERVICE, "it says that it is asked too often" },
};

static enum fate said(const struct reply *reply, const struct refusal *refusal, enum fate fate,
                      enum error_code code, const char *text, struct error *error)
{
	char native[16];

	snprintf(native, sizeof(native), "HTTP %ld", reply->status);
	bool quoted = refusal->message[0] != '\0' && reply->status != 401 && reply->status != 403;
	return error_set_native(error, fate, code, native, "%s (%ld)%s%s", text, reply->status,
	                        quoted ? ": " : "", quoted ? refusal->message : "");
}

/*
 * A 404 whose body is a registry's is believed. Any other may come of a wrong address, or of a registry
 * that does not know this kind of question: every registry knows its rule, so that tells which.
 */
static enum fate judge_absence(struct registry *registry, const struct reply *reply,
                               const struct refusal *refusal, struct error *error)
{
	struct reply rule;
	struct refusal other;

	if (refusal_is_absence(refusal))
		return said(reply, refusal, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "it has no such thing", error);
	buffer_reset(&registry->path);
	buffer_append_text(&registry->path, "/config");
	buffer_reset(&registry->question);
	enum fate fate = registry_exchange(registry, ANSWER_SMALL_MAX, &rule, error);
	if (fate == FATE_RETRY)
		return fate;
	answer_refusal(rule.body, &other);
	if (rule.status == 200 && other.json)
		return said(reply, refusal, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		            "it has no such thing, or does not know this kind of question", error);
	return error_set_native(
		error, FATE_RETRY, ERR_SERVICE, "HTTP 404",
		"what answers there (404) is no schema registry; is the path in registry.url right?");
}

enum fate registry_judge(struct registry *registry, const struct reply *reply, struct error *error)
{
	struct refusal refusal;

	if (reply->status / 100 == 2)
		return FATE_OK;
	answer_refusal(reply->body, &refusal);
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].status == reply->status)
			return said(reply, &refusal, meanings[i].fate, meanings[i].code, meanings[i].text, error);
	}
	if (reply->status == 404)
		return judge_absence(registry, reply, &refusal, error);
	if (reply->status == 400 && refusal.json) /* without JSON it may be a server that wants TLS, or a proxy */
		return said(reply, &refusal, FATE_REJECT, ERR_INVALID, "it refuses", error);
	if (reply->status / 100 == 3)
		return said(reply, &refusal, FATE_RETRY, ERR_SERVICE,
		            "it sends elsewhere, and nobody goes there; set registry.url to where it is", error);
	return said(reply, &refusal, FATE_RETRY, ERR_SERVICE,
	            reply->status / 100 == 5 ? "it says that it cannot now"
	                                     : "it does not answer what it was asked",
	            error);
}

enum fate registry_question(struct registry *registry, size_t max, struct view *ret_body, struct error *error)
{
	struct reply reply;
	enum fate fate = registry_exchange(registry, max, &reply, error);

	if (fate == FATE_OK)
		fate = registry_judge(registry, &reply, error);
	*ret_body = fate == FATE_OK ? reply.body : VIEW_NULL;
	return fate;
}
