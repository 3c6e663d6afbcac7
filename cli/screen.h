/*
 * screen.h - output for people: colours only where there is a terminal, times that can be read, and nothing
 * from outside that could steer the terminal.
 */
#ifndef FERMATA_CLI_SCREEN_H
#define FERMATA_CLI_SCREEN_H

#include "core/clock.h"
#include "core/records.h"

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_BLUE };

/* Decides once, by stdout: a terminal that is not dumb, and no NO_COLOR (https://no-color.org). */
bool screen_colours(void);
/* For tests: 1 always, 0 never, -1 as above. */
void screen_force_colours(int force);
/* Columns of the terminal; 0 where there is none. */
size_t screen_width(void);

/* The sequences around a text of a colour; "" without colours. */
const char *colour_on(enum colour colour);
const char *colour_off(enum colour colour);

/*
 * Appends text from outside so that it can do no harm to a terminal: control characters (C0, DEL, C1), those
 * that turn the direction of writing, and bytes that are no UTF-8 become \xNN or \u{N}. A line feed becomes
 * a blank.
 */
void put_clean(struct buffer *out, struct view text);
/* The same for a text of several lines: each line but the first begins with `indent` blanks. */
void put_clean_lines(struct buffer *out, struct view text, size_t indent);
/* How many columns the text takes on a terminal (UTF-8; East Asian wide characters count two). */
size_t text_columns(struct view text);
/* How many bytes of it take at most so many columns. */
size_t text_cut(struct view text, size_t columns);

/* "3 h ago", "in 2 d", "now"; "-" for TIME_NONE. cap >= 32. Returns text. */
char *format_ago(int64_t at, int64_t now, char *text, size_t cap);
/* "2026-11-30 06:45:52 UTC (3 h ago)", in the zone of the machine; "-" for TIME_NONE. cap >= 96. */
char *format_when(int64_t at, int64_t now, char *text, size_t cap);
/* The first half of it. cap >= 48. */
char *format_clock(int64_t at, char *text, size_t cap);

enum colour gate_state_colour(enum gate_state state);
enum colour verdict_colour(enum verdict verdict);
enum colour risk_colour(enum risk risk);

/*
 * Ends a line of JSON and writes it to stdout, then empties the buffer. DEL, C1 and the separators of lines of
 * Unicode are written as escapes, which is the same JSON: they could steer a terminal, and some readers of
 * lines take them for the end of one.
 */
void screen_write_json(struct buffer *out);
/* Writes what was gathered to stdout and empties it. A failure is kept by stdio, and by screen_whole where there was no
 * memory to gather it, which writes nothing: cli_main looks at both at the end. */
void screen_write(struct buffer *out);
/* Was everything written that was to be? */
bool screen_whole(void);

#endif
