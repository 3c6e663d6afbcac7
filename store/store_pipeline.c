#include "store/store_pipeline.h"

#include "core/clock.h"
#include "store/store_sqlstate.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* As many bytes may wait for the socket before everything else waits for them. */
#define UNFLUSHED_MAX ((size_t)256 * 1024)

/* How long a server may be silent: longer than statement_timeout, which ends what is merely slow. */
#define SILENCE_MAX_MS 150000

void pipeline_init(struct pipeline *pipeline, bool prepare)
{
	memset(pipeline, 0, sizeof(*pipeline));
	pipeline->prepare = prepare;
}

void pipeline_drop(struct pipeline *pipeline)
{
	PQfinish(pipeline->pg);
	pipeline->pg = NULL;
	pipeline->prepared_len = 0;
	pipeline->pending_first = 0;
	pipeline->pending_len = 0;
	pipeline->unflushed = 0;
	pipeline->broken = false;
	memset(&pipeline->fault, 0, sizeof(pipeline->fault));
}

void pipeline_done(struct pipeline *pipeline)
{
	pipeline_drop(pipeline);
	free(pipeline->pending);
	pipeline->pending = NULL;
}

enum fate pipeline_start(struct pipeline *pipeline, PGconn *pg, struct error *error)
{
	pipeline->pg = pg;
	if (PQsetnonblocking(pg, 1) == 0 && PQenterPipelineMode(pg) == 1)
		return FATE_OK;
	pipeline_drop(pipeline);
	return error_set(error, FATE_RETRY, ERR_SERVICE, "PostgreSQL, connecting: could not enter pipeline mode");
}

/* ---- faults ---- */

static struct sql_error sql_error_of(const PGresult *result)
{
	return (struct sql_error){
		.sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE),
		.severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED),
		.primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY),
		.table = PQresultErrorField(result, PG_DIAG_TABLE_NAME),
		.column = PQresultErrorField(result, PG_DIAG_COLUMN_NAME),
		.constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME),
		.type = PQresultErrorField(result, PG_DIAG_DATATYPE_NAME),
	};
}

enum fate pipeline_result_error(PGconn *pg, const PGresult *result, const char *doing, struct error *error)
{
	struct sql_error sql = sql_error_of(result);
	enum fate fate = sqlstate_error(&sql, doing, error);

	if (PQstatus(pg) != CONNECTION_BAD)
		return fate;
	if (error != NULL) {
		error->fate = FATE_RETRY;
		error->code = ERR_SERVICE;
	}
	return FATE_RETRY;
}

static const char *doing(const struct pending *pending)
{
	return pending->statement != NULL ? pending->statement->name : "waiting for the answers";
}

static bool faulty(const struct pipeline *pipeline)
{
	return pipeline->fault.fate != FATE_OK;
}

static void fault_result(struct pipeline *pipeline, const PGresult *result, const struct pending *pending)
{
	if (!faulty(pipeline))
		pipeline_result_error(pipeline->pg, result, doing(pending), &pipeline->fault);
}

static void fault_broken(struct pipeline *pipeline, const char *what)
{
	pipeline->broken = true;
	if (!faulty(pipeline))
		error_set(&pipeline->fault, FATE_RETRY, ERR_SERVICE, "PostgreSQL, %s: the connection was lost", what);
}

/* ---- what was sent and is not answered ---- */

static struct pending *push(struct pipeline *pipeline)
{
	size_t end = pipeline->pending_first + pipeline->pending_len;

	if (end == pipeline->pending_cap) {
		size_t cap = pipeline->pending_cap == 0 ? 64 : pipeline->pending_cap * 2;
		struct pending *larger = realloc(pipeline->pending, cap * sizeof(*larger));
		if (larger == NULL)
			return NULL;
		pipeline->pending = larger;
		pipeline->pending_cap = cap;
	}
	pipeline->pending_len++;
	return &pipeline->pending[end];
}

static void pop(struct pipeline *pipeline)
{
	pipeline->pending_first++;
	pipeline->pending_len--;
	if (pipeline->pending_len == 0)
		pipeline->pending_first = 0;
}

static bool queue(struct pipeline *pipeline, enum pending_kind kind, const struct statement *statement,
                  const struct answer *answer)
{
	struct pending *pending = push(pipeline);

	if (pending == NULL) {
		pipeline->broken = true; /* its answer could not be told from another's */
		error_set(&pipeline->fault, FATE_RETRY, ERR_MEMORY, "PostgreSQL, %s: no memory", statement->name);
		return false;
	}
	*pending = (struct pending){ .kind = kind, .statement = statement };
	if (answer != NULL)
		pending->answer = *answer;
	return true;
}

/* ---- answers ---- */

static void forget_prepared(struct pipeline *pipeline, const struct statement *statement)
{
	for (size_t i = 0; i < pipeline->prepared_len; i++) {
		if (pipeline->prepared[i] == statement) {
			pipeline->prepared[i] = pipeline->prepared[--pipeline->prepared_len];
			return;
		}
	}
}

static int64_t tuples(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_SINGLE_TUPLE)
		return 1;
	/* The result that ends a row by row answer counts all its rows in its tag: they were counted already. */
	const char *text = PQcmdTuples((PGresult *)(uintptr_t)result);
	return text[0] != '\0' ? strtoll(text, NULL, 10) : 0;
}

static void take_good(struct pipeline *pipeline, const struct pending *pending, const PGresult *result)
{
	const struct answer *answer = &pending->answer;
	const char *tag = PQcmdStatus((PGresult *)(uintptr_t)result);

	if (faulty(pipeline) || pending->kind != PENDING_STATEMENT)
		return;
	if (answer->tag != NULL && strcmp(tag, answer->tag) != 0) {
		error_set(&pipeline->fault, FATE_RETRY, ERR_SERVICE, "PostgreSQL, %s: the server answered %s",
		          pending->statement->name, tag);
		return;
	}
	bool end_of_rows = answer->by_row && PQresultStatus(result) != PGRES_SINGLE_TUPLE;
	if (answer->add_count != NULL && !end_of_rows)
		*answer->add_count += tuples(result);
	if (answer->rows != NULL && PQntuples(result) > 0) {
		struct error error;
		if (answer->rows(answer->context, result, &error) != FATE_OK)
			pipeline->fault = error;
	}
}

static void take(struct pipeline *pipeline, const struct pending *pending, const PGresult *result)
{
	switch ((int)PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
	case PGRES_SINGLE_TUPLE:
		take_good(pipeline, pending, result);
		break;
	case PGRES_PIPELINE_ABORTED:
		if (pending->kind == PENDING_PREPARE)
			forget_prepared(pipeline, pending->statement);
		break;
	default:
		if (pending->kind == PENDING_PREPARE)
			forget_prepared(pipeline, pending->statement);
		fault_result(pipeline, result, pending);
		break;
	}
}

/* Takes one result or end of results off the connection, which has one ready. */
static void harvest_one(struct pipeline *pipeline)
{
	struct pending *pending = &pipeline->pending[pipeline->pending_first];

	if (pending->answer.by_row && !pending->by_row_set)
		pending->by_row_set = PQsetSingleRowMode(pipeline->pg) == 1;
	PGresult *result = PQgetResult(pipeline->pg);
	if (result == NULL) {
		if (pending->kind != PENDING_SYNC)
			pop(pipeline);
		return;
	}
	if (PQresultStatus(result) == PGRES_PIPELINE_SYNC && pending->kind == PENDING_SYNC)
		pop(pipeline);
	else
		take(pipeline, pending, result);
	PQclear(result);
}

static void harvest(struct pipeline *pipeline)
{
	while (pipeline->pending_len > 0 && !PQisBusy(pipeline->pg)) {
		harvest_one(pipeline);
		if (PQstatus(pipeline->pg) == CONNECTION_BAD) {
			fault_broken(pipeline, "reading the answers");
			return;
		}
	}
}

/* ---- the socket ---- */

/* Waits until the socket can be read (or written, when that is wanted too). */
static bool wait_socket(struct pipeline *pipeline, bool write)
{
	int64_t deadline_ms = clock_mono_ms() + SILENCE_MAX_MS;
	struct pollfd pollfd = { PQsocket(pipeline->pg), (short)(POLLIN | (write ? POLLOUT : 0)), 0 };

	for (;;) {
		int64_t left = deadline_ms - clock_mono_ms();
		if (left <= 0) {
			fault_broken(pipeline, "waiting for the server, which did not answer for 150 s");
			return false;
		}
		int ready = poll(&pollfd, 1, (int)left);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR) {
			fault_broken(pipeline, "waiting for the server");
			return false;
		}
	}
}

/* Writes and reads until everything is written; with `answers`, until everything is answered too. */
static void pump(struct pipeline *pipeline, bool answers)
{
	while (!pipeline->broken) {
		int unwritten = PQflush(pipeline->pg);
		if (unwritten < 0) {
			/* What the server said before it went is worth more than that it went. */
			PQconsumeInput(pipeline->pg);
			harvest(pipeline);
			fault_broken(pipeline, "sending");
			return;
		}
		harvest(pipeline);
		if (unwritten == 0)
			pipeline->unflushed = 0;
		if (pipeline->broken || (unwritten == 0 && (!answers || pipeline->pending_len == 0)))
			return;
		if (!wait_socket(pipeline, unwritten > 0))
			return;
		if (PQconsumeInput(pipeline->pg) == 0) {
			harvest(pipeline);
			fault_broken(pipeline, "reading the answers");
		}
	}
}

/* ---- sending ---- */

static bool is_prepared(const struct pipeline *pipeline, const struct statement *statement)
{
	for (size_t i = 0; i < pipeline->prepared_len; i++)
		if (pipeline->prepared[i] == statement)
			return true;
	return false;
}

static bool prepare(struct pipeline *pipeline, const struct statement *statement)
{
	assert(pipeline->prepared_len < STATEMENTS_MAX);
	if (PQsendPrepare(pipeline->pg, statement->name, statement->text, 0, NULL) == 0) {
		fault_broken(pipeline, statement->name);
		return false;
	}
	pipeline->prepared[pipeline->prepared_len++] = statement;
	return queue(pipeline, PENDING_PREPARE, statement, NULL);
}

enum fate pipeline_params_good(const struct params *params, const struct statement *statement,
                               struct error *error)
{
	if (params->fault == PARAMS_GOOD)
		return FATE_OK;
	if (params->fault == PARAMS_NUL)
		return error_set(error, FATE_REJECT, ERR_POISON,
		                 "PostgreSQL, %s: parameter %zu holds U+0000, which no text of PostgreSQL may",
		                 statement->name, params->fault_at);
	if (params->fault == PARAMS_MEMORY)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, %s: no memory for parameter %zu",
		                 statement->name, params->fault_at);
	return error_set(error, FATE_REJECT, ERR_MEMORY, "PostgreSQL, %s: parameter %zu is too large",
	                 statement->name, params->fault_at);
}

void pipeline_send(struct pipeline *pipeline, const struct statement *statement, struct params *params,
                   const struct answer *answer)
{
	static const struct params none;
	const struct params *values = params != NULL ? params : &none;
	int sent;

	if (faulty(pipeline) || pipeline->broken)
		return;
	if (params != NULL)
		pipeline->unflushed += params_seal(params);
	if (pipeline_params_good(values, statement, &pipeline->fault) != FATE_OK)
		return;
	if (pipeline->prepare && !is_prepared(pipeline, statement) && !prepare(pipeline, statement))
		return;
	if (pipeline->prepare)
		sent = PQsendQueryPrepared(pipeline->pg, statement->name, (int)values->len, values->values,
		                           values->lengths, values->formats, 1);
	else
		sent = PQsendQueryParams(pipeline->pg, statement->text, (int)values->len, NULL, values->values,
		                         values->lengths, values->formats, 1);
	if (sent == 0) {
		fault_broken(pipeline, statement->name);
		return;
	}
	if (queue(pipeline, PENDING_STATEMENT, statement, answer) && pipeline->unflushed > UNFLUSHED_MAX)
		pump(pipeline, false);
}

bool pipeline_is_idle(const struct pipeline *pipeline)
{
	return pipeline->pending_len == 0 && !faulty(pipeline) && !pipeline->broken;
}

/* The first fault is told once. */
static enum fate take_fault(struct pipeline *pipeline, struct error *error)
{
	struct error fault = pipeline->fault;

	memset(&pipeline->fault, 0, sizeof(pipeline->fault));
	if (fault.fate != FATE_OK && error != NULL)
		*error = fault;
	return fault.fate;
}

enum fate pipeline_flush(struct pipeline *pipeline, struct error *error)
{
	static const struct statement sync = { "ending the pipeline", "" };

	pipeline->round_trips++;
	if (!pipeline->broken) {
		if (PQpipelineSync(pipeline->pg) == 0)
			fault_broken(pipeline, "sending");
		else if (queue(pipeline, PENDING_SYNC, &sync, NULL))
			pump(pipeline, true);
	}
	return take_fault(pipeline, error);
}

/* ---- COPY ---- */

/* Writes what waits and reads what comes until all is written, or until there is an answer to take. */
static bool copy_pump(struct pipeline *pipeline, bool answer)
{
	while (!pipeline->broken) {
		int unwritten = PQflush(pipeline->pg);
		if (unwritten < 0) {
			fault_broken(pipeline, "sending");
			return false;
		}
		if (unwritten == 0 && (!answer || !PQisBusy(pipeline->pg)))
			return true;
		if (wait_socket(pipeline, unwritten > 0) && PQconsumeInput(pipeline->pg) == 0)
			fault_broken(pipeline, "reading the answers");
	}
	return false;
}

/* Takes the answers up to their end; a COPY that was begun has been ended before. */
static enum fate copy_leave(struct pipeline *pipeline, const struct statement *statement, int64_t *ret_rows,
                            struct error *error)
{
	while (copy_pump(pipeline, true)) {
		PGresult *result = PQgetResult(pipeline->pg);
		if (result == NULL)
			break;
		if (PQresultStatus(result) == PGRES_COMMAND_OK)
			*ret_rows = tuples(result);
		else if (!faulty(pipeline))
			pipeline_result_error(pipeline->pg, result, statement->name, &pipeline->fault);
		PQclear(result);
	}
	if (!pipeline->broken && PQenterPipelineMode(pipeline->pg) != 1)
		fault_broken(pipeline, statement->name);
	return take_fault(pipeline, error);
}

/* libpq takes no more: the server ended the COPY and has said why, or the connection is gone. */
static enum fate copy_refused(struct pipeline *pipeline, const struct statement *statement,
                              struct error *error)
{
	int64_t rows;
	enum fate fate = copy_leave(pipeline, statement, &rows, error);

	if (fate != FATE_OK)
		return fate;
	fault_broken(pipeline, statement->name);
	return take_fault(pipeline, error);
}

/* Waits for the server to say that it takes the rows of this one. */
static enum fate copy_await(struct pipeline *pipeline, const struct statement *statement, struct error *error)
{
	PGresult *result = copy_pump(pipeline, true) ? PQgetResult(pipeline->pg) : NULL;
	bool begun = PQresultStatus(result) == PGRES_COPY_IN;
	if (!begun && result != NULL)
		pipeline_result_error(pipeline->pg, result, statement->name, &pipeline->fault);
	PQclear(result);
	return begun ? FATE_OK : copy_refused(pipeline, statement, error);
}

enum fate pipeline_copy_begin(struct pipeline *pipeline, const struct statement *statement, const char *text,
                              struct error *error)
{
	assert(pipeline_is_idle(pipeline));
	if (PQexitPipelineMode(pipeline->pg) != 1 || PQsendQuery(pipeline->pg, text) != 1) {
		fault_broken(pipeline, statement->name);
		return take_fault(pipeline, error);
	}
	return copy_await(pipeline, statement, error);
}

enum fate pipeline_copy_put(struct pipeline *pipeline, const struct statement *statement,
                            struct buffer *buffer, struct error *error)
{
	if (buffer_failed(buffer))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, %s: no memory", statement->name);
	if (PQputCopyData(pipeline->pg, (const char *)buffer->data, (int)buffer->len) != 1)
		return copy_refused(pipeline, statement, error);
	buffer_reset(buffer);
	return copy_pump(pipeline, false) ? FATE_OK : take_fault(pipeline, error);
}

enum fate pipeline_copy_next(struct pipeline *pipeline, const struct statement *statement,
                             const struct statement *next, int64_t *ret_rows, struct error *error)
{
	*ret_rows = 0;
	if (PQputCopyEnd(pipeline->pg, NULL) != 1)
		return copy_refused(pipeline, statement, error);
	PGresult *result = copy_pump(pipeline, true) ? PQgetResult(pipeline->pg) : NULL;
	bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (done)
		*ret_rows = tuples(result);
	else if (result != NULL)
		pipeline_result_error(pipeline->pg, result, statement->name, &pipeline->fault);
	PQclear(result);
	return done ? copy_await(pipeline, next, error) : copy_refused(pipeline, statement, error);
}

enum fate pipeline_copy_end(struct pipeline *pipeline, const struct statement *statement, int64_t *ret_rows,
                            struct error *error)
{
	*ret_rows = 0;
	if (PQputCopyEnd(pipeline->pg, NULL) != 1)
		return copy_refused(pipeline, statement, error);
	return copy_leave(pipeline, statement, ret_rows, error);
}

void pipeline_copy_give_up(struct pipeline *pipeline)
{
	static const struct statement giving_up = { "giving up a COPY", "" };
	struct error ignored;
	int64_t rows;

	if (PQputCopyEnd(pipeline->pg, "a row cannot be sent") != 1)
		fault_broken(pipeline, giving_up.name);
	/* The server confirms with an error. A connection that is gone is found by the ROLLBACK that follows. */
	copy_leave(pipeline, &giving_up, &rows, &ignored);
}
