/*
 * demo_scene.h - one step of the story: what was typed and what it printed, gathered while it happens and
 * written when it has happened.
 */
#ifndef FERMATA_CLI_DEMO_SCENE_H
#define FERMATA_CLI_DEMO_SCENE_H

#include "cli/dev_world.h"

struct scene {
	struct world *world;
	char title[128];
	char last[256]; /* the last line that a program printed */
	bool is_table;  /* what is printed are rows */
	struct buffer script;
};

void scene_init(struct scene *scene, struct world *world);
void scene_done(struct scene *scene);
void scene_title(struct scene *scene, const char *fmt, ...) FM_PRINTF(2, 3);
/* Lines of ours. */
void scene_lines(struct scene *scene, const char *fmt, ...) FM_PRINTF(2, 3);
/* Writes it all to stdout. */
void scene_play(const struct scene *scene);

/*
 * Runs a program of ours, as world_run does, and shows it: the command as it would be typed, and what it
 * prints. Ends it with another exit code than the one that is expected, FATAL: ERR_SERVICE for 69, ERR_SYSTEM
 * for 75, else ERR_BUG.
 */
FM_MUSTCHECK enum fate scene_run(struct scene *scene, const char *program, const char *const *words,
                                 int expected_exit, struct process *ret_process, struct error *error);

#endif
