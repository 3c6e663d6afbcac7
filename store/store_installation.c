#include "store/store_connection.h"
#include "store/store_record.h"

/* Waits for another first start, so that one of the two sees what the other wrote. */
static const struct statement first_start = {
	"writing the installation",
	"INSERT INTO fermata.installation (worker_group, cluster_id, since)"
	" VALUES ($1::text, $2::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
	" ON CONFLICT (only_one) DO NOTHING",
};

static const struct statement adopt_group = {
	"adopting the installation",
	"UPDATE fermata.installation SET worker_group = $1::text WHERE worker_group <> $1::text",
};

static const struct statement select_installation = {
	"reading the installation",
	"SELECT worker_group, cluster_id FROM fermata.installation",
};

static const struct statement add_topics = {
	"adding resumes topics",
	"INSERT INTO fermata.resumes_topic (topic, partitions)"
	" SELECT t.topic, t.partitions FROM unnest($1::text[], $2::integer[]) t (topic, partitions) ORDER BY "
	"t.topic"
	" ON CONFLICT (topic) DO NOTHING",
};

static const struct statement select_topics = {
	"reading the resumes topics",
	"SELECT topic, partitions FROM fermata.resumes_topic ORDER BY topic",
};

struct installation {
	struct arena *arena;
	struct view group;
	struct view cluster_id;
	struct resumes_topic *topics;
	size_t len;
	size_t cap;
};

static enum fate installation_rows(void *context, const PGresult *rows, struct error *error)
{
	struct installation *installation = context;
	struct row row = row_at(rows, 0, installation->arena);

	installation->group = row_text_or_empty(&row);
	installation->cluster_id = row_text_or_empty(&row);
	return row_end(&row, error);
}

static enum fate topic_rows(void *context, const PGresult *rows, struct error *error)
{
	struct installation *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct resumes_topic *topics =
			list_room(list->arena, list->topics, list->len, &list->cap, sizeof(*topics));
		if (topics == NULL)
			return list_no_memory(error);
		list->topics = topics;
		struct row row = row_at(rows, i, list->arena);
		topics[list->len].topic = row_text_or_empty(&row);
		topics[list->len++].partitions = row_int4(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static void send_installation(struct store *store, const char *group, const char *cluster_id, bool adopt)
{
	struct params *params = store_params(store);

	param_name(params, group);
	param_name(params, cluster_id);
	store_send(store, &first_start, params, NULL);
	if (!adopt)
		return;
	params = store_params(store);
	param_name(params, group);
	store_send(store, &adopt_group, params, NULL);
}

static void send_topics(struct store *store, const struct resumes_topic *topics, size_t len)
{
	struct params *params = store_params(store);

	param_array(params, PG_TEXT, len);
	for (size_t i = 0; i < len; i++)
		item_text(params, topics[i].topic);
	param_array(params, PG_INT4, len);
	for (size_t i = 0; i < len; i++)
		item_int4(params, topics[i].partitions);
	store_send(store, &add_topics, params, NULL);
}

static enum fate check_installation(const struct installation *found, const char *group,
                                    const char *cluster_id, struct error *error)
{
	if (!view_equal_text(found->cluster_id, cluster_id))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"this database belongs to the Kafka cluster \"%.*s\", and kafka.bootstrap.servers leads "
			"to \"%s\": use another database, or the cluster that it knows",
			(int)found->cluster_id.len, (const char *)found->cluster_id.data, cluster_id);
	if (!view_equal_text(found->group, group))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"this database belongs to the worker group \"%.*s\", not \"%s\", and two groups on it would "
			"not fence each other: set worker.group, or start once with --adopt-group",
			(int)found->group.len, (const char *)found->group.data, group);
	return FATE_OK;
}

static enum fate check_topics(const struct installation *found, const struct resumes_topic *topics,
                              size_t len, struct error *error)
{
	for (size_t i = 0; i < len; i++)
		for (size_t j = 0; j < found->len; j++)
			if (view_equal(topics[i].topic, found->topics[j].topic) &&
			    topics[i].partitions != found->topics[j].partitions)
				return error_set(
					error, FATE_FATAL, ERR_USAGE,
					"topic %.*s has %d partitions and had %d when it was first published to: the "
					"partition count of a resumes topic is fixed for its life; route to a new topic",
					(int)topics[i].topic.len, (const char *)topics[i].topic.data, (int)topics[i].partitions,
					(int)found->topics[j].partitions);
	return FATE_OK;
}

enum fate store_installation(struct store *store, const char *group, const char *cluster_id, bool adopt,
                             const struct resumes_topic *topics, size_t len, struct arena *arena,
                             struct resumes_topic **ret_known, size_t *ret_len, struct error *error)
{
	struct installation found = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	send_installation(store, group, cluster_id, adopt);
	send_topics(store, topics, len);
	store_send(store, &select_installation, NULL,
	           &(struct answer){ .rows = installation_rows, .context = &found });
	store_send(store, &select_topics, NULL, &(struct answer){ .rows = topic_rows, .context = &found });
	fate = transaction_flush(store, error);
	if (fate == FATE_OK)
		fate = check_installation(&found, group, cluster_id, error);
	if (fate == FATE_OK)
		fate = check_topics(&found, topics, len, error);
	if (fate == FATE_OK)
		fate = transaction_commit(store, error);
	if (fate != FATE_OK)
		store_rollback(store);
	*ret_known = found.topics;
	*ret_len = found.len;
	return fate;
}
