#include "bench/database.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_ALLOWED "42501" /* insufficient_privilege */
#define HEADER_LEN  19

struct database {
	PGconn *pg;
};

/* ---- errors ---- */

/* What PostgreSQL said, on one line. */
static enum fate failed(const PGconn *pg, const PGresult *result, const char *doing, struct error *error)
{
	const char *state = result != NULL ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *said = result != NULL ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	char line[200];

	snprintf(line, sizeof(line), "%s", said != NULL ? said : PQerrorMessage(pg));
	for (char *at = line; *at != '\0'; at++)
		if (*at == '\n')
			*at = ' ';
	return error_set_native(error, FATE_FATAL,
	                        state != NULL && strcmp(state, NOT_ALLOWED) == 0 ? ERR_USAGE : ERR_SERVICE, state,
	                        "PostgreSQL, %s: %s", doing, line);
}

/* Takes result. */
static enum fate expect(struct database *database, PGresult *result, ExecStatusType wanted, const char *doing,
                        struct error *error)
{
	enum fate fate = FATE_OK;

	if (PQresultStatus(result) != wanted)
		fate = failed(database->pg, result, doing, error);
	PQclear(result);
	return fate;
}

/* ---- connections ---- */

static void put_option(struct buffer *out, const char *keyword, const char *value)
{
	buffer_printf(out, "%s%s='", out->len > 0 ? " " : "", keyword);
	for (; *value != '\0'; value++) {
		if (*value == '\'' || *value == '\\')
			buffer_append_byte(out, '\\');
		buffer_append_byte(out, (uint8_t)*value);
	}
	buffer_append_byte(out, '\'');
}

enum fate database_dsn(const char *dsn, const char *name, char *ret_dsn, size_t cap, struct error *error)
{
	PQconninfoOption *options = PQconninfoParse(dsn != NULL ? dsn : "", NULL);
	struct buffer text;
	enum fate fate = FATE_OK;

	if (options == NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE, "postgres.dsn is no connection string of libpq");
	buffer_init(&text, cap - 1);
	for (const PQconninfoOption *option = options; option->keyword != NULL; option++)
		if (option->val != NULL && strcmp(option->keyword, "dbname") != 0)
			put_option(&text, option->keyword, option->val);
	put_option(&text, "dbname", name);
	if (buffer_failed(&text))
		fate = error_set(error, FATE_FATAL, ERR_USAGE, "postgres.dsn is too long");
	else
		snprintf(ret_dsn, cap, "%.*s", (int)text.len, (const char *)text.data);
	buffer_done(&text);
	PQconninfoFree(options);
	return fate;
}

static void no_notices(void *context, const char *message)
{
	(void)context;
	(void)message;
}

enum fate database_open(struct database **ret_database, const char *dsn, struct error *error)
{
	const char *const keywords[] = { "dbname", "application_name", "connect_timeout", NULL };
	const char *const values[] = { dsn, "fermata bench", "10", NULL };
	struct database *database = calloc(1, sizeof(*database));

	if (database == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a connection");
	database->pg = PQconnectdbParams(keywords, values, 1);
	if (PQstatus(database->pg) != CONNECTION_OK) {
		(void)failed(database->pg, NULL, "connecting", error);
		database_close(database);
		return FATE_FATAL;
	}
	(void)PQsetNoticeProcessor(database->pg, no_notices, NULL);
	*ret_database = database;
	return FATE_OK;
}

void database_close(struct database *database)
{
	if (database == NULL)
		return;
	PQfinish(database->pg);
	free(database);
}

/* ---- a database of one's own ---- */

enum fate database_create(struct database *database, const char *name, struct error *error)
{
	char sql[160];
	enum fate fate;

	snprintf(sql, sizeof(sql), "CREATE DATABASE \"%.63s\"", name);
	fate = expect(database, PQexec(database->pg, sql), PGRES_COMMAND_OK, "making a database", error);
	if (fate != FATE_OK && strcmp(error->native, NOT_ALLOWED) == 0)
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"the user %.60s of postgres.dsn may not make databases, and a measurement has one of its "
			"own: ALTER ROLE ... CREATEDB, give another postgres.dsn, or take `--dev`",
			PQuser(database->pg));
	return fate;
}

enum fate database_drop(struct database *database, const char *name, struct error *error)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS \"%.63s\" WITH (FORCE)", name);
	return expect(database, PQexec(database->pg, sql), PGRES_COMMAND_OK, "removing a database", error);
}

/* ---- statements ---- */

/* What libpq has to say before the connection takes another statement. */
static void drain(struct database *database)
{
	PGresult *result;

	while ((result = PQgetResult(database->pg)) != NULL)
		PQclear(result);
}

enum fate database_run(struct database *database, const char *sql, struct error *error)
{
	PGresult *result = PQexec(database->pg, sql);
	ExecStatusType status = PQresultStatus(result);

	return expect(database, result, status == PGRES_TUPLES_OK ? PGRES_TUPLES_OK : PGRES_COMMAND_OK,
	              "a statement", error);
}

static void cancel(struct database *database)
{
	PGcancel *request = PQgetCancel(database->pg);
	char why[128];

	if (request != NULL)
		(void)PQcancel(request, why, sizeof(why));
	PQfreeCancel(request);
	drain(database);
}

enum fate database_run_long(struct database *database, const char *sql, database_wait *wait, void *context,
                            struct error *error)
{
	enum fate fate = FATE_OK;

	if (PQsendQuery(database->pg, sql) != 1)
		return failed(database->pg, NULL, "a statement", error);
	while (PQconsumeInput(database->pg) == 1 && PQisBusy(database->pg)) {
		fate = wait(context, error);
		if (fate == FATE_OK)
			continue;
		cancel(database);
		return fate;
	}
	fate = expect(database, PQgetResult(database->pg), PGRES_COMMAND_OK, "a statement", error);
	drain(database);
	return fate;
}

enum fate database_number(struct database *database, const char *sql, const char *parameter,
                          int64_t *ret_number, struct error *error)
{
	PGresult *result =
		PQexecParams(database->pg, sql, parameter != NULL ? 1 : 0, NULL, &parameter, NULL, NULL, 0);

	*ret_number = 0;
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
		*ret_number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	return expect(database, result, PGRES_TUPLES_OK, "a question", error);
}

enum fate database_text(struct database *database, const char *sql, char *ret_text, size_t cap,
                        struct error *error)
{
	PGresult *result = PQexec(database->pg, sql);

	ret_text[0] = '\0';
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
		snprintf(ret_text, cap, "%s", PQgetvalue(result, 0, 0));
	return expect(database, result, PGRES_TUPLES_OK, "a question", error);
}

/* ---- COPY ---- */

static const char header[HEADER_LEN + 1] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
static const char trailer[] = "\377\377";

void copy_rows_init(struct copy_rows *rows, size_t ceiling)
{
	*rows = (struct copy_rows){ .ends = NULL };
	buffer_init(&rows->bytes, ceiling);
}

void copy_rows_done(struct copy_rows *rows)
{
	buffer_done(&rows->bytes);
	free(rows->ends);
	rows->ends = NULL;
	rows->len = rows->cap = 0;
}

static enum fate add_end(struct copy_rows *rows, size_t end, struct error *error)
{
	if (rows->len == rows->cap) {
		size_t cap = rows->cap > 0 ? 2 * rows->cap : 1024;
		size_t *ends = realloc(rows->ends, cap * sizeof(*ends));
		if (ends == NULL)
			return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the rows");
		rows->ends = ends;
		rows->cap = cap;
	}
	rows->ends[rows->len++] = end;
	return FATE_OK;
}

enum fate copy_rows_end(struct copy_rows *rows, struct error *error)
{
	if (buffer_failed(&rows->bytes))
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the rows");
	return add_end(rows, rows->bytes.len, error);
}

static uint32_t be(const uint8_t *at, size_t len)
{
	uint32_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | at[i];
	return value;
}

/* The length of the row that the bytes begin with: 0 for the trailer, or when it is not whole. */
static size_t row_len(const uint8_t *at, size_t len)
{
	size_t used = 2;

	if (len < 2 || be(at, 2) == 0xffff)
		return 0;
	for (uint32_t fields = be(at, 2); fields > 0; fields--) {
		if (used + 4 > len)
			return 0;
		uint32_t field = be(at + used, 4);
		used += 4 + (field == UINT32_MAX ? 0 : field);
	}
	return used <= len ? used : 0;
}

/* Finds the rows in what was received from `from` on, the header left out. */
static enum fate find_rows(struct copy_rows *rows, size_t from, struct error *error)
{
	struct buffer *bytes = &rows->bytes;
	enum fate fate = FATE_OK;
	size_t at = from, len;

	if (buffer_failed(bytes) || bytes->len < from + HEADER_LEN)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the rows");
	memmove(bytes->data + from, bytes->data + from + HEADER_LEN, bytes->len - from - HEADER_LEN);
	bytes->len -= HEADER_LEN;
	while (fate == FATE_OK && (len = row_len(bytes->data + at, bytes->len - at)) > 0) {
		at += len;
		fate = add_end(rows, at, error);
	}
	bytes->len = at;
	return fate;
}

enum fate database_copy_out(struct database *database, const char *query, struct copy_rows *rows,
                            struct error *error)
{
	char sql[512], *piece;
	size_t from = rows->bytes.len;
	int len;
	enum fate fate;

	snprintf(sql, sizeof(sql), "COPY (%.400s) TO STDOUT (FORMAT binary)", query);
	fate = expect(database, PQexec(database->pg, sql), PGRES_COPY_OUT, "reading rows", error);
	if (fate != FATE_OK)
		return fate;
	while ((len = PQgetCopyData(database->pg, &piece, 0)) > 0) {
		buffer_append(&rows->bytes, piece, (size_t)len);
		PQfreemem(piece);
	}
	fate = expect(database, PQgetResult(database->pg), PGRES_COMMAND_OK, "reading rows", error);
	drain(database);
	return fate == FATE_OK ? find_rows(rows, from, error) : fate;
}

enum fate database_copy_in(struct database *database, const char *table, const struct copy_rows *rows,
                           size_t first, size_t end, struct error *error)
{
	size_t from = first > 0 ? rows->ends[first - 1] : 0;
	size_t to = end > 0 ? rows->ends[end - 1] : 0;
	char sql[160];
	enum fate fate;

	snprintf(sql, sizeof(sql), "COPY %.100s FROM STDIN (FORMAT binary)", table);
	fate = expect(database, PQexec(database->pg, sql), PGRES_COPY_IN, "COPY", error);
	if (fate != FATE_OK)
		return fate;
	if (PQputCopyData(database->pg, header, HEADER_LEN) != 1 ||
	    PQputCopyData(database->pg, (const char *)rows->bytes.data + from, (int)(to - from)) != 1 ||
	    PQputCopyData(database->pg, trailer, sizeof(trailer) - 1) != 1 ||
	    PQputCopyEnd(database->pg, NULL) != 1)
		return failed(database->pg, NULL, "COPY", error);
	fate = expect(database, PQgetResult(database->pg), PGRES_COMMAND_OK, "COPY", error);
	drain(database);
	return fate;
}
