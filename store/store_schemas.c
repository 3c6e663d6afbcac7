#include "store/store_schemas.h"

#include "store/store_columns.h"
#include "store/store_connection.h"
#include "store/store_record.h"

#include <stdlib.h>
#include <string.h>

#define FINGERPRINT_LEN 8

static const char *const fact_names[] = {
	[FACT_ID] = "id",
	[FACT_GUID] = "guid",
	[FACT_READER] = "reader",
	[FACT_OWN] = "own",
};

const char *registry_fact_name(int kind)
{
	return kind >= 0 && (size_t)kind < sizeof(fact_names) / sizeof(fact_names[0]) ? fact_names[kind] : NULL;
}

/* ---- statements ---- */

/* Sorted, so that two that bring the same texts wait for each other in one order. */
static const struct statement keep_texts = {
	"keeping schema texts",
	"INSERT INTO fermata.schema_text (text_sha256, sha256, fingerprint, text, seen_at)"
	" SELECT DISTINCT ON (r.text_sha256) r.text_sha256, r.sha256, r.fingerprint, r.text, $5::bigint"
	" FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::text[])"
	" r (text_sha256, sha256, fingerprint, text) ORDER BY r.text_sha256"
	" ON CONFLICT (text_sha256) DO NOTHING",
};

static const struct statement keep_facts = {
	"keeping what a registry said",
	"INSERT INTO fermata.registry_schema AS s (registry, fact, ref, id, text_sha256, seen_at)"
	" SELECT DISTINCT ON (f.fact, f.ref) $1::text, f.fact, f.ref, f.id, f.text_sha256, $6::bigint"
	" FROM unnest($2::text[], $3::text[], $4::integer[], $5::bytea[]) WITH ORDINALITY"
	" f (fact, ref, id, text_sha256, n)"
	" ORDER BY f.fact, f.ref, CASE WHEN f.fact IN ('id', 'guid') THEN f.n ELSE -f.n END"
	" ON CONFLICT (registry, fact, ref) DO UPDATE"
	" SET id = excluded.id, text_sha256 = excluded.text_sha256, seen_at = excluded.seen_at"
	" WHERE s.fact IN ('reader', 'own')"
	" AND (s.id, s.text_sha256) IS DISTINCT FROM (excluded.id, excluded.text_sha256)",
};

#define SCHEMA_COLUMNS "t.text_sha256, t.sha256, t.fingerprint, t.text"

static const struct statement by_sha256 = {
	"looking for a schema by its SHA-256",
	"SELECT " SCHEMA_COLUMNS " FROM fermata.schema_text t WHERE t.sha256 = $1::bytea"
	" ORDER BY t.seen_at, t.text_sha256 LIMIT 1",
};

static const struct statement by_fingerprint = {
	"looking for a schema by its fingerprint",
	"SELECT DISTINCT ON (t.sha256) " SCHEMA_COLUMNS " FROM fermata.schema_text t"
	" WHERE t.fingerprint = $1::bytea ORDER BY t.sha256, t.seen_at, t.text_sha256",
};

static const struct statement find_fact = {
	"looking for what a registry said",
	"SELECT s.id, t.text FROM fermata.registry_schema s LEFT JOIN fermata.schema_text t USING (text_sha256)"
	" WHERE s.registry = $1::text AND s.fact = $2::text AND s.ref = $3::text",
};

static const struct statement select_readers = {
	"listing the readers of a registry",
	"SELECT s.ref, s.id, t.text FROM fermata.registry_schema s JOIN fermata.schema_text t USING (text_sha256)"
	" WHERE s.registry = $1::text AND s.fact = 'reader' ORDER BY s.ref COLLATE \"C\"",
};

static const struct statement every_schema = {
	"listing schemas",
	"SELECT " SCHEMA_COLUMNS ", t.seen_at, s.registry, s.id, EXISTS (SELECT FROM fermata.registry_schema r"
	" WHERE r.text_sha256 = t.text_sha256 AND r.fact = 'reader')"
	" FROM fermata.schema_text t LEFT JOIN LATERAL (SELECT r.registry, r.id FROM fermata.registry_schema r"
	" WHERE r.text_sha256 = t.text_sha256 ORDER BY r.id IS NULL, r.registry, r.id LIMIT 1) s ON true"
	" ORDER BY t.seen_at, t.text_sha256",
};

static const struct statement count_uses = {
	"counting what waits by its schema",
	"SELECT u.sha256, sum(u.count)::bigint FROM ("
	"SELECT coalesce(s.schema_sha256, w.own) AS sha256, w.count FROM ("
	"SELECT c.common, c.own_schema_sha256 AS own, count(*) FROM fermata.checkpoint c WHERE c.filled"
	" AND c.state IN ('PENDING', 'DECIDED', 'QUARANTINED', 'IN_DOUBT') GROUP BY c.common, c.own_schema_sha256"
	") w LEFT JOIN fermata.common s ON s.id = w.common"
	") u WHERE u.sha256 IS NOT NULL GROUP BY u.sha256 ORDER BY u.sha256",
};

/* ---- texts that go in ---- */

static void fingerprint_to_bytes(uint64_t fingerprint, uint8_t ret_bytes[FINGERPRINT_LEN])
{
	for (size_t i = 0; i < FINGERPRINT_LEN; i++)
		ret_bytes[i] = (uint8_t)(fingerprint >> (8 * i));
}

static void put_sha256(struct params *params, const void *field)
{
	item_bytes(params, (struct view){ field, 32 });
}

static void put_fingerprint(struct params *params, const void *field)
{
	uint8_t bytes[FINGERPRINT_LEN];

	fingerprint_to_bytes(*(const uint64_t *)field, bytes);
	item_bytes(params, (struct view){ bytes, sizeof(bytes) });
}

static const struct column schema_columns[] = {
	{ PG_BYTEA, put_sha256, offsetof(struct schema_row, text_sha256) },
	{ PG_BYTEA, put_sha256, offsetof(struct schema_row, sha256) },
	{ PG_BYTEA, put_fingerprint, offsetof(struct schema_row, fingerprint) },
	{ PG_TEXT, column_put_view, offsetof(struct schema_row, text) },
};

static void send_texts(struct store *store, const void *const *rows, size_t len, int64_t now)
{
	struct params *params = store_params(store);

	params_columns(params, schema_columns, COLUMNS_LEN(schema_columns), rows, len);
	param_int8(params, now);
	store_send(store, &keep_texts, params, NULL);
}

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, keeping schemas: no memory");
}

enum fate store_schemas_keep(struct store *store, const struct schema_row *rows, size_t len, int64_t now,
                             struct error *error)
{
	const void **texts = calloc(len + 1, sizeof(*texts));

	if (texts == NULL)
		return no_memory(error);
	for (size_t i = 0; i < len; i++)
		texts[i] = &rows[i];
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);
	if (fate == FATE_OK) {
		send_texts(store, texts, len, now);
		fate = transaction_finish(store, error);
	}
	free(texts);
	return fate;
}

static void put_kind(struct params *params, const void *field)
{
	item_name(params, registry_fact_name((int)*(const enum registry_fact_kind *)field));
}

static void put_id(struct params *params, const void *field)
{
	if (*(const int32_t *)field == 0)
		item_null(params);
	else
		column_put_int4(params, field);
}

static void put_text_key(struct params *params, const void *field)
{
	const struct schema_row *schema = field;

	if (view_is_null(schema->text))
		item_null(params);
	else
		put_sha256(params, schema->text_sha256);
}

static const struct column fact_columns[] = {
	{ PG_TEXT, put_kind, offsetof(struct registry_fact, kind) },
	{ PG_TEXT, column_put_view, offsetof(struct registry_fact, ref) },
	{ PG_INT4, put_id, offsetof(struct registry_fact, id) },
	{ PG_BYTEA, put_text_key, offsetof(struct registry_fact, schema) },
};

enum fate store_registry_keep(struct store *store, const char *registry, const struct registry_fact *facts,
                              size_t len, int64_t now, struct error *error)
{
	const void **rows = calloc(len + 1, 2 * sizeof(*rows));

	if (rows == NULL)
		return no_memory(error);
	const void **texts = rows + len;
	size_t texts_len = 0;
	for (size_t i = 0; i < len; i++) {
		rows[i] = &facts[i];
		if (!view_is_null(facts[i].schema.text))
			texts[texts_len++] = &facts[i].schema;
	}
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);
	if (fate == FATE_OK) {
		send_texts(store, texts, texts_len, now);
		struct params *params = store_params(store);
		param_name(params, registry);
		params_columns(params, fact_columns, COLUMNS_LEN(fact_columns), rows, len);
		param_int8(params, now);
		store_send(store, &keep_facts, params, NULL);
		fate = transaction_finish(store, error);
	}
	free(rows);
	return fate;
}

/* ---- texts that come out ---- */

static void row_schema(struct row *row, struct schema_row *ret_schema)
{
	uint8_t bytes[FINGERPRINT_LEN];

	row_fixed(row, ret_schema->text_sha256, sizeof(ret_schema->text_sha256));
	row_fixed(row, ret_schema->sha256, sizeof(ret_schema->sha256));
	row_fixed(row, bytes, sizeof(bytes));
	ret_schema->fingerprint = 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		ret_schema->fingerprint |= (uint64_t)bytes[i] << (8 * i);
	ret_schema->text = row_text_or_empty(row);
}

/* Rows that are gathered in an array of the arena, each of `size` bytes and read by `read`. */
struct gathered {
	struct arena *arena;
	size_t size;
	void (*read)(struct row *row, void *item);
	void *items;
	size_t len;
};

static enum fate gathered_rows(void *context, const PGresult *rows, struct error *error)
{
	struct gathered *gathered = context;
	size_t count = (size_t)PQntuples(rows);

	gathered->items = arena_array(gathered->arena, count, gathered->size);
	if (gathered->items == NULL)
		return list_no_memory(error);
	for (; gathered->len < count; gathered->len++) {
		struct row row = row_at(rows, (int)gathered->len, gathered->arena);
		gathered->read(&row, (uint8_t *)gathered->items + gathered->len * gathered->size);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* Begins a question: its parameters, or NULL. */
static struct params *begin_asking(struct store *store, enum fate *ret_fate, struct error *error)
{
	*ret_fate = transaction_begin(store, TRANSACTION_READ, error);
	return *ret_fate == FATE_OK ? store_params(store) : NULL;
}

static enum fate gather(struct store *store, const struct statement *statement, struct params *params,
                        struct gathered *gathered, struct error *error)
{
	store_send(store, statement, params, &(struct answer){ .rows = gathered_rows, .context = gathered });
	return transaction_finish(store, error);
}

static void read_schema(struct row *row, void *item)
{
	row_schema(row, item);
}

enum fate store_schema_by_sha256(struct store *store, const uint8_t sha256[32], struct arena *arena,
                                 bool *ret_found, struct schema_row *ret_row, struct error *error)
{
	struct gathered gathered = { .arena = arena, .size = sizeof(*ret_row), .read = read_schema };
	enum fate fate;
	struct params *params = begin_asking(store, &fate, error);

	*ret_found = false;
	*ret_row = (struct schema_row){ .text = VIEW_NULL };
	if (params == NULL)
		return fate;
	param_bytes(params, (struct view){ sha256, 32 });
	fate = gather(store, &by_sha256, params, &gathered, error);
	if (fate != FATE_OK || gathered.len == 0)
		return fate;
	*ret_found = true;
	*ret_row = *(const struct schema_row *)gathered.items;
	return FATE_OK;
}

enum fate store_schema_by_fingerprint(struct store *store, uint64_t fingerprint, struct arena *arena,
                                      struct schema_row **ret_rows, size_t *ret_len, struct error *error)
{
	struct gathered gathered = { .arena = arena, .size = sizeof(**ret_rows), .read = read_schema };
	uint8_t bytes[FINGERPRINT_LEN];
	enum fate fate;
	struct params *params = begin_asking(store, &fate, error);

	*ret_rows = NULL;
	*ret_len = 0;
	if (params == NULL)
		return fate;
	fingerprint_to_bytes(fingerprint, bytes);
	param_bytes(params, (struct view){ bytes, sizeof(bytes) });
	fate = gather(store, &by_fingerprint, params, &gathered, error);
	if (fate != FATE_OK)
		return fate;
	*ret_rows = gathered.items;
	*ret_len = gathered.len;
	return FATE_OK;
}

struct found_fact {
	int32_t id;
	struct view text;
};

static void read_fact(struct row *row, void *item)
{
	struct found_fact *fact = item;

	fact->id = row_int4(row);
	fact->text = row_text(row);
}

enum fate store_registry_find(struct store *store, const char *registry, enum registry_fact_kind kind,
                              struct view ref, struct arena *arena, bool *ret_found, int32_t *ret_id,
                              struct view *ret_text, struct error *error)
{
	struct gathered gathered = { .arena = arena, .size = sizeof(struct found_fact), .read = read_fact };
	enum fate fate;
	struct params *params = begin_asking(store, &fate, error);

	*ret_found = false;
	*ret_id = 0;
	*ret_text = VIEW_NULL;
	if (params == NULL)
		return fate;
	param_name(params, registry);
	param_name(params, registry_fact_name((int)kind));
	param_text(params, ref);
	fate = gather(store, &find_fact, params, &gathered, error);
	if (fate != FATE_OK || gathered.len == 0)
		return fate;
	const struct found_fact *fact = gathered.items;
	*ret_found = true;
	*ret_id = fact->id;
	*ret_text = fact->text;
	return FATE_OK;
}

static void read_reader(struct row *row, void *item)
{
	struct registry_reader *reader = item;

	reader->name = row_text_or_empty(row);
	reader->id = row_int4(row);
	reader->text = row_text_or_empty(row);
}

enum fate store_registry_readers(struct store *store, const char *registry, struct arena *arena,
                                 struct registry_reader **ret_readers, size_t *ret_len, struct error *error)
{
	struct gathered gathered = { .arena = arena, .size = sizeof(**ret_readers), .read = read_reader };
	enum fate fate;
	struct params *params = begin_asking(store, &fate, error);

	*ret_readers = NULL;
	*ret_len = 0;
	if (params == NULL)
		return fate;
	param_name(params, registry);
	fate = gather(store, &select_readers, params, &gathered, error);
	if (fate != FATE_OK)
		return fate;
	*ret_readers = gathered.items;
	*ret_len = gathered.len;
	return FATE_OK;
}

/* ---- looking at it ---- */

struct schema_listing {
	struct arena *arena;
	store_each_schema *each;
	void *context;
	bool stopped;
};

static enum fate listed_rows(void *context, const PGresult *rows, struct error *error)
{
	struct schema_listing *listing = context;

	for (int i = 0; i < PQntuples(rows) && !listing->stopped; i++) {
		struct schema_seen seen;
		arena_reset(listing->arena);
		struct row row = row_at(rows, i, listing->arena);
		row_schema(&row, &seen.schema);
		seen.seen_at = row_int8(&row);
		seen.registry = row_text(&row);
		seen.registry_id = row_int4(&row);
		seen.reader = row_bool(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
		listing->stopped = !listing->each(listing->context, &seen);
	}
	return FATE_OK;
}

enum fate store_schemas_each(struct store *store, struct arena *arena, store_each_schema *each, void *context,
                             struct error *error)
{
	struct schema_listing listing = { .arena = arena, .each = each, .context = context };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &every_schema, NULL,
	           &(struct answer){ .rows = listed_rows, .context = &listing, .by_row = true });
	return transaction_finish(store, error);
}

static void read_use(struct row *row, void *item)
{
	struct schema_use *use = item;

	row_fixed(row, use->sha256, sizeof(use->sha256));
	use->waiting = row_int8(row);
}

enum fate store_schemas_used(struct store *store, struct arena *arena, struct schema_use **ret_uses,
                             size_t *ret_len, struct error *error)
{
	struct gathered gathered = { .arena = arena, .size = sizeof(**ret_uses), .read = read_use };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_uses = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	fate = gather(store, &count_uses, NULL, &gathered, error);
	if (fate != FATE_OK)
		return fate;
	*ret_uses = gathered.items;
	*ret_len = gathered.len;
	return FATE_OK;
}
