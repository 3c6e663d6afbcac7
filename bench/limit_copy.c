/*
 * limit_copy.c - what PostgreSQL takes without a worker: binary COPY of the rows that the workers wrote into the same tables
 * of another database (made by the same migrations, so with the same indexes and storage), by one connection, with a
 * commit every 256 rows or 8 MB.
 */
#include "bench/run_inner.h"

#include <stdio.h>

#define COMMIT_ROWS  256
#define COMMIT_BYTES ((size_t)8 << 20)
#define ROWS_BYTES   ((size_t)192 << 20) /* held at once */

#define BODY_AT 30 /* in a row of payload: the count of fields, then id and day behind their lengths */

struct copying {
	struct run *run;
	struct database *scratch;
	struct copy_rows checkpoints;
	struct copy_rows payloads;
	struct copy_rows plain; /* payloads that are neither sealed nor compressed */
};

static size_t bytes_between(const struct copy_rows *rows, size_t first, size_t end)
{
	return rows->ends[end - 1] - (first > 0 ? rows->ends[first - 1] : 0);
}

static size_t next_commit(const struct copy_rows *rows, size_t first)
{
	size_t end = first + 1;

	while (end < rows->len && end - first < COMMIT_ROWS &&
	       bytes_between(rows, first, end + 1) <= COMMIT_BYTES)
		end++;
	return end;
}

static enum fate copy_some(struct copying *copying, const struct copy_rows *payloads, size_t first,
                           size_t end, struct error *error)
{
	enum fate fate = database_run(copying->scratch, "BEGIN", error);

	if (fate == FATE_OK)
		fate = database_copy_in(copying->scratch, "fermata.checkpoint", &copying->checkpoints, first, end,
		                        error);
	if (fate == FATE_OK)
		fate = database_copy_in(copying->scratch, "fermata.payload", payloads, first, end, error);
	return fate == FATE_OK ? database_run(copying->scratch, "COMMIT", error) : fate;
}

static enum fate copy_all(struct copying *copying, const struct copy_rows *payloads, const char *doing,
                          struct timing *ret_timing, struct error *error)
{
	size_t len = copying->checkpoints.len < payloads->len ? copying->checkpoints.len : payloads->len;
	enum fate fate = database_run(copying->scratch, "TRUNCATE fermata.checkpoint, fermata.payload", error);

	ret_timing->began_us = now_us();
	for (size_t at = 0; at < len && fate == FATE_OK;) {
		size_t end = next_commit(payloads, at);
		end = end < len ? end : len;
		fate = copy_some(copying, payloads, at, end, error);
		at = end;
		if (fate == FATE_OK)
			fate = run_goes_on(copying->run, error);
		run_progress(copying->run, doing, (int64_t)at, (int64_t)len);
	}
	ret_timing->ended_us = now_us();
	ret_timing->count = (int64_t)len;
	return fate;
}

/* ---- the rows ---- */

/* The last that were taken in, in the order of their ids, which is that of time. */
static enum fate read_rows(struct copying *copying, struct error *error)
{
	static const char last[] =
		"SELECT * FROM (SELECT * FROM fermata.%s ORDER BY checkpoint_id DESC LIMIT %zu) AS last"
		" ORDER BY checkpoint_id";
	size_t rows = copying->run->plan->sessions, most = ROWS_BYTES / 2 / copying->run->plan->size;
	char query[256];
	enum fate fate;

	rows = rows < most ? rows : most;
	snprintf(query, sizeof(query), last, "checkpoint", rows);
	fate = database_copy_out(copying->run->database, query, &copying->checkpoints, error);
	snprintf(query, sizeof(query), last, "payload", rows);
	return fate == FATE_OK ? database_copy_out(copying->run->database, query, &copying->payloads, error)
	                       : fate;
}

static void put_be(struct buffer *out, size_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
		buffer_append_byte(out, (uint8_t)(value >> (8 * i)));
}

/* The rows of the payloads with what was sent in the place of what is sealed. */
static enum fate make_plain(struct copying *copying, struct error *error)
{
	struct buffer *value = &copying->run->value, *out = &copying->plain.bytes;
	enum fate fate = FATE_OK;
	struct uuid id;

	for (size_t i = 0; i < copying->payloads.len && fate == FATE_OK; i++) {
		const uint8_t *row = copying->payloads.bytes.data + (i > 0 ? copying->payloads.ends[i - 1] : 0);
		fate = session_suspend(copying->run->writer, (uint32_t)i, value, &id, error);
		buffer_append(out, row, BODY_AT);
		put_be(out, value->len, 4);
		buffer_append(out, value->data, value->len);
		put_be(out, UINT32_MAX, 4); /* no tail */
		if (fate == FATE_OK)
			fate = copy_rows_end(&copying->plain, error);
	}
	return fate;
}

static enum fate prepare(struct copying *copying, struct error *error)
{
	enum fate fate = database_open(&copying->scratch, copying->run->place->scratch_dsn, error);

	if (fate == FATE_OK)
		fate = database_run(copying->scratch,
		                    "SELECT fermata.payload_day_make((now() AT TIME ZONE 'UTC')::date)", error);
	run_progress(copying->run, "reading the rows for COPY", 0, 0);
	if (fate == FATE_OK)
		fate = read_rows(copying, error);
	return fate == FATE_OK ? make_plain(copying, error) : fate;
}

enum fate limit_copy(struct run *run, struct timing *ret_sealed, struct timing *ret_plain,
                     struct error *error)
{
	struct copying copying = { .run = run };
	enum fate fate;

	copy_rows_init(&copying.checkpoints, ROWS_BYTES);
	copy_rows_init(&copying.payloads, ROWS_BYTES);
	copy_rows_init(&copying.plain, ROWS_BYTES);
	fate = prepare(&copying, error);
	if (fate == FATE_OK)
		fate = copy_all(&copying, &copying.payloads, "COPY of the same rows", ret_sealed, error);
	if (fate == FATE_OK)
		fate = copy_all(&copying, &copying.plain, "COPY of the rows unsealed", ret_plain, error);
	copy_rows_done(&copying.checkpoints);
	copy_rows_done(&copying.payloads);
	copy_rows_done(&copying.plain);
	database_close(copying.scratch);
	return fate;
}
