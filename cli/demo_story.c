#include "cli/demo_story.h"

#include "cli/demo_sealed.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SESSION  "SESSION-808"
#define UNKNOWN  "SESSION-809"
#define REVIEWER "maria"
#define AGENT    "fermata-example-agent"
#define STATE_MS 60000
#define POLL_MS  50

/* ---- helpers ------------------------------------------------------------------------------- */

/* Waits until `fermata show` says that the session's gate is in that state. The worker does it: when it does
 * not, its log is the one to look at. */
static enum fate await_state(struct world *world, const char *state, struct error *error)
{
	int64_t end = clock_mono_ms() + STATE_MS;
	char found[32];

	for (;;) {
		enum fate fate = sealed_state(world, SESSION, found, error);
		if (fate != FATE_OK || strcmp(found, state) == 0)
			return fate;
		fate = world_check(world, error);
		if (fate == FATE_OK)
			fate = process_pause(POLL_MS, error);
		if (fate == FATE_OK && clock_mono_ms() >= end) {
			files_join(world->log, world->logs, "worker.log");
			fate = error_set(error, FATE_RETRY, ERR_SYSTEM, "%s is not %s after %d s, but %s", SESSION, state,
			                 STATE_MS / 1000, found[0] != '\0' ? found : "unknown");
		}
		if (fate != FATE_OK)
			return fate;
	}
}

/* A process of the agent's own, from its start to its end. */
static enum fate run_agent(struct scene *scene, const char *what, struct process *process,
                           struct error *error)
{
	const char *words[] = { what, SESSION, NULL };
	enum fate fate = scene_run(scene, AGENT, words, 0, process, error);

	if (fate != FATE_OK)
		return fate;
	if (kill(process->pid, 0) == 0 || errno != ESRCH)
		return error_set(error, FATE_FATAL, ERR_BUG, "process %d of the agent is still there",
		                 (int)process->pid);
	return FATE_OK;
}

/* ---- the acts ------------------------------------------------------------------------------ */

static enum fate plan(struct scene *scene, struct error *error)
{
	struct process process;

	scene_title(scene, "An agent plans, asks for a schema migration, suspends, exits");
	enum fate fate = run_agent(scene, "plan", &process, error);
	if (fate == FATE_OK)
		scene_lines(scene, "Process %d ended with exit code 0. It is gone, and its memory with it.",
		            (int)process.pid);
	return fate;
}

static enum fate wait_for_review(struct scene *scene, struct error *error)
{
	static const char *const words[] = { "pending", NULL };
	struct process process;

	scene->is_table = true;
	scene_title(scene, "What is left: one checkpoint in PostgreSQL, waiting for a human");
	enum fate fate = await_state(scene->world, "PENDING", error);
	return fate == FATE_OK ? scene_run(scene, "fermata", words, 0, &process, error) : fate;
}

static enum fate look_for_words(struct scene *scene, struct error *error)
{
	scene_title(scene, "It is sealed: its words are in no file of the database");
	return sealed_look(scene, SESSION, error);
}

static enum fate approve(struct scene *scene, struct error *error)
{
	static const char *const words[] = { "approve", SESSION,    "--as",
		                                 REVIEWER,  "--reason", "read the script, and tried it on a copy",
		                                 NULL };
	struct process process;

	scene_title(scene, "The reviewer approves, from the command line");
	return scene_run(scene, "fermata", words, 0, &process, error);
}

static enum fate wait_for_resume(struct scene *scene, struct error *error)
{
	static const char *const words[] = { "history", SESSION, NULL };
	struct process process;

	scene_title(scene, "The worker opens the checkpoint and re-enqueues the session");
	enum fate fate = await_state(scene->world, "RESUMED", error);
	return fate == FATE_OK ? scene_run(scene, "fermata", words, 0, &process, error) : fate;
}

static enum fate resume(struct scene *scene, struct error *error)
{
	struct process process;

	scene_title(scene, "A new process gets the whole memory back, goes on and finishes");
	enum fate fate = run_agent(scene, "resume", &process, error);
	if (fate == FATE_OK)
		scene_lines(scene, "Process %d ended with exit code 0.", (int)process.pid);
	return fate;
}

static enum fate ask_for_unknown(struct scene *scene, struct error *error)
{
	static const char *const words[] = { "show", UNKNOWN, NULL };
	struct process process;

	scene_title(scene, "A session that was never saved is a clear error that names it");
	enum fate fate = scene_run(scene, "fermata", words, 1, &process, error);
	if (fate == FATE_OK && strstr(scene->last, UNKNOWN) == NULL)
		fate = error_set(error, FATE_FATAL, ERR_BUG, "the error does not name " UNKNOWN);
	if (fate == FATE_OK)
		scene_lines(scene, "Exit code 1, as it should be: the answer is no.");
	return fate;
}

const struct act story[] = {
	{ "the agent plans", plan, false },
	{ "the worker seals and stores it", wait_for_review, false },
	{ "the database is searched", look_for_words, true },
	{ "the reviewer approves", approve, false },
	{ "the worker re-enqueues the session", wait_for_resume, false },
	{ "a new agent goes on", resume, false },
	{ "an unknown session is asked for", ask_for_unknown, false },
};

const size_t story_len = sizeof(story) / sizeof(story[0]);
