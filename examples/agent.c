/*
 * agent.c - an agent that asks before it changes a database.
 *
 *	fermata-example-agent plan [SESSION]              works up to the gate, suspends, exits
 *	fermata-example-agent resume [SESSION [SECONDS]]  a new process, perhaps days later: goes on
 * FERMATA_KAFKA_BOOTSTRAP_SERVERS=host:9092 in the environment says where Kafka is.
 */
#include "producer/agent.h"
#include "consumer/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(view) (int)(view).len, (const char *)(view).data

static struct suspension *at_the_gate(const char *session)
{
	struct suspension *s = suspension_new(session, "api-migrator", "1.0.0");

	suspension_say(s, ROLE_SYSTEM, "Update the schema of the API's database.");
	suspension_say(s, ROLE_AGENT, "I will write the migration and run the safety checks.");
	suspension_say(s, ROLE_AGENT, "The script is done. I wait for review before I run the deployment tool.");
	suspension_step(s, "schema-migration", "AWAITING_HUMAN_APPROVAL", "run_deployment_tool");
	suspension_put_double(s, "VRAM_limit_gb", 16.0);
	suspension_put_text(s, "user_id", "usr_99");
	suspension_permit(s, "deployment_tool", PERMISSION_ASK);
	suspension_gate(s, "schema-change", "Run migration 0042 on the API's database?", "usr_99");
	suspension_action(s, "deployment_tool", "{\"script\":\"0042_add_tenant.sql\"}", RISK_HIGH,
	                  "adds the column tenant to the table requests");
	return s;
}

static enum fate plan(const char *session, struct error *error)
{
	struct suspension *suspension = at_the_gate(session);
	struct agent *agent = NULL;
	enum fate fate = agent_open(&agent, NULL, error);

	if (fate == FATE_OK)
		fate = agent_suspend(agent, suspension, 15000, error);
	if (fate == FATE_OK) /* it is safe: this process and its memory may go */
		printf("session %s waits, checkpoint %s\n", session, suspension_checkpoint_id(suspension));
	agent_close(agent);
	suspension_free(suspension);
	return fate;
}

static void go_on(const struct resume_event *resumed)
{
	const struct suspend_event *s = &resumed->suspend;

	printf("session %.*s is back: %s\n", TEXT(s->session_id), verdict_name(resumed->verdict));
	printf("it goes on at %.*s, after %.*s\n", TEXT(s->step.resume_at), TEXT(s->step.node));
	for (size_t i = 0; i < s->history_len; i++)
		printf("  %s: %.*s\n", role_name(s->history[i].role), TEXT(s->history[i].content));
	for (size_t i = 0; i < s->config_len; i++)
		if (s->config[i].kind == CONFIG_DOUBLE)
			printf("  %.*s = %.1f\n", TEXT(s->config[i].key), s->config[i].value.real);
		else if (s->config[i].kind == CONFIG_STRING)
			printf("  %.*s = %.*s\n", TEXT(s->config[i].key), TEXT(s->config[i].value.string));
	puts(resumed->verdict == VERDICT_APPROVED ? "migration 0042 is applied: finished" : "finished unchanged");
}

static enum fate resume(const char *session, int seconds, struct error *error)
{
	struct executor_settings settings = { .group = session, .session_id = session };
	struct executor *executor = NULL;
	struct resumed resumed = { 0 };
	enum fate fate = executor_open(&executor, &settings, error);

	if (fate == FATE_OK)
		fate = executor_take(executor, seconds * 1000, &resumed, error);
	if (fate == FATE_OK && !resumed.event)
		fate = error_set(error, FATE_REJECT, ERR_NO, "session %s did not come back within %d s: %s", session,
		                 seconds, "none of that name was saved, or nobody has decided yet");
	if (fate == FATE_OK)
		fate = executor_done(executor, 10000, error); /* before the work: it runs at most once */
	if (fate == FATE_OK)
		go_on(resumed.event);
	executor_close(executor);
	return fate;
}

int main(int argc, char **argv)
{
	const char *session = argc > 2 ? argv[2] : "SESSION-808";
	struct error error = { .fate = FATE_REJECT, .code = ERR_USAGE, .message = "say plan or resume" };
	enum fate fate = FATE_REJECT;

	if (argc > 1 && !strcmp(argv[1], "plan"))
		fate = plan(session, &error);
	else if (argc > 1 && !strcmp(argv[1], "resume"))
		fate = resume(session, argc > 3 ? (int)strtol(argv[3], NULL, 10) : 10, &error);
	if (fate == FATE_OK)
		return 0;
	fprintf(stderr, "fermata-example-agent: %s\n", error.message);
	return error_exit_code(&error);
}
