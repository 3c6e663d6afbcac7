/* The registry's client: its settings, and the questions that are not about a subject. */
#include "schemas/registry_inner.h"

#include "core/clock.h"
#include "core/uuid.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_MS   5000
#define NAME_MAX_LEN 2048

/* --- settings --- */

static bool given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static enum fate FM_PRINTF(2, 3) wrong(struct error *error, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s", text);
}

/* What goes into a header must not be able to begin another one. */
static bool is_clean(const char *text)
{
	for (; text != NULL && *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	}
	return true;
}

static enum fate check_file(const char *key, const char *path, struct error *error)
{
	struct stat stat;

	if (!given(path))
		return FATE_OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return wrong(error, "%s: %.120s cannot be read: %s", key, path, strerrordesc_np(errno));
	bool is_file = fstat(fd, &stat) == 0 && !S_ISDIR(stat.st_mode);
	close(fd);
	return is_file ? FATE_OK : wrong(error, "%s: %.150s is no file", key, path);
}

static enum fate check_credentials(const struct registry_settings *settings, struct error *error)
{
	if (given(settings->token) && (given(settings->user) || given(settings->password)))
		return wrong(error,
		             "registry.token and registry.user (or the address) are both given; one way to say who "
		             "asks is enough");
	if (given(settings->password) && !given(settings->user))
		return wrong(error, "registry.password is given without registry.user");
	if (given(settings->user) && strchr(settings->user, ':') != NULL)
		return wrong(error, "registry.user holds a colon, which basic authentication cannot say");
	if (!is_clean(settings->user) || !is_clean(settings->password) || !is_clean(settings->token))
		return wrong(error, "registry.user, registry.password or registry.token holds control characters");
	return FATE_OK;
}

static enum fate check_settings(const struct registry_settings *settings, bool tls, struct error *error)
{
	enum fate fate = check_credentials(settings, error);

	if (fate == FATE_OK && given(settings->key_file) && !given(settings->cert_file))
		fate = wrong(error, "registry.key_file is given without registry.cert_file");
	if (fate == FATE_OK && !tls && (given(settings->ca_file) || given(settings->cert_file)))
		fate = wrong(error, "registry.%s_file is for TLS, and registry.url begins with http://",
		             given(settings->ca_file) ? "ca" : "cert");
	if (fate == FATE_OK)
		fate = check_file("registry.ca_file", settings->ca_file, error);
	if (fate == FATE_OK)
		fate = check_file("registry.cert_file", settings->cert_file, error);
	if (fate == FATE_OK)
		fate = check_file("registry.key_file", settings->key_file, error);
	return fate;
}

/* --- the address --- */

struct address {
	CURLU *url;
	bool tls;
	char *scheme, *user, *password, *host, *query, *fragment, *name;
};

static void secret_done(char *text)
{
	if (text != NULL)
		memory_wipe(text, strlen(text));
	curl_free(text);
}

static void address_done(struct address *address)
{
	secret_done(address->user);
	secret_done(address->password);
	curl_free(address->scheme);
	curl_free(address->host);
	curl_free(address->query);
	curl_free(address->fragment);
	curl_free(address->name);
	curl_url_cleanup(address->url);
}

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a schema registry's client");
}

/* A part that is not there stays NULL. false: there was no memory to look. */
static bool take_part(const struct address *address, CURLUPart part, unsigned flags, char **ret_text)
{
	CURLUcode code = curl_url_get(address->url, part, ret_text, flags);

	if (code != CURLUE_OK)
		*ret_text = NULL;
	return code != CURLUE_OUT_OF_MEMORY;
}

static bool take_parts(struct address *address)
{
	return take_part(address, CURLUPART_SCHEME, 0, &address->scheme) &&
	       take_part(address, CURLUPART_USER, CURLU_URLDECODE, &address->user) &&
	       take_part(address, CURLUPART_PASSWORD, CURLU_URLDECODE, &address->password) &&
	       take_part(address, CURLUPART_HOST, 0, &address->host) &&
	       take_part(address, CURLUPART_QUERY, 0, &address->query) &&
	       take_part(address, CURLUPART_FRAGMENT, 0, &address->fragment);
}

/* The address as it is told to others, in one way only. */
static bool make_name(struct address *address)
{
	for (char *at = address->host; *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at);
	if (curl_url_set(address->url, CURLUPART_HOST, address->host, 0) != CURLUE_OK ||
	    curl_url_set(address->url, CURLUPART_USER, NULL, 0) != CURLUE_OK ||
	    curl_url_set(address->url, CURLUPART_PASSWORD, NULL, 0) != CURLUE_OK)
		return false;
	if (!take_part(address, CURLUPART_URL, CURLU_NO_DEFAULT_PORT, &address->name) || address->name == NULL)
		return false;
	for (size_t len = strlen(address->name); len > 0 && address->name[len - 1] == '/'; len--)
		address->name[len - 1] = '\0';
	return true;
}

static bool is_http(const char *scheme)
{
	return scheme != NULL && (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
}

/* The text may hold a password and is not shown. */
static enum fate address_parse(const char *text, struct address *ret_address, struct error *error)
{
	struct address *address = ret_address;

	if (!given(text) || strlen(text) > NAME_MAX_LEN)
		return wrong(error, "registry.url is empty or has more than %d bytes", NAME_MAX_LEN);
	address->url = curl_url();
	if (address->url == NULL)
		return no_memory(error);
	CURLUcode code = curl_url_set(address->url, CURLUPART_URL, text, 0);
	if (code == CURLUE_OUT_OF_MEMORY)
		return no_memory(error);
	if (code != CURLUE_OK)
		return wrong(error, "registry.url is no address of http:// or https:// (%s)",
		             curl_url_strerror(code));
	if (!take_parts(address))
		return no_memory(error);
	if (!is_http(address->scheme) || address->host == NULL)
		return wrong(error, "registry.url is no address of http:// or https://");
	address->tls = strcasecmp(address->scheme, "https") == 0;
	if (address->query != NULL || address->fragment != NULL)
		return wrong(error, "registry.url ends in a query or a fragment; it is the address that paths like "
		                    "/subjects are put behind");
	return make_name(address) ? FATE_OK : no_memory(error);
}

/* --- open and close --- */

static CURLcode curl_ready = CURLE_FAILED_INIT;

static void init_curl(void)
{
	curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool have_curl(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, init_curl);
	return curl_ready == CURLE_OK;
}

/* Takes the name out of the address. */
static enum fate make(const struct registry_settings *settings, struct address *address,
                      struct registry **ret_registry, struct error *error)
{
	struct registry *registry = calloc(1, sizeof(*registry));

	if (registry != NULL) {
		buffer_init(&registry->path, (size_t)64 * 1024);
		buffer_init(&registry->question, ANSWER_SCHEMA_MAX);
		buffer_init(&registry->answer, 0);
		buffer_init(&registry->head, 0);
		registry->timeout_ms = settings->timeout_ms > 0 ? settings->timeout_ms : TIMEOUT_MS;
		registry->name = address->name;
		address->name = NULL;
		registry->curl = curl_easy_init();
		put_line(view_of(registry->name), registry->shown, sizeof(registry->shown));
	}
	if (registry == NULL || registry->curl == NULL || !registry_set_up(registry, settings)) {
		registry_close(registry);
		return no_memory(error);
	}
	*ret_registry = registry;
	return FATE_OK;
}

enum fate registry_open(struct registry **ret_registry, const struct registry_settings *settings,
                        struct error *error)
{
	__attribute__((cleanup(address_done))) struct address address = { 0 };
	struct registry_settings whole = *settings;

	*ret_registry = NULL;
	if (!have_curl())
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "libcurl cannot be used: %s",
		                 curl_easy_strerror(curl_ready));
	enum fate fate = address_parse(settings->url, &address, error);
	if (fate == FATE_OK && address.user != NULL) {
		if (given(settings->user) || given(settings->password))
			return wrong(error, "registry.user is given, and registry.url names a user too");
		whole.user = address.user;
		whole.password = address.password;
	}
	if (fate == FATE_OK)
		fate = check_settings(&whole, address.tls, error);
	return fate == FATE_OK ? make(&whole, &address, ret_registry, error) : fate;
}

void registry_close(struct registry *registry)
{
	if (registry == NULL)
		return;
	curl_easy_cleanup(registry->curl);
	curl_slist_free_all(registry->headers);
	buffer_done(&registry->path);
	buffer_done(&registry->question);
	buffer_done(&registry->answer);
	buffer_done(&registry->head);
	curl_free(registry->name);
	free(registry);
}

void registry_interrupt(struct registry *registry)
{
	atomic_store(&registry->interrupted, true);
}

const char *registry_name(const struct registry *registry)
{
	return registry->name;
}

/* --- questions --- */

void registry_begin(struct registry *registry, int times)
{
	registry->deadline_ms = clock_mono_ms() + times * registry->timeout_ms;
	buffer_reset(&registry->path);
	buffer_reset(&registry->question);
}

static enum fate ask_for_schema(struct registry *registry, const char *what, struct arena *arena,
                                struct view *ret_text, struct error *error)
{
	struct registry_version answer = { 0 };
	struct view body;
	enum fate fate = registry_question(registry, ANSWER_SCHEMA_MAX, &body, error);

	if (fate == FATE_OK)
		fate = answer_schema(body, arena, &answer, error);
	*ret_text = fate == FATE_OK ? answer.text : VIEW_NULL;
	return fate == FATE_OK ? fate : error_wrap(error, "%s of the schema registry %s", what, registry->shown);
}

enum fate registry_by_id(struct registry *registry, int32_t id, struct arena *arena, struct view *ret_text,
                         struct error *error)
{
	char what[40];

	*ret_text = VIEW_NULL;
	if (id < 0)
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "schema id %u: no registry gives ids above 2147483647", (unsigned)id);
	registry_begin(registry, 1);
	buffer_printf(&registry->path, "/schemas/ids/%d", (int)id);
	snprintf(what, sizeof(what), "schema id %d", (int)id);
	return ask_for_schema(registry, what, arena, ret_text, error);
}

enum fate registry_by_guid(struct registry *registry, const uint8_t guid[16], struct arena *arena,
                           struct view *ret_text, struct error *error)
{
	struct uuid uuid;
	char text[UUID_TEXT_LEN + 1], what[64];

	memcpy(uuid.bytes, guid, sizeof(uuid.bytes));
	uuid_format(&uuid, text);
	registry_begin(registry, 1);
	buffer_printf(&registry->path, "/schemas/guids/%s", text);
	snprintf(what, sizeof(what), "schema GUID %s", text);
	return ask_for_schema(registry, what, arena, ret_text, error);
}

enum fate registry_subjects(struct registry *registry, struct arena *arena, struct view **ret_subjects,
                            size_t *ret_len, struct error *error)
{
	struct view body;

	*ret_subjects = NULL;
	*ret_len = 0;
	registry_begin(registry, 1);
	buffer_append_text(&registry->path, "/subjects");
	enum fate fate = registry_question(registry, ANSWER_LIST_MAX, &body, error);
	if (fate == FATE_OK)
		fate = answer_texts(body, REGISTRY_SUBJECTS_MAX, arena, ret_subjects, ret_len, error);
	return fate == FATE_OK ? fate
	                       : error_wrap(error, "the subjects of the schema registry %s", registry->shown);
}

void subject_name(enum subject_strategy strategy, const char *topic, const char *record, struct buffer *out)
{
	if (strategy != SUBJECT_RECORD)
		buffer_append_text(out, topic);
	if (strategy == SUBJECT_TOPIC_RECORD)
		buffer_append_byte(out, '-');
	buffer_append_text(out, strategy == SUBJECT_TOPIC ? "-value" : record);
}
