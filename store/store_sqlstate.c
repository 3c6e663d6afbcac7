#include "store/store_sqlstate.h"

#include <stdio.h>
#include <string.h>

struct rule {
	const char *prefix; /* of the SQLSTATE: a class, or a whole code before its class */
	enum fate fate;
	enum error_code code;
	bool quotable; /* the primary message holds no value of a record */
	const char *text;
};

/* The first rule whose prefix fits counts. */
static const struct rule rules[] = {
	{ "08", FATE_RETRY, ERR_SERVICE, true, "the connection failed" },
	{ "0A", FATE_RETRY, ERR_SERVICE, true,
	  "not supported, or the tables changed under a prepared statement" },
	{ "22021", FATE_REJECT, ERR_POISON, false, "a text is not valid UTF-8" },
	{ "22", FATE_REJECT, ERR_POISON, false, "a value was refused" },
	{ "23502", FATE_REJECT, ERR_POISON, false, "a value is missing" },
	{ "23505", FATE_REJECT, ERR_POISON, false, "the row is there already" },
	{ "23", FATE_REJECT, ERR_POISON, false, "a constraint was broken" },
	{ "25006", FATE_RETRY, ERR_SERVICE, true,
	  "the database is read-only: point postgres.dsn to the primary, or turn default_transaction_read_only "
	  "off" },
	{ "25P03", FATE_RETRY, ERR_SERVICE, true, "the transaction was idle for too long" },
	{ "26", FATE_RETRY, ERR_SERVICE, true,
	  "a prepared statement is gone (set postgres.prepared = off behind a pooler)" },
	{ "3F", FATE_FATAL, ERR_USAGE, true, "a schema is missing (run `fermata migrate`)" },
	{ "40P01", FATE_RETRY, ERR_BUSY, true, "a deadlock was broken" },
	{ "40", FATE_RETRY, ERR_BUSY, true, "the transaction was rolled back" },
	{ "42501", FATE_FATAL, ERR_USAGE, true, "this role may not do that" },
	{ "42P01", FATE_FATAL, ERR_USAGE, true, "a table is missing (run `fermata migrate`)" },
	{ "42P05", FATE_FATAL, ERR_USAGE, true,
	  "a prepared statement is there already (set postgres.prepared = off behind a pooler)" },
	{ "42", FATE_FATAL, ERR_BUG, true, "the statement was refused" },
	{ "53100", FATE_RETRY, ERR_SERVICE, true, "the disk is full" },
	{ "53", FATE_RETRY, ERR_SERVICE, true, "resources are short" },
	{ "54", FATE_REJECT, ERR_POISON, false, "a limit of the server was exceeded" },
	{ "55P03", FATE_RETRY, ERR_BUSY, true, "a lock was not to be had in time, for somebody else has it" },
	{ "55", FATE_RETRY, ERR_BUSY, true, "an object is not in the right state" },
	{ "57014", FATE_RETRY, ERR_BUSY, true,
	  "the statement was cancelled or took too long, waits for locks included" },
	{ "57", FATE_RETRY, ERR_SERVICE, true, "the server is stopping or starting" },
	{ "58", FATE_RETRY, ERR_SERVICE, true, "the server's system failed" },
	{ "XX", FATE_RETRY, ERR_SERVICE, false, "the server has an internal error" },
	{ "", FATE_REJECT, ERR_POISON, false, "refused" },
};

static const struct rule no_answer = { "", FATE_RETRY, ERR_SERVICE, false, "the connection was lost" };

static const struct rule *rule_of(const char *sqlstate)
{
	if (sqlstate == NULL || sqlstate[0] == '\0')
		return &no_answer;
	const struct rule *rule = rules;
	while (strncmp(sqlstate, rule->prefix, strlen(rule->prefix)) != 0)
		rule++; /* ends at the empty prefix */
	return rule;
}

enum fate sqlstate_fate(const char *sqlstate, enum error_code *ret_code)
{
	const struct rule *rule = rule_of(sqlstate);

	*ret_code = rule->code;
	return rule->fate;
}

static bool ends_session(const char *severity)
{
	return severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

/* " (table checkpoint, constraint checkpoint_pkey)", as far as it is known. */
static void describe(const struct sql_error *sql, char *text, size_t cap)
{
	const struct {
		const char *what;
		const char *name;
	} parts[] = {
		{ "table", sql->table },
		{ "column", sql->column },
		{ "constraint", sql->constraint },
		{ "type", sql->type },
	};
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].name == NULL || len + 1 >= cap)
			continue;
		int wrote =
			snprintf(text + len, cap - len, "%s%s %s", len == 0 ? " (" : ", ", parts[i].what, parts[i].name);
		len += wrote > 0 ? (size_t)wrote : 0;
	}
	if (len > 0 && len + 1 < cap)
		memcpy(text + len, ")", 2);
}

enum fate sqlstate_error(const struct sql_error *sql, const char *doing, struct error *error)
{
	const struct rule *rule = rule_of(sql->sqlstate);
	bool ended = ends_session(sql->severity);
	enum fate fate = ended ? FATE_RETRY : rule->fate;
	enum error_code code = ended ? ERR_SERVICE : rule->code;
	char where[160];

	if (rule->quotable && sql->primary != NULL)
		return error_set_native(error, fate, code, sql->sqlstate, "PostgreSQL, %s: %s: %s", doing, rule->text,
		                        sql->primary);
	describe(sql, where, sizeof(where));
	return error_set_native(error, fate, code, sql->sqlstate, "PostgreSQL, %s: %s%s, SQLSTATE %s", doing,
	                        rule->text, where, sql->sqlstate != NULL ? sql->sqlstate : "none");
}
