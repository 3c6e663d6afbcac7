#include "cli/rebuild_say.h"
#include "cli/row_json.h"
#include "cli/screen.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES  4096
#define SELDOM_MS   10000
#define TAKE_BACK   "\r\033[K" /* to the beginning of the line, which is cleared */
#define US_PER_S    INT64_C(1000000)
#define NAME_COLUMN 12

/* ---- how far it is ---- */

static void put_phase(struct buffer *out, const struct rebuild_progress *progress, enum rebuild_phase phase)
{
	int64_t read = progress->phases[phase].read, of = progress->phases[phase].of;

	buffer_printf(out, "%s%s ", phase > 0 ? "  " : "", rebuild_phase_name(phase));
	if (read < of)
		buffer_printf(out, "%" PRId64 " of ", read);
	buffer_printf(out, "%" PRId64, of);
	if (phase == progress->now && read < of && progress->phases[phase].per_s >= 0)
		buffer_printf(out, ", %" PRId64 "/s", progress->phases[phase].per_s);
}

static void put_progress(struct buffer *out, const struct rebuild_progress *progress)
{
	char left[32];

	for (int i = 0; i < REBUILD_PHASES; i++)
		put_phase(out, progress, (enum rebuild_phase)i);
	if (progress->left_s > 0)
		buffer_printf(out, "  about %s left", clock_span(progress->left_s * US_PER_S, left, sizeof(left)));
}

static void put_progress_json(struct buffer *out, const struct rebuild_progress *progress)
{
	buffer_printf(out, "{\"now\":\"%s\",\"went_on\":%s", rebuild_phase_name(progress->now),
	              progress->went_on ? "true" : "false");
	for (int i = 0; i < REBUILD_PHASES; i++)
		buffer_printf(out, ",\"%s\":{\"read\":%" PRId64 ",\"of\":%" PRId64 "}",
		              rebuild_phase_name((enum rebuild_phase)i), progress->phases[i].read,
		              progress->phases[i].of);
	if (progress->left_s >= 0)
		buffer_printf(out, ",\"seconds_left\":%" PRId64 "}", progress->left_s);
	else
		buffer_append_text(out, ",\"seconds_left\":null}");
}

static void say(const struct rebuild_saying *saying, const struct rebuild_progress *progress)
{
	struct buffer line;

	buffer_init(&line, LINE_BYTES);
	if (saying->terminal && !saying->json)
		buffer_append_text(&line, TAKE_BACK);
	if (saying->json)
		put_progress_json(&line, progress);
	else
		put_progress(&line, progress);
	if (!saying->terminal || saying->json)
		buffer_append_byte(&line, '\n');
	if (!buffer_failed(&line))
		(void)fwrite(line.data, 1, line.len, stderr);
	buffer_done(&line);
}

void rebuild_say_progress(void *context, const struct rebuild_progress *progress)
{
	struct rebuild_saying *saying = context;
	int64_t now_ms = clock_mono_ms();

	if (!saying->begun && progress->went_on)
		fprintf(stderr, "fermata: a rebuild was interrupted in this database: it goes on from there\n");
	if (saying->begun && !saying->terminal && now_ms - saying->said_ms < SELDOM_MS)
		return;
	saying->begun = true;
	saying->said_ms = now_ms;
	say(saying, progress);
}

void rebuild_say_over(struct rebuild_saying *saying, const struct rebuild_progress *progress)
{
	if (!saying->begun)
		return;
	say(saying, progress);
	if (saying->terminal && !saying->json)
		(void)fputc('\n', stderr);
}

/* ---- what came back ---- */

/* One line: a name, a number, a remark (or ""). As JSON: {"what":…,"name":…,"count":…}. */
static enum fate say_count(const struct cli *cli, const char *what, const char *name, int64_t count,
                           const char *remark, struct error *error)
{
	struct json_line *line;

	if (!cli->json) {
		printf("  %-*s %9" PRId64 "%s%s\n", NAME_COLUMN, name, count, *remark ? "  " : "", remark);
		return FATE_OK;
	}
	line = json_line_new();
	json_line_text(line, "what", view_of(what));
	json_line_text(line, "name", view_of(name));
	json_line_number(line, "count", count);
	return json_line_write(line, error);
}

static void say_title(const struct cli *cli, const char *title)
{
	if (!cli->json)
		printf("%s\n", title);
}

/* Is a line with that count to be said? Then the title stands before the first one. */
static bool say_title_of(const struct cli *cli, const char *title, int64_t count, bool *titled)
{
	if (count > 0 && !*titled) {
		say_title(cli, title);
		*titled = true;
	}
	return count > 0 || cli->json;
}

static enum fate say_place(const struct cli *cli, const struct rebuild_place *place, struct error *error)
{
	char since[48];
	struct json_line *line;

	if (!cli->json) {
		if (place->low > 0)
			printf("  %s [%" PRId32 "] begins at offset %" PRId64 " (%s): what stood before is not known\n",
			       place->topic, place->partition, place->low,
			       format_clock(place->first_at, since, sizeof(since)));
		if (place->waits)
			printf("  %s [%" PRId32
			       "] was NOT read to its end: an alarm holds it up, `fermata doctor` and the log "
			       "of a worker say which\n",
			       place->topic, place->partition);
		return FATE_OK;
	}
	line = json_line_new();
	json_line_text(line, "what", VIEW_LITERAL("place"));
	json_line_text(line, "topic", view_of(place->topic));
	json_line_number(line, "partition", place->partition);
	json_line_number(line, "first_offset", place->low);
	json_line_time(line, "first_at", place->first_at);
	json_line_flag(line, "waits", place->waits);
	return json_line_write(line, error);
}

static enum fate say_places(const struct cli *cli, const struct rebuild_place *places, size_t len,
                            struct error *error)
{
	enum fate fate = FATE_OK;

	if (len > 0)
		say_title(cli, "how far back the topics reach:");
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = say_place(cli, &places[i], error);
	return fate;
}

static const char *state_remark(const struct rebuild_report *report, enum gate_state state, char *text,
                                size_t cap)
{
	text[0] = '\0';
	if (state == GATE_IN_DOUBT)
		return "whether they were published cannot be known: `fermata in-doubt list`, then `fermata in-doubt "
			   "resume ID` or `fermata in-doubt drop ID --reason TEXT`";
	if (state == GATE_DECIDED && report->progress.phases[REBUILD_RESUMES].of == 0)
		return "a worker publishes them. No resumes topic holds a record: where one was made anew, their "
			   "executors "
			   "get what they had before once more";
	if (state == GATE_DECIDED)
		return "a worker publishes them";
	if (state == GATE_RESUMED && report->contents.bare > 0)
		snprintf(text, cap,
		         "%" PRId64 " of them without their suspend, which the topic does not have any more",
		         report->contents.bare);
	return text;
}

static enum fate say_states(const struct cli *cli, const struct rebuild_report *report, struct error *error)
{
	char text[160];
	enum fate fate = FATE_OK;
	bool checkpoints = false, decisions = false;

	for (int i = 0; i < GATE_STATE_COUNT && fate == FATE_OK; i++)
		if (say_title_of(cli, "checkpoints:", report->contents.states[i], &checkpoints))
			fate = say_count(cli, "state", gate_state_name((enum gate_state)i), report->contents.states[i],
			                 state_remark(report, (enum gate_state)i, text, sizeof(text)), error);
	for (int i = 0; i <= OUTCOME_REFUSED && fate == FATE_OK; i++)
		if (say_title_of(cli, "decisions:", report->contents.outcomes[i], &decisions))
			fate = say_count(cli, "outcome", outcome_name((enum outcome)i), report->contents.outcomes[i], "",
			                 error);
	return fate;
}

static enum fate say_letters(const struct cli *cli, const struct rebuild_report *report, struct error *error)
{
	enum fate fate;

	if (report->letters_found == 0 && report->letters_sent == 0 && !cli->json)
		return FATE_OK;
	say_title(cli, "records that cannot be taken in:");
	fate = say_count(cli, "letters", "found", report->letters_found, "had their dead letter already", error);
	return fate == FATE_OK
	           ? say_count(cli, "letters", "sent", report->letters_sent, "had none, and have one now", error)
	           : fate;
}

enum fate rebuild_say_report(const struct cli *cli, const struct rebuild_report *report, struct error *error)
{
	int64_t records = 0;
	char took[32];
	enum fate fate;

	for (int i = 0; i < REBUILD_PHASES; i++)
		records += report->progress.phases[i].of;
	if (!cli->json)
		printf("rebuilt out of %" PRId64 " records in %s\n", records,
		       clock_span(report->took_ms * 1000, took, sizeof(took)));
	fate = say_states(cli, report, error);
	if (fate == FATE_OK)
		fate = say_letters(cli, report, error);
	if (fate == FATE_OK)
		fate = say_places(cli, report->places, report->places_len, error);
	return fate;
}

/* ---- what would come back ---- */

static enum fate say_topic(const struct cli *cli, enum rebuild_phase phase, const struct survey_topic *topic,
                           struct error *error)
{
	struct json_line *line;

	if (!cli->json) {
		printf("  %-*s %9" PRId64 " records", NAME_COLUMN, rebuild_phase_name(phase), topic->records);
		if (topic->doubled > 0)
			printf(", %" PRId64 " of them again", topic->doubled);
		if (topic->conflicting > 0)
			printf(", %" PRId64 " under an id that has another", topic->conflicting);
		if (topic->unreadable > 0 && phase == REBUILD_RESUMES)
			printf(", %" PRId64 " that are no resumes", topic->unreadable);
		else if (topic->unreadable > 0)
			printf(", %" PRId64 " that cannot be taken in (%" PRId64 " have their dead letter)",
			       topic->unreadable, topic->letters_found);
		printf("\n");
		return FATE_OK;
	}
	line = json_line_new();
	json_line_text(line, "what", VIEW_LITERAL("topic"));
	json_line_text(line, "name", view_of(rebuild_phase_name(phase)));
	json_line_number(line, "records", topic->records);
	json_line_number(line, "distinct", topic->distinct);
	json_line_number(line, "doubled", topic->doubled);
	json_line_number(line, "conflicting", topic->conflicting);
	json_line_number(line, "unreadable", topic->unreadable);
	json_line_number(line, "letters_found", topic->letters_found);
	return json_line_write(line, error);
}

static enum fate say_would_be(const struct cli *cli, const struct survey *survey, struct error *error)
{
	const struct {
		const char *name;
		int64_t count;
		const char *remark;
	} lines[] = {
		{ "resumed", survey->resumed, "have a resume: RESUMED" },
		{ "bare", survey->bare, "of those: their suspend is not there any more" },
		{ "superseded", survey->superseded, "without a resume, and a later suspend of the gate: SUPERSEDED" },
		{ "undecided", survey->undecided, "without a resume or a decision: PENDING" },
		{ "judged", survey->decisions,
		  "without a resume, with decisions: judged, then PENDING, DECIDED, IN_DOUBT or settled" },
		{ "early", survey->early, "decisions only: UNCLAIMED, until worker.unclaimed_ttl is over" },
	};
	enum fate fate = FATE_OK;
	bool titled = false;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && fate == FATE_OK; i++)
		if (say_title_of(cli, "checkpoints:", lines[i].count, &titled))
			fate = say_count(cli, "checkpoints", lines[i].name, lines[i].count, lines[i].remark, error);
	return fate;
}

static enum fate say_kinds(const struct cli *cli, const struct survey *survey, struct error *error)
{
	enum fate fate = FATE_OK;
	bool resumes = false, decisions = false;

	for (int i = 0; i <= VERDICT_CANCELLED && fate == FATE_OK; i++)
		if (say_title_of(cli, "resumes:", survey->verdicts[i], &resumes))
			fate = say_count(cli, "verdict", verdict_name((enum verdict)i), survey->verdicts[i], "", error);
	for (int i = 0; i <= DECISION_EXPIRE && fate == FATE_OK; i++)
		if (say_title_of(cli, "decisions:", survey->kinds[i], &decisions))
			fate = say_count(cli, "decision", decision_kind_name((enum decision_kind)i), survey->kinds[i], "",
			                 error);
	return fate;
}

enum fate rebuild_say_survey(const struct cli *cli, const struct survey *survey, struct error *error)
{
	enum fate fate = FATE_OK;

	say_title(cli, "the topics hold (nothing was written, nothing was judged):");
	for (int i = 0; i < REBUILD_PHASES && fate == FATE_OK; i++)
		fate = say_topic(cli, (enum rebuild_phase)i, &survey->topics[i], error);
	if (fate == FATE_OK)
		fate = say_kinds(cli, survey, error);
	if (fate == FATE_OK)
		fate = say_would_be(cli, survey, error);
	return fate == FATE_OK ? say_places(cli, survey->places, survey->places_len, error) : fate;
}
