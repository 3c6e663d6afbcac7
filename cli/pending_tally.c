#include "cli/pending_tally.h"

#include "cli/row_json.h"
#include "core/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX  200
#define IDS_SHOWN   3
#define PROGRESS_MS 1000
#define TEXT_SIZE   512

struct pending_group {
	char reason[sizeof(((struct error *)NULL)->message)];
	char fingerprint[FINGERPRINT_HEX_LEN + 1];
	size_t count;
	struct uuid ids[IDS_SHOWN];
};

void tally_init(struct pending_tally *tally)
{
	*tally = (struct pending_tally){ .shows = isatty(STDERR_FILENO) == 1, .shown_at = clock_mono_ms() };
}

void tally_done(struct pending_tally *tally)
{
	free(tally->groups);
}

/* ---- progress ---- */

static void show(struct pending_tally *tally)
{
	size_t seen = 0;
	int64_t now;

	if (!tally->shows)
		return;
	now = clock_mono_ms();
	if (now - tally->shown_at < PROGRESS_MS)
		return;
	for (int i = 0; i < LOADED_COUNT; i++)
		seen += tally->counts[i];
	fprintf(stderr, "\r%zu looked at, %zu would not load", seen, tally->counts[LOADED_NOT]);
	tally->shown_at = now;
	tally->has_shown = true;
}

static void hide(const struct pending_tally *tally)
{
	if (tally->has_shown)
		fprintf(stderr, "\r%*s\r", 60, "");
}

/* ---- counting ---- */

void tally_one(struct pending_tally *tally, enum loaded loaded)
{
	tally->counts[loaded]++;
	show(tally);
}

/* "items[17].name" and "items[3].name" are one reason. */
static void without_positions(const char *text, char *out, size_t cap)
{
	size_t len = 0;

	for (; *text != '\0' && len + 1 < cap; text++) {
		out[len++] = *text;
		if (*text == '[' && text[1 + strspn(text + 1, "0123456789")] == ']')
			text += strspn(text + 1, "0123456789");
	}
	out[len] = '\0';
}

static struct pending_group *find(struct pending_tally *tally, const char *reason, const char *fingerprint)
{
	for (size_t i = 0; i < tally->groups_len; i++) {
		struct pending_group *group = &tally->groups[i];
		if (strcmp(group->reason, reason) == 0 && strcmp(group->fingerprint, fingerprint) == 0)
			return group;
	}
	if (tally->groups == NULL)
		tally->groups = calloc(GROUPS_MAX, sizeof(*tally->groups));
	if (tally->groups == NULL || tally->groups_len == GROUPS_MAX)
		return NULL;
	struct pending_group *group = &tally->groups[tally->groups_len++];
	snprintf(group->reason, sizeof(group->reason), "%s", reason);
	snprintf(group->fingerprint, sizeof(group->fingerprint), "%s", fingerprint);
	return group;
}

static enum fate print_one(const struct checking *checking, const struct checkpoint *row,
                           const char *fingerprint, const struct error *why, struct error *error)
{
	char id[UUID_TEXT_LEN + 1];
	struct json_line *line;

	if (!checking->cli->json)
		return FATE_OK;
	line = json_line_new();
	uuid_format(&row->id, id);
	json_line_text(line, "check", view_of("pending"));
	json_line_text(line, "checkpoint_id", view_of(id));
	json_line_text(line, "session_id", row->session_id);
	json_line_text(line, "state", view_of(gate_state_name(row->state)));
	json_line_text(line, "fingerprint", fingerprint[0] != '\0' ? view_of(fingerprint) : VIEW_NULL);
	json_line_text(line, "code", view_of(error_code_name(why->code)));
	json_line_text(line, "why", view_of(why->message));
	return json_line_write(line, error);
}

enum fate tally_not(struct pending_tally *tally, const struct checking *checking,
                    const struct checkpoint *row, const char *fingerprint, const struct error *why,
                    struct error *error)
{
	char reason[sizeof(why->message)];
	struct pending_group *group;

	without_positions(why->message, reason, sizeof(reason));
	group = find(tally, reason, fingerprint);
	if (group != NULL && group->count < IDS_SHOWN)
		group->ids[group->count] = row->id;
	if (group != NULL)
		group->count++;
	else
		tally->ungrouped++;
	tally_one(tally, LOADED_NOT);
	return print_one(checking, row, fingerprint, why, error);
}

size_t tally_waiting(const struct pending_tally *tally)
{
	return tally->counts[LOADED_UNCHANGED] + tally->counts[LOADED_MIGRATED] + tally->counts[LOADED_JSON] +
	       tally->counts[LOADED_NOT];
}

/* ---- saying ---- */

static void say_group(const struct checking *checking, const struct pending_group *group)
{
	char ids[IDS_SHOWN * (UUID_TEXT_LEN + 2) + 1] = "", written[64] = "";
	size_t len = 0;

	for (size_t i = 0; i < group->count && i < IDS_SHOWN; i++) {
		char id[UUID_TEXT_LEN + 1];
		uuid_format(&group->ids[i], id);
		len += (size_t)snprintf(ids + len, sizeof(ids) - len, "%s%s", i > 0 ? ", " : "", id);
	}
	if (group->fingerprint[0] != '\0' && strstr(group->reason, group->fingerprint) == NULL)
		snprintf(written, sizeof(written), ", written with schema %s", group->fingerprint);
	check_say(checking, CHECK_WRONG, "%zu%s: %s: %s%s", group->count, written, group->reason, ids,
	          group->count > IDS_SHOWN ? ", ..." : "");
}

static int by_count(const void *a, const void *b)
{
	const struct pending_group *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

static void say_all(const struct pending_tally *tally, const struct checking *checking)
{
	const size_t *counts = tally->counts;
	size_t waiting = tally_waiting(tally), load = waiting - counts[LOADED_NOT];

	check_say(
		checking, counts[LOADED_NOT] > 0 ? CHECK_WRONG : CHECK_OK,
		"%zu wait that %s is for: %zu would load (%zu unchanged, %zu migrated, %zu are JSON), %zu would not",
		waiting, checking->file.path, load, counts[LOADED_UNCHANGED], counts[LOADED_MIGRATED],
		counts[LOADED_JSON], counts[LOADED_NOT]);
	for (size_t i = 0; tally->groups != NULL && i < tally->groups_len; i++)
		say_group(checking, &tally->groups[i]);
	if (tally->ungrouped > 0)
		check_say(checking, CHECK_WRONG, "%zu for still other reasons", tally->ungrouped);
	if (tally->unopened > 0)
		check_say(checking, CHECK_WARNING,
		          "%zu of those could not be opened, and may hold a state of another schema",
		          tally->unopened);
	if (counts[LOADED_OTHER] + counts[LOADED_WITHOUT] > 0)
		check_say(checking, CHECK_OK, "%zu more wait: %zu with a state of another schema, %zu without one",
		          counts[LOADED_OTHER] + counts[LOADED_WITHOUT], counts[LOADED_OTHER],
		          counts[LOADED_WITHOUT]);
}

static enum fate print_all(const struct pending_tally *tally, const struct checking *checking,
                           struct error *error)
{
	struct json_line *line = json_line_new();
	const size_t *counts = tally->counts;

	json_line_text(line, "check", view_of("pending"));
	json_line_flag(line, "summary", true);
	json_line_text(line, "file", view_of(checking->file.path));
	json_line_text(line, "name", view_of(schema_file_name(&checking->file)));
	json_line_number(line, "waiting", (int64_t)tally_waiting(tally));
	json_line_number(line, "would_load", (int64_t)(tally_waiting(tally) - counts[LOADED_NOT]));
	json_line_number(line, "unchanged", (int64_t)counts[LOADED_UNCHANGED]);
	json_line_number(line, "migrated", (int64_t)counts[LOADED_MIGRATED]);
	json_line_number(line, "json", (int64_t)counts[LOADED_JSON]);
	json_line_number(line, "would_not_load", (int64_t)counts[LOADED_NOT]);
	json_line_number(line, "unopened", (int64_t)tally->unopened);
	json_line_number(line, "of_other_schemas", (int64_t)counts[LOADED_OTHER]);
	json_line_number(line, "without_state", (int64_t)counts[LOADED_WITHOUT]);
	return json_line_write(line, error);
}

enum fate tally_say(struct pending_tally *tally, const struct checking *checking, struct error *error)
{
	hide(tally);
	if (tally->groups != NULL)
		qsort(tally->groups, tally->groups_len, sizeof(*tally->groups), by_count);
	if (checking->cli->json)
		return print_all(tally, checking, error);
	say_all(tally, checking);
	return FATE_OK;
}
