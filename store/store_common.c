#include "store/store_common.h"

#include "store/store_columns.h"
#include "store/store_hash.h"

#include <stddef.h>
#include <string.h>

static struct view view_of_name(const char *name)
{
	return (struct view){ (const uint8_t *)name, name != NULL ? strlen(name) : 0 };
}

int64_t common_id(const struct checkpoint *checkpoint)
{
	uint64_t hash = hash_view(HASH_START, view_of_name(checkpoint->record.topic));

	hash = hash_view(hash, checkpoint->resumes_topic);
	hash = hash_view(hash, view_of_name(checkpoint->sealed.kek_id));
	return (int64_t)hash_view(
		hash, (struct view){ checkpoint->sealed.schema_sha256, sizeof(checkpoint->sealed.schema_sha256) });
}

/* ---- putting it there ---- */

static const struct statement insert_common = {
	"writing what rows have in common",
	"INSERT INTO fermata.common (id, suspend_topic, resumes_topic, kek_id, schema_sha256)"
	" SELECT u.id, coalesce(u.suspend_topic, ''), u.resumes_topic, u.kek_id, u.schema_sha256"
	" FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[])"
	" u (id, suspend_topic, resumes_topic, kek_id, schema_sha256) ORDER BY u.id ON CONFLICT (id) DO NOTHING",
};

static void put_id(struct params *params, const void *row)
{
	item_int8(params, common_id(row));
}

static void put_kek_id(struct params *params, const void *row)
{
	item_name(params, ((const struct checkpoint *)row)->sealed.kek_id);
}

static const struct column columns[] = {
	{ PG_INT8, put_id, 0 },
	{ PG_TEXT, column_put_name, offsetof(struct checkpoint, record.topic) },
	{ PG_TEXT, column_put_view, offsetof(struct checkpoint, resumes_topic) },
	{ PG_TEXT, put_kek_id, 0 },
	{ PG_BYTEA, column_put_digest, offsetof(struct checkpoint, sealed.schema_sha256) },
};

static bool is_there(const void *const *rows, size_t len, int64_t id)
{
	for (size_t i = 0; i < len; i++)
		if (common_id(rows[i]) == id)
			return true;
	return false;
}

void common_send(struct store *store, const struct batch_write *batch, const void **rows)
{
	size_t len = 0;
	int64_t last = 0;

	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		const struct checkpoint *row = batch->checkpoints[i].checkpoint;
		if (!batch->checkpoints[i].fill)
			continue;
		int64_t id = common_id(row);
		if ((len > 0 && id == last) || is_there(rows, len, id))
			continue;
		rows[len++] = row;
		last = id;
	}
	if (len == 0)
		return;
	struct params *params = store_params(store);
	params_columns(params, columns, COLUMNS_LEN(columns), rows, len);
	store_send(store, &insert_common, params, NULL);
}
