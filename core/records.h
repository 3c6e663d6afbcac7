/*
 * records.h - the records of the contract as C structs. schemas/codec turns bytes into them and back.
 *
 * Strings are views: data == NULL is Avro's null where the contract allows one. What a decoder fills
 * lives in the arena that it was given. Times are microseconds since 1970 UTC, TIME_NONE for null.
 */
#ifndef FERMATA_CORE_RECORDS_H
#define FERMATA_CORE_RECORDS_H

#include "core/clock.h"
#include "core/memory.h"
#include "core/uuid.h"

#define DIGEST_LEN 32
#define SALT_LEN   16

/* The order of every enum is that of its .avsc: the numbers are the wire's (schemas/codec asserts it). */
enum role { ROLE_SYSTEM, ROLE_USER, ROLE_AGENT, ROLE_TOOL };
enum permission { PERMISSION_ALLOW, PERMISSION_DENY, PERMISSION_ASK };
enum encoding { ENCODING_AVRO, ENCODING_JSON };
enum risk { RISK_LOW, RISK_MEDIUM, RISK_HIGH, RISK_CRITICAL };
enum on_expiry { ON_EXPIRY_REJECT, ON_EXPIRY_APPROVE, ON_EXPIRY_HOLD };
enum decision_kind { DECISION_APPROVE, DECISION_REJECT, DECISION_CANCEL, DECISION_EXPIRE };
enum verdict { VERDICT_APPROVED, VERDICT_REJECTED, VERDICT_EXPIRED, VERDICT_CANCELLED };
enum gate_state {
	GATE_PENDING,
	GATE_DECIDED,
	GATE_RESUMED,
	GATE_SUPERSEDED,
	GATE_QUARANTINED,
	GATE_IN_DOUBT,
	GATE_UNCLAIMED,
};
#define GATE_STATE_COUNT 7

/* Names as in the schemas ("AGENT", "PENDING", ...). Never NULL. */
const char *role_name(enum role role);
const char *permission_name(enum permission permission);
const char *encoding_name(enum encoding encoding);
const char *risk_name(enum risk risk);
const char *on_expiry_name(enum on_expiry on_expiry);
const char *decision_kind_name(enum decision_kind kind);
const char *verdict_name(enum verdict verdict);
const char *gate_state_name(enum gate_state state);

/* Finds a name among count names of name_of(0..count-1); -1 when it is none of them. */
int records_enum_find(const char *(*name_of)(int), int count, struct view name);

struct step {
	struct view graph;
	struct view node;
	struct view resume_at;
	struct view *path;
	size_t path_len;
	int32_t attempt;
};

struct tool_call {
	struct view id;
	struct view name;
	struct view arguments; /* JSON text, carried untouched */
};

struct history_entry {
	enum role role;
	struct view content;
	struct view name;         /* or null */
	struct view tool_call_id; /* or null */
	struct tool_call *tool_calls;
	size_t tool_calls_len;
	int64_t at; /* or TIME_NONE */
};

/* The branches of the config union, in the order of the schema. */
enum config_kind {
	CONFIG_NULL,
	CONFIG_BOOLEAN,
	CONFIG_LONG,
	CONFIG_DOUBLE,
	CONFIG_STRING,
	CONFIG_STRINGS,
};

struct config_entry {
	struct view key;
	enum config_kind kind;
	union {
		bool boolean;
		int64_t number;
		double real;
		struct view string;
		struct {
			struct view *items;
			size_t len;
		} strings;
	} value;
};

struct tool_permission {
	struct view tool;
	enum permission permission;
};

struct app_state {
	bool present; /* false: null */
	struct view schema;
	enum encoding encoding;
	struct view fingerprint; /* null or 8 bytes, as in the single-object header */
	struct view body;
};

struct action {
	bool present; /* false: null */
	struct view tool;
	struct view arguments; /* JSON text */
	enum risk risk;
	struct view summary;
};

struct label {
	struct view key;
	struct view value;
};

struct gate {
	struct view gate_id;
	struct view title;
	struct action action;
	struct view requested_by;
	int32_t required_approvals;
	struct view *approvers;
	size_t approvers_len;
	int64_t expires_at; /* or TIME_NONE */
	enum on_expiry on_expiry;
	struct label *labels;
	size_t labels_len;
};

struct suspend_event {
	struct view checkpoint_id_text; /* 36 characters as they were sent */
	struct uuid checkpoint_id;
	struct view session_id;
	int64_t suspend_seq;
	struct view tenant;
	struct view agent;
	struct view agent_version;
	int64_t suspended_at;
	struct step step;
	struct history_entry *history;
	size_t history_len;
	struct config_entry *config;
	size_t config_len;
	struct tool_permission *tool_permissions;
	size_t tool_permissions_len;
	struct app_state state;
	struct gate gate;
	uint8_t salt[SALT_LEN];
};

struct approver {
	struct view issuer;
	struct view subject;
	struct view display;
};

struct source {
	struct view system;
	struct view ref;
	struct view delivery_id;
};

struct edits {
	bool present; /* false: null */
	struct config_entry *config;
	size_t config_len;
	struct view action_arguments; /* null or JSON text */
};

struct signature {
	bool present; /* false: null */
	struct view key_id;
	struct view body;
	struct view value;
};

struct approval_event {
	struct view decision_id_text;
	struct uuid decision_id;
	struct view checkpoint_id_text;
	struct uuid checkpoint_id;
	struct view session_id; /* empty: not stated */
	enum decision_kind decision;
	struct approver decided_by;
	int64_t decided_at;
	struct view reason; /* or null */
	struct edits edits;
	bool has_digest;
	uint8_t checkpoint_digest[DIGEST_LEN];
	struct source source;
	struct signature signature;
};

/* A decision that counted, as a resume carries it. */
struct resume_decision {
	struct view decision_id_text;
	struct uuid decision_id;
	struct approver decided_by;
	int64_t decided_at;
	enum decision_kind decision;
	struct view reason; /* or null */
	struct source source;
};

struct resume_event {
	struct view resume_id_text;
	struct uuid resume_id;
	enum verdict verdict;
	struct resume_decision *decisions;
	size_t decisions_len;
	struct edits edits;
	struct suspend_event suspend; /* every field of it, the state already migrated */
	struct view migrated_from;    /* null, or the fingerprint in hex */
	int64_t resumed_at;
	int64_t expires_at; /* or TIME_NONE */
	struct signature signature;
};

struct gate_event {
	struct view checkpoint_id_text; /* as the suspend event spelt it; null: in lower case */
	struct uuid checkpoint_id;
	struct view session_id;
	struct view gate_id;
	struct view tenant;
	struct view agent;
	enum gate_state state;
	struct view title;
	bool has_risk;
	enum risk risk;
	struct action action;
	struct view requested_by;
	int32_t required_approvals;
	int32_t approvals;
	uint8_t digest[DIGEST_LEN];
	int64_t at;
	int64_t expires_at; /* or TIME_NONE */
	struct view reason; /* or null */
	int64_t version;
};

/* Where a record stood in Kafka. topic borrows. */
struct coordinates {
	const char *topic;
	int32_t partition;
	int64_t offset;
	int64_t appended_at; /* the record's timestamp, us: the broker's where the topic has LogAppendTime */
};

#endif
