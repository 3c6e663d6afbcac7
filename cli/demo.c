/* demo.c - `fermata demo` and `fermata dev`: options, the order of things, and how they end. */
#include "cli/demo.h"

#include "cli/demo_say.h"
#include "cli/demo_story.h"
#include "core/clock.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_MS   2000
#define PAUSE_MAX  3600.0
#define TAIL_LINES 15
#define WATCH_MS   1000

struct options {
	struct world_request request;
	int64_t pause_ms;
	bool keep;
};

/* One run of either command. */
struct run {
	struct world world;
	struct options options;
	int64_t started_ms;
	int number; /* of the step */
	struct error error;
};

/* ---- options ------------------------------------------------------------------------------- */

static bool take_pause(struct options *options, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !(seconds >= 0 && seconds <= PAUSE_MAX)) {
		fprintf(stderr, "fermata: --pause takes seconds, from 0 to %.0f\n", PAUSE_MAX);
		return false;
	}
	options->pause_ms = (int64_t)(seconds * 1000);
	return true;
}

/* False: usage, and what is wrong has been said. */
static bool take_options(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{ "kafka-libs", required_argument, NULL, 'k' },
		{ "mock", no_argument, NULL, 'm' },
		{ "pause", required_argument, NULL, 'p' },
		{ "keep", no_argument, NULL, 'K' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	optind = 0; /* the parser of the command line may have used it */
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'k':
			options->request.kafka_libs = optarg;
			break;
		case 'm':
			options->request.mock = true;
			break;
		case 'p':
			if (!take_pause(options, optarg))
				return false;
			break;
		case 'K':
			options->keep = true;
			break;
		default:
			return false; /* getopt has said what is wrong */
		}
	}
	if (optind < argc)
		fprintf(stderr, "fermata: %s takes no argument %s; see fermata %s --help\n", argv[0], argv[optind],
		        argv[0]);
	return optind >= argc;
}

/* ---- steps --------------------------------------------------------------------------------- */

static void show_line(void *context, const char *line)
{
	(void)context;
	say_output(line, false);
}

/* Why it failed, and the end of the log that may tell more. */
static void tell_why(struct run *run)
{
	char text[320];

	snprintf(text, sizeof(text), "%s\n", run->error.message);
	say_lines(text);
	if (run->world.log[0] == '\0' || access(run->world.log, R_OK) != 0)
		return;
	snprintf(text, sizeof(text), "The end of %.200s:\n", strrchr(run->world.log, '/') + 1);
	say_lines(text);
	files_tail(run->world.log, TAIL_LINES, show_line, NULL);
}

/* scene: what there is to see of it, or NULL. When we were asked to end, nothing has failed. */
static void tell_failure(struct run *run, const char *name, int64_t took_ms, const struct scene *scene)
{
	char text[128];

	if (processes_signal() != 0)
		return;
	snprintf(text, sizeof(text), "%s: failed", name);
	say_failed_step(run->number, text, took_ms);
	if (scene != NULL)
		scene_play(scene);
	tell_why(run);
}

static enum fate set_up(struct run *run)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < world_steps_len && fate == FATE_OK; i++) {
		const struct world_step *step = &world_steps[i];
		struct told told = { .title = "" };
		int64_t start = clock_mono_ms();
		run->number++;
		say_busy(step->name);
		fate = step->run(&run->world, &run->error);
		if (fate != FATE_OK) {
			tell_failure(run, step->name, clock_mono_ms() - start, NULL);
			break;
		}
		step->tell(&run->world, &told);
		say_step(run->number, told.title, clock_mono_ms() - start);
		say_lines(told.details);
	}
	return fate;
}

static enum fate play(struct run *run, const struct act *act)
{
	struct scene scene;
	int64_t start = clock_mono_ms();

	scene_init(&scene, &run->world);
	run->number++;
	say_busy(act->name);
	enum fate fate = act->run(&scene, &run->error);
	if (fate == FATE_OK) {
		say_step(run->number, scene.title, clock_mono_ms() - start);
		scene_play(&scene);
	} else {
		tell_failure(run, act->name, clock_mono_ms() - start, &scene);
	}
	scene_done(&scene);
	return fate;
}

/* Hours pass. The worker goes on, and must not end meanwhile. */
static enum fate let_hours_pass(struct run *run)
{
	int64_t end = clock_mono_ms() + run->options.pause_ms;
	enum fate fate = world_check(&run->world, &run->error);

	say_pause("hours pass: no process of the agent, no memory, no connection");
	while (fate == FATE_OK && clock_mono_ms() < end)
		fate = process_pause(end - clock_mono_ms(), &run->error);
	return fate;
}

static enum fate tell_story(struct run *run)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < story_len && fate == FATE_OK; i++) {
		fate = play(run, &story[i]);
		if (fate == FATE_OK && story[i].pause_after)
			fate = let_hours_pass(run);
	}
	return fate;
}

/* ---- the beginning and the end ------------------------------------------------------------- */

static enum world_keep what_to_keep(const struct run *run, bool good)
{
	if (run->options.keep)
		return KEEP_ALL;
	return good || processes_signal() != 0 ? KEEP_NOTHING : KEEP_LOGS;
}

static void tell_end(const struct run *run, bool good, bool clean, enum world_keep keep)
{
	static const char *const removed[] = { " and removed", ", its logs are in ", ", all of it is in " };
	const char *where[] = { "", run->world.logs, run->world.root };
	const char *how = good ? "Done" : processes_signal() != 0 ? "Interrupted" : "Failed";
	char text[DEV_PATH_MAX + 128];

	snprintf(text, sizeof(text), "%s after %.1f s: everything is stopped%s%s.", how,
	         (double)(clock_mono_ms() - run->started_ms) / 1000.0, removed[keep], where[keep]);
	say_end(good && clean, text);
}

/* Takes everything down and says so. Returns the exit code. good: all went as it should. */
static int finish(struct run *run, bool good)
{
	struct error error = { .fate = FATE_OK };
	enum world_keep keep = what_to_keep(run, good);

	say_busy("everything is stopped");
	bool clean = world_close(&run->world, keep, &error);
	tell_end(run, good, clean, keep);
	if (!clean)
		fprintf(stderr, "fermata: %s\n", error.message);
	if (good)
		return clean ? 0 : error_exit_code(&error);
	return processes_signal() != 0 ? 128 + processes_signal() : error_exit_code(&run->error);
}

/* The command from its options to the stage being set. -1: that is done; else the exit code. */
static int begin(struct run *run, int argc, char **argv)
{
	struct error ignored;

	if (!take_options(&run->options, argc, argv))
		return 2;
	run->started_ms = clock_mono_ms();
	run->options.request.name = argv[0];
	if (world_open(&run->world, &run->options.request, &run->error) == FATE_OK)
		return -1;
	fprintf(stderr, "fermata: %s\n", run->error.message);
	(void)world_close(&run->world, KEEP_NOTHING, &ignored);
	return error_exit_code(&run->error);
}

/* ---- demo ---------------------------------------------------------------------------------- */

int demo_main(const struct config *config, int argc, char **argv)
{
	struct run run = { .options = { .request.config = config, .pause_ms = PAUSE_MS } };
	char stage[DEV_ROOT_MAX + 64];
	int code = begin(&run, argc, argv);

	if (code >= 0)
		return code;
	say_title("Fermata: hold it until a human releases it",
	          "An agent reaches a point where a human has to decide. It hands over all of its state and\n"
	          "ends. Hours later the decision comes, and the session goes on, exactly once.\n");
	snprintf(stage, sizeof(stage), "The stage, in %s", run.world.root);
	say_title(stage, "");
	enum fate fate = set_up(&run);
	if (fate == FATE_OK) {
		say_title("The story of SESSION-808", "");
		fate = tell_story(&run);
	}
	return finish(&run, fate == FATE_OK);
}

/* ---- dev ----------------------------------------------------------------------------------- */

static void tell_how_to_use(const struct run *run)
{
	const struct world *world = &run->world;
	char text[4 * DEV_PATH_MAX];

	snprintf(text, sizeof(text),
	         "export FERMATA_CONFIG=%s\n"
	         "export PATH=\"%.*s:$PATH\"\n"
	         "\n"
	         "fermata pending          what waits; suspend, approve, show, watch, resumes, doctor ...\n"
	         "psql '%s'\n"
	         "curl http://127.0.0.1:%d/metrics\n"
	         "\n"
	         "Kafka for agents and executors: bootstrap.servers=%s\n",
	         world->settings, (int)(strrchr(world->fermata, '/') - world->fermata), world->fermata,
	         world->postgres.dsn, world->metrics_port, world->broker.bootstrap);
	say_title("Ready, until Ctrl-C. In another terminal:", "");
	say_lines(text);
}

/* Until somebody asks for its end, or a part of it ends of itself. */
static enum fate watch(struct run *run)
{
	enum fate fate = FATE_OK;

	while (fate == FATE_OK) {
		fate = world_check(&run->world, &run->error);
		if (fate != FATE_OK)
			tell_failure(run, "the stage", clock_mono_ms() - run->started_ms, NULL);
		else
			fate = process_pause(WATCH_MS, &run->error);
	}
	return fate;
}

int dev_main(const struct config *config, int argc, char **argv)
{
	struct run run = { .options = { .request.config = config } };
	char stage[DEV_ROOT_MAX + 64];
	int code = begin(&run, argc, argv);

	if (code >= 0)
		return code;
	snprintf(stage, sizeof(stage), "Fermata, to develop against, in %s", run.world.root);
	say_title(stage, "");
	if (set_up(&run) == FATE_OK) {
		tell_how_to_use(&run);
		(void)watch(&run);
	}
	return finish(&run, processes_signal() != 0);
}
