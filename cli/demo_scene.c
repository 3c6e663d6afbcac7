#include "cli/demo_scene.h"

#include "cli/demo_say.h"

#include <stdio.h>
#include <string.h>

#define SCRIPT_MAX ((size_t)4 << 20)

/* The script: entries of a kind and a text with its NUL. */
enum entry { ENTRY_COMMAND = 'c', ENTRY_OUTPUT = 'o', ENTRY_LINES = 'l' };

void scene_init(struct scene *scene, struct world *world)
{
	memset(scene, 0, sizeof(*scene));
	scene->world = world;
	buffer_init(&scene->script, SCRIPT_MAX);
}

void scene_done(struct scene *scene)
{
	buffer_done(&scene->script);
}

static void add(struct scene *scene, enum entry entry, const char *text)
{
	buffer_append_byte(&scene->script, (uint8_t)entry);
	buffer_append(&scene->script, text, strlen(text) + 1);
}

void scene_title(struct scene *scene, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(scene->title, sizeof(scene->title), fmt, args);
	va_end(args);
}

void scene_lines(struct scene *scene, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	add(scene, ENTRY_LINES, text);
}

void scene_play(const struct scene *scene)
{
	const char *at = (const char *)scene->script.data;
	const char *end = at + scene->script.len;

	if (scene->script.len == 0 || buffer_failed(&scene->script))
		return;
	for (; at < end; at += strlen(at) + 1) {
		if (at[0] == ENTRY_COMMAND)
			say_command(at + 1);
		else if (at[0] == ENTRY_OUTPUT)
			say_output(at + 1, scene->is_table);
		else
			say_lines(at + 1);
	}
}

/* ---- programs ------------------------------------------------------------------------------ */

static void take_line(void *context, const char *line)
{
	struct scene *scene = context;

	add(scene, ENTRY_OUTPUT, line);
	if (line[0] != '\0')
		snprintf(scene->last, sizeof(scene->last), "%s", line);
}

/* A word with a blank in it stands in quotes, as a shell would want it. */
static void add_command(struct scene *scene, const char *program, const char *const *words)
{
	struct buffer line;

	buffer_init(&line, 4096);
	buffer_append_text(&line, program);
	for (size_t i = 0; words[i] != NULL; i++) {
		bool quoted = words[i][strcspn(words[i], " ()$&;")] != '\0';
		buffer_printf(&line, quoted ? " '%s'" : " %s", words[i]);
	}
	buffer_append_byte(&line, '\0');
	if (!buffer_failed(&line))
		add(scene, ENTRY_COMMAND, (const char *)line.data);
	buffer_done(&line);
}

static enum error_code code_of_exit(int exit_code)
{
	if (exit_code == 69)
		return ERR_SERVICE;
	return exit_code == 75 ? ERR_SYSTEM : ERR_BUG;
}

enum fate scene_run(struct scene *scene, const char *program, const char *const *words, int expected_exit,
                    struct process *ret_process, struct error *error)
{
	scene->last[0] = '\0';
	add_command(scene, program, words);
	enum fate fate = world_run(scene->world, program, words, take_line, scene, ret_process, error);
	if (fate == FATE_OK && ret_process->exit_code != expected_exit)
		fate = error_set(error, FATE_FATAL, code_of_exit(ret_process->exit_code),
		                 "%s %s ended with exit code %d: %s", program, words[0] != NULL ? words[0] : "",
		                 ret_process->exit_code, scene->last);
	return fate;
}
