#include "schemas/resolve.h"

#include "schemas/base64.h"
#include "schemas/json_fault.h"
#include "schemas/json_write.h"
#include "schemas/migrate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define PLANS_KEPT 4

struct resolver {
	struct migrate_cache *cache;
	struct buffer body;
	struct buffer resolved;
};

/* What a line asks for. The texts are borrowed from what json_dumps or the line gave. */
struct request {
	json_t *line;
	char *writer_text, *reader_text; /* free */
	struct view writer, reader;
};

enum fate resolver_new(struct resolver **ret_resolver, struct error *error)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	if (!resolver)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a resolver");
	enum fate fate = migrate_cache_new(&resolver->cache, PLANS_KEPT, error);
	if (fate != FATE_OK) {
		free(resolver);
		return fate;
	}
	buffer_init(&resolver->body, RESOLVE_BYTES_MAX);
	buffer_init(&resolver->resolved, RESOLVE_BYTES_MAX);
	*ret_resolver = resolver;
	return FATE_OK;
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	migrate_cache_free(resolver->cache);
	buffer_done(&resolver->body);
	buffer_done(&resolver->resolved);
	free(resolver);
}

/* Defaults and the names of fields can make much of little: how much is bounded by what came. */
static size_t most(size_t least, size_t times, struct view body, size_t ceiling)
{
	return least > ceiling || body.len > (ceiling - least) / times ? ceiling : least + times * body.len;
}

static enum fate run(struct resolver *resolver, const struct plan *plan, struct view body,
                     struct error *error)
{
	buffer_reset(&resolver->resolved);
	resolver->resolved.ceiling = most((size_t)1 << 20, 10, body, RESOLVE_BYTES_MAX);
	return migrate_run(plan, body, &resolver->resolved, error);
}

static enum fate print(const struct resolver *resolver, const struct plan *plan, struct view body,
                       struct buffer *out, struct error *error)
{
	size_t ceiling = out->ceiling;

	out->ceiling = most(out->len + ((size_t)4 << 20), 24, body, ceiling);
	enum fate fate = resolve_json(migrate_reader(plan), buffer_view(&resolver->resolved), out, error);
	out->ceiling = ceiling;
	return fate;
}

enum fate resolve_datum(struct resolver *resolver, struct view writer, struct view reader, struct view body,
                        struct buffer *out, struct error *error)
{
	const struct plan *plan;
	enum fate fate = migrate_cache_hold(resolver->cache, writer, reader, &plan, error);

	if (fate != FATE_OK)
		return fate;
	fate = run(resolver, plan, body, error);
	if (fate == FATE_OK)
		fate = print(resolver, plan, body, out, error);
	migrate_cache_release(resolver->cache, plan);
	return fate;
}

/* The text of a schema that stands in a line. *ret_text is to be freed; NULL when it is borrowed. */
static struct view schema_text(const json_t *value, char **ret_text)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value), blank = text ? strspn(text, " \t\r\n") : 0;

	*ret_text = NULL;
	if (text && blank < len && strchr("{[\"", text[blank]))
		return (struct view){ (const uint8_t *)text, len };
	*ret_text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	return view_of(*ret_text);
}

static enum fate request_read(struct resolver *resolver, struct view text, struct request *request,
                              struct error *error)
{
	json_error_t detail;
	bool starved = false;
	request->line = view_is_null(text)
	                    ? NULL
	                    : json_take(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &detail, &starved);
	if (starved)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a line");
	if (!request->line)
		return error_set(error, FATE_REJECT, ERR_INVALID, "the line is not JSON: %s",
		                 view_is_null(text) ? "it is empty" : json_fault(&detail));
	if (!json_is_object(request->line))
		return error_set(error, FATE_REJECT, ERR_INVALID, "the line is not a JSON object");
	uint64_t refusals = memory_refusals();
	request->writer = schema_text(json_object_get(request->line, "writer"), &request->writer_text);
	request->reader = schema_text(json_object_get(request->line, "reader"), &request->reader_text);
	const json_t *body = json_object_get(request->line, "body");
	struct view encoded = { (const uint8_t *)json_string_value(body), json_string_length(body) };
	if (memory_refusals() != refusals)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the schemas of a line");
	if (view_is_null(request->writer) || view_is_null(request->reader) || view_is_null(encoded))
		return error_set(error, FATE_REJECT, ERR_INVALID, "the line needs writer, reader and body");
	buffer_reset(&resolver->body);
	bool decoded = base64_decode(encoded, &resolver->body);
	if (resolver->body.starved)
		return buffer_refused(&resolver->body, error, "body");
	if (!decoded)
		return error_set(error, FATE_REJECT, ERR_INVALID, "body is not base64 of at most %zu bytes",
		                 RESOLVE_BYTES_MAX);
	return FATE_OK;
}

static void request_done(struct request *request)
{
	json_decref(request->line);
	free(request->writer_text);
	free(request->reader_text);
}

/* never: no datum of the writer's could do better. */
static enum fate request_run(struct resolver *resolver, const struct request *request, bool *ret_never,
                             struct error *error)
{
	const struct plan *plan;
	enum fate fate = migrate_cache_hold(resolver->cache, request->writer, request->reader, &plan, error);

	*ret_never = fate != FATE_OK;
	if (fate != FATE_OK)
		return fate;
	fate = run(resolver, plan, buffer_view(&resolver->body), error);
	migrate_cache_release(resolver->cache, plan);
	return fate;
}

static void put_id(struct json_writer *w, const json_t *line)
{
	const json_t *id = json_object_get(line, "id");
	char *text = id ? json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	json_name(w, "id");
	json_word(w, text ? text : "null");
	free(text);
}

static void put_answer(struct json_writer *w, const struct resolver *resolver, const struct error *error,
                       bool never)
{
	json_name(w, "ok");
	json_word(w, error->fate == FATE_OK ? "true" : "false");
	if (error->fate == FATE_OK) {
		json_name(w, "body");
		buffer_append_byte(w->out, '"');
		base64_encode(buffer_view(&resolver->resolved), w->out);
		buffer_append_byte(w->out, '"');
		return;
	}
	json_name(w, "error");
	json_text(w, view_of(error->message));
	json_name(w, "when");
	json_text(w, view_of(never ? "never" : "value"));
}

enum fate resolve_line(struct resolver *resolver, struct view line, struct buffer *out, struct error *error)
{
	struct error fault = { .fate = FATE_OK };
	struct request request = { 0 };
	struct json_writer w = { .out = out };
	bool never = false;
	enum fate fate = request_read(resolver, line, &request, &fault);

	if (fate == FATE_OK)
		fate = request_run(resolver, &request, &never, &fault);
	if (fate == FATE_OK || fate == FATE_REJECT) {
		fault.fate = fate;
		json_open(&w, '{');
		put_id(&w, request.line);
		put_answer(&w, resolver, &fault, never);
		json_close(&w, '}');
	}
	request_done(&request);
	if (fate == FATE_OK || fate == FATE_REJECT)
		return buffer_failed(out) ? error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for an answer")
		                          : FATE_OK;
	if (error)
		*error = fault;
	return fate;
}
