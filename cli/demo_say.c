#include "cli/demo_say.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 78
#define INDENT  5
#define ERASE   "\r\033[K"

static bool busy;

static void clear_busy(void)
{
	if (busy)
		fputs(ERASE, stdout);
	busy = false;
}

/* Everything leaves at once: in a log, too, a line stands there when its thing has happened. */
static void done(void)
{
	fflush(stdout);
}

static void put(enum colour colour, const char *text)
{
	printf("%s%s%s", colour_on(colour), text, colour_off(colour));
}

void say_title(const char *title, const char *text)
{
	clear_busy();
	fputc('\n', stdout);
	put(COLOUR_BOLD, title);
	printf("\n\n%s", text);
	done();
}

void say_busy(const char *what)
{
	if (!screen_colours())
		return;
	clear_busy();
	printf("%*s%s%s ...%s", INDENT, "", colour_on(COLOUR_DIM), what, colour_off(COLOUR_DIM));
	busy = true;
	done();
}

static void put_step(int number, const char *title, int64_t took_ms, enum colour colour)
{
	char time[32];
	size_t width = text_columns(view_of(title));
	int len = snprintf(time, sizeof(time), "%.1f s", (double)took_ms / 1000.0);
	int gap = COLUMNS - INDENT - (int)width - len;

	clear_busy();
	printf("%s%3d%s  ", colour_on(colour), number, colour_off(colour));
	put(COLOUR_BOLD, title);
	printf("%*s%s%s%s\n", gap > 1 ? gap : 1, "", colour_on(COLOUR_DIM), time, colour_off(COLOUR_DIM));
	done();
}

void say_step(int number, const char *title, int64_t took_ms)
{
	put_step(number, title, took_ms, COLOUR_GREEN);
}

void say_failed_step(int number, const char *title, int64_t took_ms)
{
	put_step(number, title, took_ms, COLOUR_RED);
}

void say_lines(const char *lines)
{
	clear_busy();
	while (*lines != '\0') {
		int len = (int)strcspn(lines, "\n");
		printf("%*s%.*s\n", len > 0 ? INDENT : 0, "", len, lines);
		lines += len + (lines[len] == '\n');
	}
	done();
}

void say_command(const char *command)
{
	clear_busy();
	printf("%*s%s$ %s%s\n", INDENT, "", colour_on(COLOUR_BLUE), command, colour_off(COLOUR_BLUE));
	done();
}

static void put_output(struct view line, const char *mark)
{
	struct buffer out;

	buffer_init(&out, 65536);
	buffer_printf(&out, "%*s%s%s%s ", INDENT, "", colour_on(COLOUR_DIM), mark, colour_off(COLOUR_DIM));
	put_clean(&out, line);
	buffer_append_byte(&out, '\n');
	screen_write(&out);
	buffer_done(&out);
}

/* How much of the line fits, to the end of a word if that can be. */
static size_t fitting(struct view line, size_t columns)
{
	size_t len = text_cut(line, columns);
	size_t word = len;

	if (len == line.len)
		return len;
	while (word > len / 2 && line.data[word] != ' ')
		word--;
	return line.data[word] == ' ' ? word : len;
}

void say_output(const char *text, bool is_row)
{
	struct view line = view_of(text);
	size_t width = screen_width();
	const char *mark = "|";

	clear_busy();
	while (width > INDENT + 20) {
		size_t len = fitting(line, width - INDENT - 2);
		if (len == 0 || len == line.len || is_row)
			break;
		put_output((struct view){ line.data, len }, mark);
		len += line.data[len] == ' ';
		line = (struct view){ line.data + len, line.len - len };
		mark = ":";
	}
	if (width > INDENT + 20)
		line.len = text_cut(line, width - INDENT - 2);
	put_output(line, mark);
	done();
}

void say_pause(const char *text)
{
	clear_busy();
	printf("\n%*s%s. . .  %s  . . .%s\n\n", INDENT, "", colour_on(COLOUR_DIM), text, colour_off(COLOUR_DIM));
	done();
}

void say_end(bool good, const char *text)
{
	clear_busy();
	fputc('\n', stdout);
	put(good ? COLOUR_GREEN : COLOUR_RED, text);
	fputc('\n', stdout);
	done();
}
