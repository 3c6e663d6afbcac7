/* demo_story.h - the story of SESSION-808, act by act. */
#ifndef FERMATA_CLI_DEMO_STORY_H
#define FERMATA_CLI_DEMO_STORY_H

#include "cli/demo_scene.h"

struct act {
	const char *name; /* what is under way: "the agent plans" */
	/* Fills the scene; on failure, with what there is to see of it. */
	enum fate (*run)(struct scene *scene, struct error *error);
	bool pause_after; /* hours pass */
};

extern const struct act story[];
extern const size_t story_len;

#endif
