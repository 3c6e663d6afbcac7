#include "store/store_facts.h"

#include "store/store_connection.h"
#include "store/store_record.h"

#include <inttypes.h>
#include <stdio.h>

static const struct statement server_facts = {
	"asking for the server's settings",
	"SELECT current_setting('server_version_num')::integer, current_setting('fsync')::boolean,"
	" current_setting('full_page_writes')::boolean, current_setting('synchronous_commit'),"
	" current_setting('max_connections')::integer,"
	" (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
};

static const struct statement installed = {
	"asking who works on the database",
	"SELECT worker_group, cluster_id FROM fermata.installation",
};

static const struct statement installed_since = {
	"asking since when the installation is there",
	"SELECT since FROM fermata.installation",
};

static const struct statement published_topics = {
	"asking for the resumes topics",
	"SELECT topic, partitions FROM fermata.resumes_topic ORDER BY topic",
};

static const struct statement set_aside = {
	"counting what waits for an operator",
	"SELECT count(*) FILTER (WHERE state = 'QUARANTINED'), count(*) FILTER (WHERE state = 'IN_DOUBT')"
	" FROM fermata.checkpoint WHERE state IN ('QUARANTINED', 'IN_DOUBT')",
};

struct facts_answer {
	struct store_facts *facts;
	struct arena *arena;
};

static enum fate facts_rows(void *context, const PGresult *rows, struct error *error)
{
	struct facts_answer *answer = context;
	struct row row = row_at(rows, 0, answer->arena);

	answer->facts->server_version = row_int4(&row);
	answer->facts->fsync = row_bool(&row);
	answer->facts->full_page_writes = row_bool(&row);
	answer->facts->synchronous_commit = row_text(&row);
	answer->facts->max_connections = row_int4(&row);
	answer->facts->clock = row_int8(&row);
	return row_end(&row, error);
}

enum fate store_facts(struct store *store, struct arena *arena, struct store_facts *ret_facts,
                      struct error *error)
{
	struct facts_answer answer = { ret_facts, arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &server_facts, NULL, &(struct answer){ .rows = facts_rows, .context = &answer });
	return transaction_finish(store, error);
}

static enum fate since_rows(void *context, const PGresult *rows, struct error *error)
{
	if (PQntuples(rows) == 0)
		return FATE_OK;
	struct row row = row_at(rows, 0, NULL);

	*(int64_t *)context = row_int8(&row);
	return row_end(&row, error);
}

enum fate store_installation_mark(struct store *store, char ret_mark[STORE_MARK_CAP], struct error *error)
{
	int64_t since = 0;
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	ret_mark[0] = '\0';
	if (fate != FATE_OK)
		return fate;
	store_send(store, &installed_since, NULL, &(struct answer){ .rows = since_rows, .context = &since });
	fate = transaction_finish(store, error);
	if (fate == FATE_OK && since != 0)
		snprintf(ret_mark, STORE_MARK_CAP, "%" PRIx64, (uint64_t)since);
	return fate;
}

struct installed_answer {
	struct view *group;
	struct view *cluster;
	struct arena *arena;
};

static enum fate installed_rows(void *context, const PGresult *rows, struct error *error)
{
	struct installed_answer *answer = context;
	if (PQntuples(rows) == 0)
		return FATE_OK;
	struct row row = row_at(rows, 0, answer->arena);

	*answer->group = row_text(&row);
	*answer->cluster = row_text(&row);
	return row_end(&row, error);
}

enum fate store_installed(struct store *store, struct arena *arena, struct view *ret_group,
                          struct view *ret_cluster, struct error *error)
{
	struct installed_answer answer = { ret_group, ret_cluster, arena };

	*ret_group = *ret_cluster = VIEW_NULL;
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);
	if (fate != FATE_OK)
		return fate;
	store_send(store, &installed, NULL, &(struct answer){ .rows = installed_rows, .context = &answer });
	return transaction_finish(store, error);
}

struct topics_answer {
	struct arena *arena;
	struct resumes_topic *topics;
	size_t len;
};

static enum fate topics_rows(void *context, const PGresult *rows, struct error *error)
{
	struct topics_answer *answer = context;
	size_t count = (size_t)PQntuples(rows);

	answer->topics = arena_array(answer->arena, count, sizeof(*answer->topics));
	if (answer->topics == NULL)
		return list_no_memory(error);
	for (; answer->len < count; answer->len++) {
		struct row row = row_at(rows, (int)answer->len, answer->arena);
		answer->topics[answer->len].topic = row_text_or_empty(&row);
		answer->topics[answer->len].partitions = row_int4(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate store_published_topics(struct store *store, struct arena *arena, struct resumes_topic **ret_topics,
                                 size_t *ret_len, struct error *error)
{
	struct topics_answer answer = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &published_topics, NULL, &(struct answer){ .rows = topics_rows, .context = &answer });
	fate = transaction_finish(store, error);
	*ret_topics = answer.topics;
	*ret_len = answer.len;
	return fate;
}

static enum fate set_aside_rows(void *context, const PGresult *rows, struct error *error)
{
	int64_t *counts = context;
	struct row row = row_at(rows, 0, NULL);

	counts[0] = row_int8(&row);
	counts[1] = row_int8(&row);
	return row_end(&row, error);
}

enum fate store_set_aside(struct store *store, int64_t *ret_quarantined, int64_t *ret_in_doubt,
                          struct error *error)
{
	int64_t counts[2] = { 0, 0 };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate == FATE_OK) {
		store_send(store, &set_aside, NULL, &(struct answer){ .rows = set_aside_rows, .context = counts });
		fate = transaction_finish(store, error);
	}
	*ret_quarantined = counts[0];
	*ret_in_doubt = counts[1];
	return fate;
}
