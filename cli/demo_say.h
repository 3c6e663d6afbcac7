/*
 * demo_say.h - how `fermata demo` and `fermata dev` look: numbered steps, each written when it has happened,
 * with how long it took. Colours and the line that says what is under way are for terminals only.
 */
#ifndef FERMATA_CLI_DEMO_SAY_H
#define FERMATA_CLI_DEMO_SAY_H

#include "cli/screen.h"

/* The name of what follows, and paragraphs below it (each line with its newline; "" for none). */
void say_title(const char *title, const char *text);
/* Something is under way; the next line takes its place. On a terminal only. */
void say_busy(const char *what);
/* A step has been taken. */
void say_step(int number, const char *title, int64_t took_ms);
/* The same for one that failed. */
void say_failed_step(int number, const char *title, int64_t took_ms);
/* Lines that belong to the step. */
void say_lines(const char *lines);
/* A command that was run, as it would be typed, and then its output, line by line. On a terminal lines are
 * broken to fit; the rows of a table (is_row) are cut. */
void say_command(const char *command);
void say_output(const char *text, bool is_row);
/* A pause of the story. */
void say_pause(const char *text);
/* The last word. good: in green. */
void say_end(bool good, const char *text);

#endif
