/*
 * Each migration is a transaction of its own, under an advisory lock that ends with it (a lock of the session
 * would be lost behind a pooler), with the version looked up under that lock: run by many at once, each one is
 * applied once. The schema and the table of versions are made in the first of these transactions.
 */
#include "store/store_migrate.h"

#include "store/store_connection.h"
#include "store/store_row.h"

#include <stdio.h>
#include <string.h>

static const char begin_text[] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/* Others may be at work for long, and so may a migration; other locks are waited for as usual. */
static const char lock_text[] = "SELECT pg_catalog.set_config('statement_timeout', '0', true), "
								"pg_catalog.set_config('lock_timeout', '0', true),"
								" pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', true),"
								" pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);"
								"SELECT pg_catalog.pg_advisory_xact_lock(1179996749, 1);"
								"SELECT pg_catalog.set_config('lock_timeout', '40s', true)";

/* Looked for first: CREATE SCHEMA IF NOT EXISTS wants the right to create one even where it is there. */
static const char has_schema_text[] =
	"SELECT count(*)::integer FROM pg_catalog.pg_namespace WHERE nspname = 'fermata'";
static const char create_schema_text[] = "CREATE SCHEMA fermata";
static const char create_versions_text[] =
	"CREATE TABLE IF NOT EXISTS fermata.schema_version ("
	" version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";
static const char version_text[] = "SELECT coalesce(max(version), 0)::integer FROM fermata.schema_version";
static const char add_version_text[] =
	"INSERT INTO fermata.schema_version (version, name) VALUES ($1::integer, $2::text)";

/* ---- statements outside of the pipeline ---- */

static enum fate run(struct store *store, PGconn *pg, const char *text, const char *what, struct error *error)
{
	PGresult *result = PQexec(pg, text);
	ExecStatusType status = PQresultStatus(result);
	enum fate fate = FATE_OK;

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fate = store_result_error(store, result, what, error);
	PQclear(result);
	return fate;
}

static enum fate ask_number(struct store *store, PGconn *pg, const char *text, int *ret_number,
                            struct error *error)
{
	PGresult *result = PQexecParams(pg, text, 0, NULL, NULL, NULL, NULL, 1);
	enum fate fate;

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1) {
		struct row row = row_at(result, 0, NULL);
		*ret_number = row_int4(&row);
		fate = row_end(&row, error);
	} else {
		fate = store_result_error(store, result, "asking for the version of the schema", error);
	}
	PQclear(result);
	return fate;
}

static enum fate add_version(struct store *store, PGconn *pg, const struct migration *migration,
                             struct error *error)
{
	struct params *params = store_params(store);
	enum fate fate = FATE_OK;

	param_int4(params, migration->version);
	param_name(params, migration->name);
	params_seal(params);
	PGresult *result = PQexecParams(pg, add_version_text, (int)params->len, NULL, params->values,
	                                params->lengths, params->formats, 1);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fate = store_result_error(store, result, "writing the version of the schema", error);
	PQclear(result);
	return fate;
}

/* ---- migrating ---- */

static enum fate lock_and_ask(struct store *store, PGconn *pg, int *ret_version, struct error *error)
{
	int schemas;
	enum fate fate = run(store, pg, lock_text, "waiting for the lock of `fermata migrate`", error);

	if (fate == FATE_OK)
		fate = ask_number(store, pg, has_schema_text, &schemas, error);
	if (fate == FATE_OK && schemas == 0)
		fate = run(store, pg, create_schema_text, "making the schema fermata", error);
	if (fate == FATE_OK)
		fate = run(store, pg, create_versions_text, "making fermata.schema_version", error);
	if (fate == FATE_OK)
		fate = ask_number(store, pg, version_text, ret_version, error);
	return fate;
}

static enum fate newer(int version, struct error *error)
{
	return error_set(
		error, FATE_FATAL, ERR_USAGE,
		"the schema of the database is version %d and this program knows versions up to %d: it was "
		"brought up to date by a newer fermata, which is the one to run",
		version, migrations_len);
}

static enum fate apply(struct store *store, PGconn *pg, const struct migration *migration,
                       struct error *error)
{
	char what[96];

	snprintf(what, sizeof(what), "applying migration %04d %s", migration->version, migration->name);
	enum fate fate = run(store, pg, migration->sql, what, error);
	if (fate == FATE_OK)
		fate = add_version(store, pg, migration, error);
	return fate;
}

/* One transaction: the next migration, if there is one. *ret_version: what was found. */
static enum fate step(struct store *store, PGconn *pg, int *ret_version, struct error *error)
{
	enum fate fate = run(store, pg, begin_text, "beginning", error);

	if (fate != FATE_OK)
		return fate;
	fate = lock_and_ask(store, pg, ret_version, error);
	if (fate == FATE_OK && *ret_version > migrations_len)
		fate = newer(*ret_version, error);
	if (fate == FATE_OK && *ret_version < migrations_len)
		fate = apply(store, pg, &migrations[*ret_version], error);
	if (fate == FATE_OK)
		fate = run(store, pg, "COMMIT", "committing", error);
	else if (fate != FATE_RETRY) /* then there is no connection any more */
		PQclear(PQexec(pg, "ROLLBACK"));
	return fate;
}

enum fate store_migrate(struct store *store, int *ret_from, int *ret_to, struct error *error)
{
	PGconn *pg;
	int version;
	enum fate fate = store_plain_begin(store, &pg, error);

	if (fate != FATE_OK)
		return fate;
	fate = step(store, pg, &version, error);
	if (fate == FATE_OK)
		*ret_from = version;
	while (fate == FATE_OK && version < migrations_len)
		fate = step(store, pg, &version, error);
	if (fate == FATE_OK)
		*ret_to = version;
	store_plain_end(store);
	return fate;
}

/* ---- is it migrated? ---- */

static const struct statement schema_version = { "asking for the version of the schema", version_text };

static enum fate version_rows(void *context, const PGresult *rows, struct error *error)
{
	int *ret_version = context;
	struct row row = row_at(rows, 0, NULL);

	*ret_version = row_int4(&row);
	return row_end(&row, error);
}

static bool is_missing(const struct error *error)
{
	return strcmp(error->native, "42P01") == 0 || strcmp(error->native, "3F000") == 0;
}

enum fate store_check_version(struct store *store, struct error *error)
{
	int version = 0;
	struct error fault = { .fate = FATE_OK };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &schema_version, NULL, &(struct answer){ .rows = version_rows, .context = &version });
	fate = transaction_finish(store, &fault);
	if (fate != FATE_OK && !is_missing(&fault)) {
		if (error != NULL)
			*error = fault;
		return fate;
	}
	if (version > migrations_len)
		return newer(version, error);
	if (version == migrations_len)
		return FATE_OK;
	return error_set(
		error, FATE_RETRY, ERR_SERVICE,
		"the database has version %d of the schema and this program needs %d: run `fermata migrate`", version,
		migrations_len);
}

/* ---- partitions of the payload ---- */

static const struct statement make_days = {
	"making partitions",
	"SELECT count(fermata.payload_day_make($1::date + n)) FROM generate_series(0, $2::integer - 1) n",
};
/* A partition is attached between two inserts or not at all: what waits for it holds the others up. */
static const struct statement short_wait = {
	"setting lock_timeout",
	"SELECT pg_catalog.set_config('lock_timeout', '2s', true)",
};

enum fate store_payload_days(struct store *store, int64_t from_us, int count, struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &short_wait, NULL, NULL);
	struct params *params = store_params(store);
	param_day(params, from_us);
	param_int4(params, count);
	store_send(store, &make_days, params, NULL);
	return transaction_finish(store, error);
}
