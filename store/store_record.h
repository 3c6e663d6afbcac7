/*
 * store_record.h - the rows of fermata.checkpoint, fermata.decision and fermata.kafka_offset as structs:
 * the columns that are selected, in their order, and the functions that read and write them in that order.
 */
#ifndef FERMATA_STORE_STORE_RECORD_H
#define FERMATA_STORE_STORE_RECORD_H

#include "store/store.h"
#include "store/store_param.h"
#include "store/store_row.h"

/* Of a table called c that is followed by CHECKPOINT_COMMON. */
#define CHECKPOINT_COLUMNS                                                                                   \
	"c.checkpoint_id, c.state, c.filled, c.published, c.held, c.from_ledger, c.approvals, c.verdict,"        \
	" c.decided_at, c.version, c.changed_at, c.reason, c.doubt_settled, c.ledger_decisions,"                 \
	" c.tenant, c.session_id, c.gate_id, c.suspend_seq, c.agent, c.agent_version, c.requested_by, c.title,"  \
	" c.risk, c.required_approvals, c.approvers, c.labels, c.suspended_at, c.appended_at, c.expires_at,"     \
	" c.on_expiry, c.digest, c.traceparent, c.tracestate, c.seal_format, c.compression, c.plain_len,"        \
	" coalesce(same.kek_id, c.own_kek_id), c.wrapped_key, c.seal_commit, coalesce(same.schema_sha256, "      \
	"c.own_schema_sha256), coalesce(same.resumes_topic, c.own_resumes_topic), c.resumes_partition,"          \
	" c.id_text"

/* What c has in common with others, joined to it. Rows of before schema version 7 have it of their own. */
#define CHECKPOINT_COMMON " LEFT JOIN fermata.common same ON same.id = c.common"

/* The same without a join, of a table called c. */
#define SQL_COMMON(column)                                                                                   \
	"coalesce((SELECT s." column " FROM fermata.common s WHERE s.id = c.common), c.own_" column ")"

/* Reads CHECKPOINT_COLUMNS. What can only be wrong because somebody tampered with the row (lengths of keys and
 * digests) reads as zeros, which no check accepts. */
void row_checkpoint(struct row *row, struct checkpoint *ret_checkpoint);

/* The columns that a decision about the checkpoint changes: $1 is its id, then state, published, held,
 * from_ledger, approvals, verdict, decided_at, version, changed_at, reason. */
void param_checkpoint_state(struct params *params, const struct checkpoint *checkpoint);
#define CHECKPOINT_EVENT_COLUMNS                                                                             \
	"tenant, session_id, gate_id, suspend_seq, agent, agent_version, requested_by, title, risk,"             \
	" required_approvals, approvers, labels, suspended_at, appended_at, expires_at, on_expiry, digest,"      \
	" traceparent, tracestate, seal_format, compression, plain_len, wrapped_key, seal_commit, sealed_len,"   \
	" payload_day, resumes_partition, id_text, suspend_partition, suspend_offset, common"

/* These 31 columns of the suspend event; nulls when `fill` is false. */
void param_checkpoint_event(struct params *params, const struct checkpoint *checkpoint, bool fill);

/* Of a table called d. */
#define DECISION_COLUMNS                                                                                     \
	"d.decision_id, d.checkpoint_id, d.outcome, d.reason, d.decision, d.issuer, d.subject, d.display,"       \
	" d.decided_at, d.stated_reason, d.stated_session, d.source_system, d.source_ref, d.source_delivery,"    \
	" d.checkpoint_digest, d.record_digest, d.id_text, d.topic, d.partition, d.\"offset\", d.appended_at,"   \
	" d.seq, d.edits_format, d.edits_compression, d.edits_plain_len, d.edits_kek_id, d.edits_wrapped_key,"   \
	" d.edits_commit"

/* Reads DECISION_COLUMNS; the body of the edits is another column. */
void row_decision(struct row *row, struct decision *ret_decision);
/* Passes over DECISION_COLUMNS: the empty side of an outer join. */
void row_skip_decision(struct row *row);

/* What is written of a new decision: seq is given by the table. */
#define DECISION_NEW_COLUMNS                                                                                 \
	"decision_id, checkpoint_id, outcome, reason, decision, issuer, subject, display, decided_at,"           \
	" stated_reason, stated_session, source_system, source_ref, source_delivery, checkpoint_digest,"         \
	" record_digest, id_text, topic, partition, \"offset\", appended_at, edits_format, edits_compression,"   \
	" edits_plain_len, edits_kek_id, edits_wrapped_key, edits_commit, edits_body"

/* These 28 columns. */
void param_decision(struct params *params, const struct decision *decision);

/* Of fermata.ledger_offset. What a worker of before wrote does not say what its doubt is about: about everything. */
#define LEDGER_COLUMNS "next, doubt_before, coalesce(doubt_below, 9223372036854775807), routes_digest"

void row_ledger(struct row *row, struct ledger *ret_ledger);

#define POSITION_COLUMNS                                                                                     \
	"k.topic, k.partition, k.next, k.last_offset, k.last_timestamp, k.last_digest, k.waits,"                 \
	" k.let_through"

void row_position(struct row *row, struct position *ret_position);

/* ---- lists that rows are gathered in, in the arena ---- */

struct checkpoint_list {
	struct arena *arena;
	struct checkpoint **items;
	size_t len;
	size_t cap;
};

struct decision_list {
	struct arena *arena;
	struct decision **items;
	size_t len;
	size_t cap;
};

struct position_list {
	struct arena *arena;
	struct position *items;
	size_t len;
	size_t cap;
};

/* store_rows of a list: each row is CHECKPOINT_COLUMNS; DECISION_COLUMNS and then edits_body; POSITION_COLUMNS. */
enum fate checkpoint_list_rows(void *context, const PGresult *rows, struct error *error);
enum fate decision_list_rows(void *context, const PGresult *rows, struct error *error);
enum fate position_list_rows(void *context, const PGresult *rows, struct error *error);

/* One more, not set to anything; NULL: no memory. */
struct decision *decision_list_add(struct decision_list *list);

/* Room for one more item of that size behind the len that are there: the array, moved when need be, or NULL when
 * there is no memory. */
void *list_room(struct arena *arena, void *items, size_t len, size_t *cap, size_t size);
/* REJECT, ERR_MEMORY. */
enum fate list_no_memory(struct error *error);

#endif
