/*
 * agent.h - the agent's side: say where you are, send it, know that it is safe, exit.
 *
 *	struct agent *agent;
 *	struct error error;
 *	struct suspension *at_gate = suspension_new("SESSION-808", "api-migrator", "1.0.0");
 *
 *	suspension_step(at_gate, "migration", "AWAITING_HUMAN_APPROVAL", "run_migration");
 *	suspension_say(at_gate, ROLE_AGENT, "The script is done; waiting for review.");
 *	suspension_put_double(at_gate, "VRAM_limit_gb", 16.0);
 *	suspension_gate(at_gate, "schema-change", "Apply migration 0042?", "usr_99");
 *	if (agent_open(&agent, NULL, &error) != FATE_OK ||
 *	    agent_suspend(agent, at_gate, 10000, &error) != FATE_OK)
 *		...                                   error.message says what failed and what to do
 *	puts(suspension_checkpoint_id(at_gate));      it is on the topic: the process may end
 *
 * The parts may be given in any order; what is given twice counts the last time. No part fails by itself:
 * whatever was wrong with one of them is told by agent_suspend. Text is UTF-8, ends in NUL and is copied.
 * Link fermata_agent. A handle is for one thread at a time.
 */
#ifndef FERMATA_PRODUCER_AGENT_H
#define FERMATA_PRODUCER_AGENT_H

#include "core/kafka.h"

struct registry_settings; /* schemas/registry.h */

/* ---- where to ---- */

struct agent;

struct agent_settings {
	const char *bootstrap_servers; /* NULL: what the environment or properties say */
	const char *topic;             /* NULL: FERMATA_TOPICS_SUSPENDS, else fermata.suspends */
	/* Further properties of librdkafka (TLS, SASL). NULL: those of the environment (core/kafka_env.h). */
	const struct property *properties;
	size_t properties_len;
	size_t record_bytes; /* the worker's limits.record_bytes; 0: 8 MiB */
	/*
	 * A schema registry: suspend events are framed with the id of their schema there, which is registered under
	 * the subject (NULL: TOPIC-value) by the first agent_suspend. Without one they are Avro single objects, which
	 * a worker reads in any case. NULL: FERMATA_REGISTRY_URL of the environment, and _USER, _PASSWORD and so on.
	 */
	const struct registry_settings *registry;
	const char *subject;
};

/* Connects in the background. settings NULL: everything from the environment (FERMATA_KAFKA_...).
 * FATAL for settings that cannot be. */
FM_MUSTCHECK enum fate agent_open(struct agent **ret_agent, const struct agent_settings *settings,
                                  struct error *error);
/* NULL is fine. */
void agent_close(struct agent *agent);

/* ---- what ---- */

struct suspension;
struct resume_event;

/*
 * A new suspension of a session. Its checkpoint_id (UUIDv7), salt, time and suspend_seq are made now and stay
 * what they are: sent again, after an error or by the caller's own caution, it is the same checkpoint, byte
 * for byte, and nothing happens twice. suspend_seq is the time in microseconds, so that it grows, until
 * suspension_seq says otherwise. NULL when there is no memory (everything below takes NULL and does nothing).
 */
struct suspension *suspension_new(const char *session_id, const char *agent, const char *agent_version);
/*
 * The next suspension of a session that was resumed: history, config, permissions, state and step as they came,
 * suspend_seq one higher, ids and salt new, no gate yet. Borrows from resumed until suspension_free.
 */
struct suspension *suspension_next(const struct resume_event *resumed);
void suspension_free(struct suspension *suspension);

/* As a string of 36 characters; lives as long as the suspension. */
const char *suspension_checkpoint_id(const struct suspension *suspension);

void suspension_seq(struct suspension *suspension, int64_t suspend_seq);   /* >= 1 */
void suspension_tenant(struct suspension *suspension, const char *tenant); /* "default" */
void suspension_version(struct suspension *suspension,
                        const char *version); /* of the agent, for suspension_next */

/* Where execution goes on; never in the middle of a tool call. attempt is 1 until suspension_attempt. */
void suspension_step(struct suspension *suspension, const char *graph, const char *node,
                     const char *resume_at);
void suspension_step_path(struct suspension *suspension, const char *element); /* one more, innermost last */
void suspension_attempt(struct suspension *suspension, int32_t attempt);

/* One more entry of the history. name may be NULL. */
void suspension_say(struct suspension *suspension, enum role role, const char *content);
void suspension_say_as(struct suspension *suspension, enum role role, const char *name, const char *content);
/* A call of the last entry, which is the AGENT's; arguments is JSON text. */
void suspension_tool_call(struct suspension *suspension, const char *id, const char *name,
                          const char *arguments);
/* What a tool answered: an entry of role TOOL. */
void suspension_tool_answer(struct suspension *suspension, const char *id, const char *name,
                            const char *content);

/* Variables. A key that is there already gets the new value. */
void suspension_put_null(struct suspension *suspension, const char *key);
void suspension_put_boolean(struct suspension *suspension, const char *key, bool value);
void suspension_put_long(struct suspension *suspension, const char *key, int64_t value);
void suspension_put_double(struct suspension *suspension, const char *key, double value);
void suspension_put_text(struct suspension *suspension, const char *key, const char *value);
void suspension_put_texts(struct suspension *suspension, const char *key, const char *const *values,
                          size_t len);
void suspension_permit(struct suspension *suspension, const char *tool, enum permission permission);

/* The application's own state, in its own schema (its full name). fingerprint: CRC-64-AVRO of the writer's
 * schema, 8 bytes as in the single-object header. */
void suspension_state_json(struct suspension *suspension, const char *schema, const char *json);
void suspension_state_avro(struct suspension *suspension, const char *schema, const uint8_t fingerprint[8],
                           const void *body, size_t len);

/* ---- the gate ---- */

/* What is asked, and by whom. gate_id tells the gates of one session apart. */
void suspension_gate(struct suspension *suspension, const char *gate_id, const char *title,
                     const char *requested_by);
/* What will be done if it is approved; arguments is JSON text. */
void suspension_action(struct suspension *suspension, const char *tool, const char *arguments, enum risk risk,
                       const char *summary);
void suspension_quorum(struct suspension *suspension, int32_t required_approvals); /* 1 */
/* Who may decide: "subject" or "issuer:subject". Without any, everybody whom the worker's policy allows. */
void suspension_approver(struct suspension *suspension, const char *approver);
/* at_us: microseconds since 1970 (clock_real_us() + ...). */
void suspension_expiry(struct suspension *suspension, int64_t at_us, enum on_expiry on_expiry);
void suspension_label(struct suspension *suspension, const char *key, const char *value);
/* W3C trace context, carried through the wait to the resume. state may be NULL. Without it, TRACEPARENT and
 * TRACESTATE of the environment. */
void suspension_trace(struct suspension *suspension, const char *traceparent, const char *tracestate);

/* ---- send ---- */

/*
 * Returns OK once Kafka has acknowledged it (acks=all): from then on it is found again, whatever happens to this
 * process. RETRY: not within timeout_ms (the registry has its own time beside it); call again, also from another agent handle, with the same suspension.
 * REJECT: it would become a dead letter (the message names the field), or is too large, or the topic is not
 * there.
 */
FM_MUSTCHECK enum fate agent_suspend(struct agent *agent, struct suspension *suspension, int timeout_ms,
                                     struct error *error);

#endif
