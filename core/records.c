#include "core/records.h"

static const char *const roles[] = { "SYSTEM", "USER", "AGENT", "TOOL" };
static const char *const permissions[] = { "ALLOW", "DENY", "ASK" };
static const char *const encodings[] = { "AVRO", "JSON" };
static const char *const risks[] = { "LOW", "MEDIUM", "HIGH", "CRITICAL" };
static const char *const expiries[] = { "REJECT", "APPROVE", "HOLD" };
static const char *const kinds[] = { "APPROVE", "REJECT", "CANCEL", "EXPIRE" };
static const char *const verdicts[] = { "APPROVED", "REJECTED", "EXPIRED", "CANCELLED" };
static const char *const states[GATE_STATE_COUNT] = {
	[GATE_PENDING] = "PENDING",       [GATE_DECIDED] = "DECIDED",         [GATE_RESUMED] = "RESUMED",
	[GATE_SUPERSEDED] = "SUPERSEDED", [GATE_QUARANTINED] = "QUARANTINED", [GATE_IN_DOUBT] = "IN_DOUBT",
	[GATE_UNCLAIMED] = "UNCLAIMED",
};

/* A number that is none of the enum's (a bug, or a row that somebody else wrote) still has a name. */
#define NAME_OF(names, value)                                                                                \
	((size_t)(value) < sizeof(names) / sizeof((names)[0]) ? (names)[(size_t)(value)] : "?")

const char *role_name(enum role role)
{
	return NAME_OF(roles, role);
}

const char *permission_name(enum permission permission)
{
	return NAME_OF(permissions, permission);
}

const char *encoding_name(enum encoding encoding)
{
	return NAME_OF(encodings, encoding);
}

const char *risk_name(enum risk risk)
{
	return NAME_OF(risks, risk);
}

const char *on_expiry_name(enum on_expiry on_expiry)
{
	return NAME_OF(expiries, on_expiry);
}

const char *decision_kind_name(enum decision_kind kind)
{
	return NAME_OF(kinds, kind);
}

const char *verdict_name(enum verdict verdict)
{
	return NAME_OF(verdicts, verdict);
}

const char *gate_state_name(enum gate_state state)
{
	return NAME_OF(states, state);
}

int records_enum_find(const char *(*name_of)(int), int count, struct view name)
{
	for (int i = 0; i < count; i++)
		if (view_equal_text(name, name_of(i)))
			return i;
	return -1;
}
