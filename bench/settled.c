#include "bench/settled.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILLING "settled rows are put into the tables"

#define STEP     100000 /* rows a statement */
#define SQL_MAX  8192
#define LIST_MAX 2048
#define DAY_US   INT64_C(86400000000)

/* Version 7 ids, 128 a millisecond from now on, more than rows can be put in: so they lie behind those of the models and before
 * those that come while something is measured, and each goes to the end of its index, as in life. */
static const char make_ids[] =
	"CREATE FUNCTION pg_temp.id_of(first_ms bigint, g bigint, salt bigint) RETURNS uuid LANGUAGE sql "
	"IMMUTABLE"
	" AS $$ SELECT (lpad(to_hex(first_ms + g / 128), 12, '0') || '7' || lpad(to_hex(g % 128 * 32), 3, '0')"
	" || '8' || substr(md5(salt::text), 1, 15))::uuid $$";

/* The columns of a table that are written, but for those that are made anew. */
static enum fate list_columns(struct run *run, const char *table, const char *but, char *ret_list,
                              struct error *error)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
	         "SELECT string_agg('c.' || quote_ident(column_name), ', ' ORDER BY ordinal_position)"
	         " FROM information_schema.columns WHERE table_schema = 'fermata' AND table_name = '%s'"
	         " AND is_identity = 'NO' AND column_name NOT IN (%s)",
	         table, but);
	return database_text(run->database, sql, ret_list, LIST_MAX, error);
}

/* The same names without the alias in front of them. */
static void bare_names(const char *list, char names[LIST_MAX])
{
	size_t len = 0;

	for (const char *at = list; *at != '\0'; at++) {
		if (!strncmp(at, "c.", 2) && (at == list || at[-1] == ' '))
			at++;
		else
			names[len++] = *at;
	}
	names[len] = '\0';
}

struct filling {
	char checkpoint[LIST_MAX]; /* columns, with the alias */
	char decision[LIST_MAX];
	char checkpoint_names[LIST_MAX];
	char decision_names[LIST_MAX];
	uint32_t models;
	int64_t before_us; /* the time of the row before the first */
	int64_t first_ms;  /* of their ids */
};

/* Rows number `from` to `to`: each is a copy of one of the models. In the order of their ids, as rows come in life: else the
 * pages of the indexes would be half empty. A millisecond apart: what goes through the rows goes by their times, and what has
 * one and the same is read whole. */
static enum fate put_rows(struct run *run, const struct filling *filling, uint32_t from, uint32_t to,
                          struct error *error)
{
	char sql[SQL_MAX];
	enum fate fate;

	snprintf(sql, sizeof(sql),
	         "INSERT INTO fermata.checkpoint (checkpoint_id, session_id, appended_at, %s)"
	         " SELECT pg_temp.id_of(%" PRId64 ", g, g), 'settled-' || g, %" PRId64
	         " + g * 1000::bigint, %s FROM generate_series(%" PRIu32 "::bigint, %" PRIu32 ") AS g"
	         " JOIN (SELECT *, row_number() OVER () - 1 AS n FROM models) AS c ON c.n = g %% %" PRIu32
	         " ORDER BY g",
	         filling->checkpoint_names, filling->first_ms, filling->before_us, filling->checkpoint, from, to,
	         filling->models);
	fate = run_long(run, sql, FILLING, error);
	if (fate != FATE_OK)
		return fate;
	snprintf(sql, sizeof(sql),
	         "INSERT INTO fermata.decision (decision_id, checkpoint_id, %s)"
	         " SELECT pg_temp.id_of(%" PRId64 ", g, -g), pg_temp.id_of(%" PRId64 ", g, g), %s"
	         " FROM generate_series(%" PRIu32 "::bigint, %" PRIu32 ") AS g"
	         " JOIN (SELECT d.*, row_number() OVER () - 1 AS n FROM models AS m JOIN fermata.decision AS d"
	         " USING (checkpoint_id)) AS c ON c.n = g %% %" PRIu32 " ORDER BY g",
	         filling->decision_names, filling->first_ms, filling->first_ms, filling->decision, from, to,
	         filling->models);
	return run_long(run, sql, FILLING, error);
}

static enum fate prepare(struct run *run, struct filling *filling, struct error *error)
{
	enum fate fate = list_columns(run, "checkpoint", "'checkpoint_id', 'session_id', 'appended_at'",
	                              filling->checkpoint, error);

	filling->before_us = clock_real_us() - DAY_US - (int64_t)run->plan->settled * 1000;
	if (fate == FATE_OK)
		fate = list_columns(run, "decision", "'decision_id', 'checkpoint_id'", filling->decision, error);
	filling->first_ms = clock_real_us() / 1000;
	if (fate == FATE_OK)
		fate = database_run(run->database, make_ids, error);
	bare_names(filling->checkpoint, filling->checkpoint_names);
	bare_names(filling->decision, filling->decision_names);
	if (fate == FATE_OK)
		fate = database_run(run->database,
		                    "CREATE TEMPORARY TABLE models AS SELECT * FROM fermata.checkpoint"
		                    " WHERE state = 'RESUMED'",
		                    error);
	return fate;
}

/* Those that were taken in to warm up go their whole way. */
static enum fate make_models(struct run *run, struct filling *filling, struct error *error)
{
	int64_t left = 1;
	enum fate fate = run_send_decisions(run, run->plan->few, error);

	if (fate == FATE_OK)
		fate = run_read_resumes(run, run->plan->few, NULL, NULL, error);
	while (fate == FATE_OK && left > 0) {
		fate = database_number(run->database, "SELECT count(*) FROM fermata.outbox", NULL, &left, error);
		if (fate == FATE_OK && left > 0)
			fate = run_pause(run, 20, error);
	}
	filling->models = run->plan->few;
	return fate;
}

/* Gigabytes that are still to be written would be written while something is measured. Who may not ask for it (it takes
 * the role pg_checkpoint) measures them with it. */
static const char write_out[] =
	"DO $$ BEGIN CHECKPOINT; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";

enum fate settled_fill(struct run *run, struct error *error)
{
	struct filling filling;
	enum fate fate = make_models(run, &filling, error);

	run->host->stop(run->host->context, false);
	if (fate == FATE_OK)
		fate = prepare(run, &filling, error);
	for (uint32_t done = 0; done < run->plan->settled && fate == FATE_OK; done += STEP) {
		uint32_t end = run->plan->settled - done < STEP ? run->plan->settled : done + STEP;
		fate = put_rows(run, &filling, done + 1, end, error);
		run_progress(run, FILLING, end, run->plan->settled);
	}
	if (fate == FATE_OK)
		fate = database_run(run->database, "DROP TABLE models", error);
	if (fate == FATE_OK)
		fate = run_long(run, "VACUUM (ANALYZE)", "the tables are vacuumed", error);
	return fate == FATE_OK ? run_long(run, write_out, "the tables are written out", error) : fate;
}
