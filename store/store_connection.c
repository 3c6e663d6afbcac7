#include "store/store_connection.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_S 10

struct store {
	char *dsn; /* may be NULL */
	char *name;
	int connect_timeout_s;
	struct pipeline pipeline;
	struct params params;
	uint64_t connects;
	bool steady;
	bool open;      /* a transaction is */
	bool joined;    /* the call at work is part of it and must not end it */
	bool listening; /* LISTEN is to be made again on a new connection */
	uint64_t notified;
	uint64_t notifies; /* whom a NOTIFY is for that goes with the COMMIT of the transaction that is open */
};

/* ---- settings of the session ---- */

/*
 * $1: only for this transaction, which is what can be had behind a pooler. $2: plan each statement once. Where a
 * parameter is an array PostgreSQL takes the plan that it has for the dearer one and makes another for each call: for a
 * lone decision planning took longer than all that was planned.
 * The times end what holds locks and does not go on. Who waits for a row waits up to twice, first for its place
 * in the queue and then for who holds the row, and each wait has lock_timeout: twice that is less than
 * statement_timeout, so that the error is the one that names a lock; and once is more than what a process that
 * stopped in the middle of a transaction may still hold it.
 * A plan that was made while the tables were empty is kept for the life of the connection, so none may hang on
 * their size: scans, hashes and merges are off, for every statement is written to go by an index, and joins say
 * `key = ANY (ARRAY[other.key])`, which can only be carried out by looking key up in its index for each of the
 * other rows. (With `key = other.key` and tables that were analysed while they were empty, PostgreSQL 15 read the
 * whole table in the order of its index instead, for every batch ever after.)
 */
static const struct statement session_settings = {
	"session settings",
	"SELECT count(pg_catalog.set_config(name, value, $1::boolean)) FROM (VALUES"
	" ('search_path', 'pg_catalog, pg_temp'),"
	" ('client_min_messages', 'warning'),"
	" ('synchronous_commit', 'on'),"
	" ('idle_in_transaction_session_timeout', '30s'),"
	" ('lock_timeout', '40s'),"
	" ('statement_timeout', '120s'),"
	" ('enable_seqscan', 'off'),"
	" ('enable_hashjoin', 'off'),"
	" ('enable_mergejoin', 'off'),"
	" ('plan_cache_mode', CASE WHEN $2::boolean THEN 'force_generic_plan' ELSE 'auto' END),"
	" ('jit', 'off')"
	") AS settings (name, value)",
};

static const struct statement begin_write = {
	"beginning",
	"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
};
static const struct statement begin_read = {
	"beginning to read",
	"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
};
static const struct statement begin_snapshot = {
	"beginning a snapshot",
	"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};
/* Before the snapshot is taken: a day of payloads is not dropped then while the snapshot is read, which may know of
 * payloads in it that were moved elsewhere since. */
static const struct statement hold_days = {
	"holding the days of payloads",
	"LOCK TABLE ONLY fermata.payload IN ACCESS SHARE MODE",
};
static const struct statement commit = { "committing", "COMMIT" };
static const struct statement rollback = { "rolling back", "ROLLBACK" };
static const struct statement notify_outbox = {
	"notifying",
	"SELECT pg_catalog.pg_notify('fermata_outbox', $1::text)",
};
static const struct statement listen_outbox = { "listening", "LISTEN fermata_outbox" };

/* ---- open and close ---- */

static enum fate check_dsn(const char *dsn, struct error *error)
{
	char *why = NULL;

	if (dsn == NULL)
		return FATE_OK;
	PQconninfoOption *options = PQconninfoParse(dsn, &why);
	PQconninfoFree(options);
	PQfreemem(why); /* it may quote a password */
	if (options != NULL)
		return FATE_OK;
	return error_set(
		error, FATE_FATAL, ERR_USAGE,
		"postgres.dsn is not a connection string of libpq: write key=value pairs or a postgresql:// address");
}

enum fate store_open(struct store **ret_store, const struct store_settings *settings, struct error *error)
{
	enum fate fate = check_dsn(settings->dsn, error);

	if (fate != FATE_OK)
		return fate;
	struct store *store = calloc(1, sizeof(*store));
	if (store == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a connection to PostgreSQL");
	pipeline_init(&store->pipeline, settings->prepared);
	params_init(&store->params);
	store->steady = settings->steady;
	store->connect_timeout_s =
		settings->connect_timeout_s > 0 ? settings->connect_timeout_s : CONNECT_TIMEOUT_S;
	store->dsn = settings->dsn != NULL ? strdup(settings->dsn) : NULL;
	store->name = strdup(settings->name == NULL ? "fermata" : settings->name);
	if (store->name == NULL || (settings->dsn != NULL && store->dsn == NULL)) {
		store_close(store);
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a connection to PostgreSQL");
	}
	*ret_store = store;
	return FATE_OK;
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	pipeline_done(&store->pipeline);
	params_done(&store->params);
	if (store->dsn != NULL)
		memory_wipe(store->dsn, strlen(store->dsn));
	free(store->dsn);
	free(store->name);
	free(store);
}

void store_drop(struct store *store)
{
	pipeline_drop(&store->pipeline);
	store->open = false;
	store->joined = false;
	store->notifies = 0;
}

uint64_t store_reconnects(const struct store *store)
{
	return store->connects;
}

uint64_t store_round_trips(const struct store *store)
{
	return store->pipeline.round_trips;
}

int store_socket(const struct store *store)
{
	return store->pipeline.pg != NULL ? PQsocket(store->pipeline.pg) : -1;
}

/* ---- connecting ---- */

static void swallow_notice(void *context, const char *message)
{
	(void)context;
	(void)message;
}

/* What stands before the DSN can be overridden by it, what stands after it cannot. */
static PGconn *dial(const struct store *store)
{
	char connect_timeout[16];
	const char *const keys[] = {
		"connect_timeout",     "tcp_user_timeout", "keepalives", "keepalives_idle",
		"keepalives_interval", "keepalives_count", "dbname",     "target_session_attrs",
		"client_encoding",     "application_name", NULL,
	};
	const char *const values[] = {
		connect_timeout, "30000", "1", "30", "10", "3", store->dsn, "read-write", "UTF8", store->name, NULL,
	};

	snprintf(connect_timeout, sizeof(connect_timeout), "%d", store->connect_timeout_s);
	return PQconnectdbParams(keys, values, 1);
}

static enum fate settle_session(const struct store *store, PGconn *pg, struct error *error)
{
	const char *const values[] = { "false", store->steady ? "true" : "false" };
	enum fate fate = FATE_OK;

	if (!store->pipeline.prepare)
		return FATE_OK;
	PGresult *result = PQexecParams(pg, session_settings.text, 2, NULL, values, NULL, NULL, 0);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fate = pipeline_result_error(pg, result, session_settings.name, error);
	PQclear(result);
	if (fate == FATE_OK && store->listening) {
		result = PQexec(pg, listen_outbox.text);
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			fate = pipeline_result_error(pg, result, listen_outbox.name, error);
		PQclear(result);
	}
	return fate;
}

/* libpq's own words for a server that takes no writes, of any version; there is no code for them. */
static bool is_read_only(const char *words)
{
	return strstr(words, "read-only") != NULL || strstr(words, "standby") != NULL;
}

static enum fate not_connected(const PGconn *pg, struct error *error)
{
	if (!is_read_only(PQerrorMessage(pg)))
		return error_set(error, FATE_RETRY, ERR_SERVICE, "PostgreSQL, connecting: %s", PQerrorMessage(pg));
	return error_set_native(
		error, FATE_RETRY, ERR_SERVICE, SQLSTATE_READ_ONLY,
		"PostgreSQL is read-only (a standby, or default_transaction_read_only is on); point "
		"postgres.dsn to the primary, or turn it off");
}

enum fate store_connect(struct store *store, struct error *error)
{
	if (store->pipeline.pg != NULL)
		return FATE_OK;
	PGconn *pg = dial(store);
	if (pg == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, connecting: no memory");
	if (PQstatus(pg) != CONNECTION_OK) {
		enum fate fate = not_connected(pg, error);
		PQfinish(pg);
		return fate;
	}
	PQsetNoticeProcessor(pg, swallow_notice, NULL);
	enum fate fate = settle_session(store, pg, error);
	if (fate != FATE_OK) {
		PQfinish(pg);
		return fate;
	}
	store->connects++;
	store->notified = store->listening ? STORE_ALL_SHARDS : 0; /* what came meanwhile is not known */
	return pipeline_start(&store->pipeline, pg, error);
}

/* ---- transactions ---- */

struct params *store_params(struct store *store)
{
	params_reset(&store->params);
	return &store->params;
}

struct pipeline *store_pipeline(struct store *store)
{
	return &store->pipeline;
}

void store_send(struct store *store, const struct statement *statement, struct params *params,
                const struct answer *answer)
{
	pipeline_send(&store->pipeline, statement, params, answer);
}

enum fate transaction_begin(struct store *store, enum transaction_kind kind, struct error *error)
{
	static const struct statement *const begins[] = {
		[TRANSACTION_WRITE] = &begin_write,
		[TRANSACTION_READ] = &begin_read,
		[TRANSACTION_SNAPSHOT] = &begin_snapshot,
	};

	store->joined = store->open;
	if (store->joined) {
		assert(kind == TRANSACTION_READ);
		return FATE_OK;
	}
	enum fate fate = store_connect(store, error);
	if (fate != FATE_OK)
		return fate;
	store->open = true;
	store_send(store, begins[kind], NULL, NULL);
	if (kind == TRANSACTION_SNAPSHOT)
		store_send(store, &hold_days, NULL, NULL);
	if (!store->pipeline.prepare) {
		struct params *params = store_params(store);
		param_bool(params, true);
		param_bool(params, store->steady);
		store_send(store, &session_settings, params, NULL);
	}
	return FATE_OK;
}

enum fate transaction_flush(struct store *store, struct error *error)
{
	enum fate fate = pipeline_flush(&store->pipeline, error);

	if (fate == FATE_RETRY || store->pipeline.broken)
		store_drop(store);
	return fate;
}

void transaction_notify(struct store *store, uint64_t shards)
{
	store->notifies = store->open ? shards : 0;
}

static void send_notify(struct store *store)
{
	char text[17];

	if (store->notifies == 0)
		return;
	snprintf(text, sizeof(text), "%016" PRIx64, store->notifies);
	store->notifies = 0;
	struct params *params = store_params(store);
	param_name(params, text);
	store_send(store, &notify_outbox, params, NULL);
}

enum fate transaction_commit(struct store *store, struct error *error)
{
	send_notify(store);
	/* A transaction that failed answers COMMIT with ROLLBACK. */
	store_send(store, &commit, NULL, &(struct answer){ .tag = "COMMIT" });
	enum fate fate = transaction_flush(store, error);
	if (fate == FATE_OK)
		store->open = false;
	return fate;
}

enum fate transaction_finish(struct store *store, struct error *error)
{
	bool joined = store->joined;

	store->joined = false;
	enum fate fate = joined ? transaction_flush(store, error) : transaction_commit(store, error);
	if (fate != FATE_OK && !joined)
		store_rollback(store);
	return fate;
}

enum fate transaction_stale(struct store *store, struct error *error, const char *what)
{
	store_rollback(store);
	return error_set(error, FATE_RETRY, ERR_STALE, "PostgreSQL: somebody else is ahead of us: %s", what);
}

enum fate transaction_open(const struct store *store, struct error *error)
{
	if (store->open)
		return FATE_OK;
	return error_set(error, FATE_RETRY, ERR_SERVICE,
	                 "PostgreSQL: the connection was lost, and the transaction with it");
}

void store_rollback(struct store *store)
{
	struct error ignored;

	store->joined = false;
	store->notifies = 0;
	if (!store->open)
		return;
	/* What a failed call left queued is answered before, so that ROLLBACK is not skipped with the rest. */
	if (!pipeline_is_idle(&store->pipeline) && pipeline_flush(&store->pipeline, &ignored) == FATE_RETRY) {
		store_drop(store);
		return;
	}
	store_send(store, &rollback, NULL, &(struct answer){ .tag = "ROLLBACK" });
	if (transaction_flush(store, &ignored) != FATE_OK)
		store_drop(store);
	store->open = false;
}

enum fate store_commit(struct store *store, struct error *error)
{
	enum fate fate = transaction_open(store, error);

	if (fate != FATE_OK)
		return fate;
	return transaction_commit(store, error);
}

/* ---- notifications ---- */

enum fate store_listen(struct store *store, struct error *error)
{
	if (!store->pipeline.prepare)
		return FATE_OK; /* a pooler gives the session to others between transactions */
	assert(!store->open);
	enum fate fate = store_connect(store, error);
	if (fate != FATE_OK || store->listening)
		return fate;
	store_send(store, &listen_outbox, NULL, NULL);
	fate = transaction_flush(store, error);
	store->listening = fate == FATE_OK;
	return fate;
}

uint64_t store_shard_bit(struct view topic, int32_t partition)
{
	uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */

	for (size_t i = 0; i < topic.len; i++)
		hash = (hash ^ topic.data[i]) * UINT64_C(0x100000001B3);
	hash = (hash ^ (uint32_t)partition) * UINT64_C(0x100000001B3);
	return UINT64_C(1) << ((hash ^ hash >> 32) % 64);
}

/* What a payload says; one that says nothing, as those of older releases, is for everybody. */
static uint64_t shards_told(const char *payload)
{
	char *end = NULL;
	uint64_t shards = strtoull(payload, &end, 16);

	return strlen(payload) == 16 && *end == '\0' ? shards : STORE_ALL_SHARDS;
}

uint64_t store_notified(struct store *store)
{
	PGconn *pg = store->pipeline.pg;
	uint64_t notified = store->notified;

	store->notified = 0;
	if (pg == NULL)
		return notified;
	if (PQconsumeInput(pg) == 0) {
		store_drop(store); /* else its socket would be readable for ever */
		return STORE_ALL_SHARDS;
	}
	for (PGnotify *notify = PQnotifies(pg); notify != NULL; notify = PQnotifies(pg)) {
		notified |= shards_told(notify->extra);
		PQfreemem(notify);
	}
	return notified;
}

/* ---- outside of the pipeline ---- */

enum fate store_plain_begin(struct store *store, PGconn **ret_pg, struct error *error)
{
	assert(!store->open);
	enum fate fate = store_connect(store, error);
	if (fate != FATE_OK)
		return fate;
	*ret_pg = store->pipeline.pg;
	if (PQexitPipelineMode(*ret_pg) == 1 && PQsetnonblocking(*ret_pg, 0) == 0)
		return FATE_OK;
	store_drop(store);
	return error_set(error, FATE_RETRY, ERR_SERVICE, "PostgreSQL: could not leave pipeline mode");
}

void store_plain_end(struct store *store)
{
	PGconn *pg = store->pipeline.pg;

	if (pg != NULL && (PQsetnonblocking(pg, 1) != 0 || PQenterPipelineMode(pg) != 1))
		store_drop(store);
}

enum fate store_result_error(struct store *store, const PGresult *result, const char *doing,
                             struct error *error)
{
	enum fate fate = pipeline_result_error(store->pipeline.pg, result, doing, error);

	if (fate == FATE_RETRY)
		store_drop(store);
	return fate;
}
