#include "cli/demo_sealed.h"

#include "cli/demo_search.h"

#include <jansson.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)16 << 20)
#define RUN_WORDS  4
#define NAME_MIN   6 /* bytes of a variable's name or text; a shorter one may be there by chance */

/* ---- asking -------------------------------------------------------------------------------- */

static void gather(void *context, const char *piece)
{
	buffer_append_text(context, piece);
}

/* The object that `fermata show SESSION --json` prints; NULL when the session is unknown. With the state, no
 * copy of it stays in the logs. */
static enum fate ask(struct world *world, const char *session, bool with_state, json_t **ret_object,
                     struct error *error)
{
	const char *words[] = { "show", session, "--json", with_state ? "--state" : NULL, NULL };
	struct process process;
	struct buffer answer;

	*ret_object = NULL;
	buffer_init(&answer, ANSWER_MAX);
	enum fate fate = world_run(world, "fermata", words, gather, &answer, &process, error);
	if (with_state)
		(void)unlink(world->log);
	if (fate == FATE_OK && process.exit_code == 0) {
		*ret_object = json_loadb((const char *)answer.data, answer.len, JSON_ALLOW_NUL, NULL);
		if (*ret_object == NULL)
			fate = error_set(error, FATE_FATAL, ERR_BUG, "fermata show --json printed no JSON");
	} else if (fate == FATE_OK && process.exit_code != 1) {
		fate = error_set(error, FATE_FATAL, process.exit_code == 69 ? ERR_SERVICE : ERR_BUG,
		                 "fermata show ended with exit code %d", process.exit_code);
	}
	buffer_done(&answer);
	return fate;
}

enum fate sealed_state(struct world *world, const char *session, char ret_state[32], struct error *error)
{
	json_t *object;
	enum fate fate = ask(world, session, false, &object, error);

	ret_state[0] = '\0';
	if (fate != FATE_OK || object == NULL)
		return fate;
	const char *state = json_string_value(json_object_get(object, "state"));
	if (state != NULL)
		snprintf(ret_state, 32, "%s", state);
	else
		fate = error_set(error, FATE_FATAL, ERR_BUG, "fermata show --json tells no state");
	json_decref(object);
	return fate;
}

/* ---- looking ------------------------------------------------------------------------------- */

static struct view text_of(const json_t *value)
{
	if (!json_is_string(value))
		return VIEW_NULL;
	return (struct view){ (const uint8_t *)json_string_value(value), json_string_length(value) };
}

static void add_text(struct search *search, const json_t *value)
{
	search_add(search, text_of(value));
	search_add_runs(search, text_of(value), RUN_WORDS);
}

static void add_history(struct search *search, const json_t *history)
{
	size_t i;
	const json_t *entry;

	json_array_foreach(history, i, entry) add_text(search, json_object_get(entry, "content"));
}

static void add_variables(struct search *search, json_t *config)
{
	const char *key;
	json_t *value;

	json_object_foreach(config, key, value)
	{
		if (strlen(key) >= NAME_MIN)
			search_add(search, view_of(key));
		if (text_of(value).len >= NAME_MIN)
			search_add(search, text_of(value));
	}
}

/* What stands in clear beside it, as who asked does, is found and may be. clear: the row as JSON. */
static void drop_clear(struct search *search, const char *clear)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->len; i++) {
		struct view text = search->needles[i].text;
		if (memmem(clear, strlen(clear), text.data, text.len) == NULL)
			search->needles[kept++] = search->needles[i];
	}
	search->len = kept;
}

/* The title goes last, so that the others are needles[0 .. len - 2]. row: what stands in clear. */
static enum fate fill_search(struct search *search, const json_t *row, const json_t *suspend,
                             struct error *error)
{
	const json_t *gate = json_object_get(suspend, "gate");
	struct view title = text_of(json_object_get(gate, "title"));
	char *clear = json_dumps(row, 0);

	if (clear == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "out of memory");
	add_history(search, json_object_get(suspend, "history"));
	add_variables(search, json_object_get(suspend, "config"));
	add_text(search, json_object_get(json_object_get(gate, "action"), "summary"));
	drop_clear(search, clear);
	free(clear);
	if (search->len == 0 || search->len == NEEDLES_MAX || title.len == 0)
		return error_set(error, FATE_FATAL, ERR_BUG,
		                 "fermata show --state --json shows no history or no title");
	search_add(search, title);
	return FATE_OK;
}

static enum fate judge(const struct search *search, struct error *error)
{
	size_t found = 0;

	for (size_t i = 0; i + 1 < search->len; i++)
		found += search->needles[i].found;
	if (found > 0)
		return error_set(error, FATE_FATAL, ERR_BUG,
		                 "words of the history are in the database's files, in %zu places", found);
	if (search->needles[search->len - 1].found == 0)
		return error_set(error, FATE_FATAL, ERR_BUG,
		                 "the search does not find the title, which stands in clear");
	return FATE_OK;
}

static void tell(struct scene *scene, const struct search *search, size_t entries)
{
	scene_lines(scene,
	            "After a CHECKPOINT all %zu files of the database (%" PRIu64 " MB) were searched for the\n"
	            "%zu entries of its history, every %d words in a row of them, its variables and what\n"
	            "it proposes: %zu texts, none found. (The title of the gate, which stands in clear for\n"
	            "those who decide, was found %zu times: the search does find things.)",
	            search->files, search->bytes / 1000000, entries, RUN_WORDS, search->len - 1,
	            search->needles[search->len - 1].found);
}

static enum fate search_database(struct scene *scene, const json_t *row, const json_t *suspend,
                                 struct search *search, struct error *error)
{
	enum fate fate = fill_search(search, row, suspend, error);

	if (fate == FATE_OK)
		fate = postgres_checkpoint(&scene->world->postgres, error);
	if (fate == FATE_OK)
		fate = search_run(search, scene->world->postgres.data, error);
	if (fate == FATE_OK)
		fate = judge(search, error);
	if (fate == FATE_OK)
		tell(scene, search, json_array_size(json_object_get(suspend, "history")));
	return fate;
}

/* Takes the opened state out of the answer, so that the row is left, which stands in clear. */
static enum fate look(struct scene *scene, json_t *row, struct error *error)
{
	struct search *search = calloc(1, sizeof(*search));
	json_t *suspend = json_incref(json_object_get(row, "suspend"));
	enum fate fate;

	(void)json_object_del(row, "suspend");
	if (search == NULL)
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "out of memory");
	else
		fate = search_database(scene, row, suspend, search, error);
	json_decref(suspend);
	free(search);
	return fate;
}

enum fate sealed_look(struct scene *scene, const char *session, struct error *error)
{
	json_t *row;
	enum fate fate = ask(scene->world, session, true, &row, error);

	if (fate != FATE_OK)
		return fate;
	if (row == NULL)
		return error_set(error, FATE_FATAL, ERR_BUG, "%s is unknown all of a sudden", session);
	fate = look(scene, row, error);
	json_decref(row);
	return fate;
}
