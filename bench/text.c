#include "bench/text.h"

#include "bench/words.h"

#include <stdio.h>
#include <string.h>

#define WORDS      4096
#define DRAWS      65536 /* a word in each, as many of one word as it is frequent */
#define WORD_BYTES 28
#define OFFSET     2.7 /* of Zipf's law as Mandelbrot has it */

struct vocabulary {
	char words[WORDS][WORD_BYTES];
	uint8_t lengths[WORDS];
	uint16_t draws[DRAWS];
};

uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint32_t dice_below(struct dice *dice, uint32_t below)
{
	return (uint32_t)(((dice_roll(dice) >> 32) * below) >> 32);
}

/* ---- the vocabulary ---- */

/* The rare words of such a chat are names: of columns, functions, files. */
static void make_name(char word[WORD_BYTES], size_t number)
{
	static const char *const joints[] = { "_", "-", ".", "_to_" };
	size_t first = 20 + number * 7 % (PLAIN_WORDS - 20);
	size_t second = 20 + number * 13 / 3 % (PLAIN_WORDS - 20);

	snprintf(word, WORD_BYTES, "%.11s%s%.11s", plain_words[first], joints[number % 4], plain_words[second]);
}

static void fill_draws(struct vocabulary *vocabulary)
{
	double sum = 0, so_far = 0;
	size_t draw = 0;

	for (size_t i = 0; i < WORDS; i++)
		sum += 1 / ((double)i + OFFSET);
	for (size_t i = 0; i < WORDS; i++) {
		so_far += 1 / ((double)i + OFFSET);
		size_t end = (size_t)(so_far / sum * DRAWS);
		for (; draw < end && draw < DRAWS; draw++)
			vocabulary->draws[draw] = (uint16_t)i;
	}
	for (; draw < DRAWS; draw++)
		vocabulary->draws[draw] = WORDS - 1;
}

/* Made once, by the one thread that writes text. */
static const struct vocabulary *the_vocabulary(void)
{
	static struct vocabulary vocabulary;

	if (vocabulary.lengths[0] != 0)
		return &vocabulary;
	for (size_t i = 0; i < WORDS; i++) {
		if (i < PLAIN_WORDS)
			snprintf(vocabulary.words[i], WORD_BYTES, "%s", plain_words[i]);
		else
			make_name(vocabulary.words[i], i);
		vocabulary.lengths[i] = (uint8_t)strlen(vocabulary.words[i]);
	}
	fill_draws(&vocabulary);
	return &vocabulary;
}

static void put_word(struct buffer *out, struct dice *dice, bool capital)
{
	const struct vocabulary *vocabulary = the_vocabulary();
	uint16_t word = vocabulary->draws[dice_roll(dice) % DRAWS];
	size_t at = out->len;

	buffer_append(out, vocabulary->words[word], vocabulary->lengths[word]);
	if (capital && !buffer_failed(out) && out->data[at] >= 'a' && out->data[at] <= 'z')
		out->data[at] = (uint8_t)(out->data[at] - 'a' + 'A');
}

/* ---- prose ---- */

/* A number, a path, an id: what no vocabulary holds. */
static void put_fact(struct buffer *out, struct dice *dice)
{
	uint32_t number = dice_below(dice, 100000);

	switch (dice_below(dice, 5)) {
	case 0:
		buffer_printf(out, "%u", number);
		break;
	case 1:
		buffer_printf(out, "%u.%u %%", number % 100, number % 10);
		break;
	case 2:
		buffer_printf(out, "`src/%s/%s.sql`", plain_words[100 + number % 200],
		              plain_words[60 + number % 250]);
		break;
	case 3:
		buffer_printf(out, "%08x", (uint32_t)dice_roll(dice));
		break;
	default:
		buffer_printf(out, "2026-11-%02u %02u:%02u", 1 + number % 30, number % 24, number % 60);
		break;
	}
}

static void put_sentence(struct buffer *out, struct dice *dice, size_t end)
{
	uint32_t words = 4 + dice_below(dice, 16);

	put_word(out, dice, true);
	for (uint32_t i = 1; i < words && out->len < end && !buffer_failed(out); i++) {
		uint32_t chance = dice_below(dice, 100);
		buffer_append_text(out, chance < 6 ? ", " : " ");
		if (chance > 95)
			put_fact(out, dice);
		else
			put_word(out, dice, false);
	}
	buffer_append_byte(out, dice_below(dice, 12) == 0 ? '?' : '.');
}

void text_prose(struct buffer *out, struct dice *dice, size_t len)
{
	size_t end = out->len + len;

	do {
		put_sentence(out, dice, end);
		uint32_t chance = dice_below(dice, 20);
		buffer_append_text(out, chance == 0 ? "\n\n" : chance == 1 ? "\n- " : " ");
	} while (out->len < end && !buffer_failed(out));
}

/* ---- what tools say ---- */

static void put_log_line(struct buffer *out, struct dice *dice)
{
	static const char *const levels[] = { "INFO ", "INFO ", "INFO ", "DEBUG", "WARN " };
	uint32_t number = dice_below(dice, 86400);

	buffer_printf(out, "2026-11-30T%02u:%02u:%02u.%03uZ %s ", number / 3600, number / 60 % 60, number % 60,
	              dice_below(dice, 1000), levels[dice_below(dice, 5)]);
	put_word(out, dice, false);
	buffer_printf(out, "[%u]: ", 1000 + dice_below(dice, 30000));
	put_sentence(out, dice, out->len + 60);
	buffer_append_byte(out, '\n');
}

static void put_row(struct buffer *out, struct dice *dice)
{
	uint64_t id = dice_roll(dice);

	buffer_printf(out, "{\"id\":\"%08x-%04x-7%03x\",\"name\":\"", (uint32_t)id, (unsigned)(id >> 48),
	              (unsigned)(id >> 32 & 0xfff));
	put_word(out, dice, false);
	buffer_printf(out, "\",\"amount\":%u.%02u,\"active\":%s,\"note\":\"", dice_below(dice, 5000),
	              dice_below(dice, 100), dice_below(dice, 4) ? "true" : "false");
	put_word(out, dice, false);
	buffer_append_text(out, " ");
	put_word(out, dice, false);
	buffer_append_text(out, "\"},\n");
}

static void put_diff_line(struct buffer *out, struct dice *dice)
{
	static const char *const starts[] = { "  ",   "  ", "+ ALTER TABLE ", "- ALTER TABLE ", "+ ADD COLUMN ",
		                                  "  -- " };

	buffer_append_text(out, starts[dice_below(dice, 6)]);
	for (uint32_t i = 2 + dice_below(dice, 5); i > 0; i--) {
		put_word(out, dice, false);
		buffer_append_byte(out, ' ');
	}
	buffer_append_text(out, ";\n");
}

void text_output(struct buffer *out, struct dice *dice, size_t len)
{
	static void (*const put[])(struct buffer * out, struct dice * dice) = { put_log_line, put_row,
		                                                                    put_diff_line };
	size_t end = out->len + len;
	uint32_t kind = dice_below(dice, 3);

	do
		put[kind](out, dice);
	while (out->len < end && !buffer_failed(out));
}

void text_arguments(struct buffer *out, struct dice *dice, size_t len)
{
	size_t end = out->len + len;

	buffer_append_text(out, "{\"path\":\"src/");
	put_word(out, dice, false);
	buffer_printf(out, ".sql\",\"limit\":%u,\"request_id\":\"%016llx\"", 10 * dice_below(dice, 50),
	              (unsigned long long)dice_roll(dice));
	if (out->len + 24 < end) {
		buffer_append_text(out, ",\"query\":\"");
		while (out->len + 8 < end && !buffer_failed(out)) {
			put_word(out, dice, false);
			buffer_append_byte(out, ' ');
		}
		buffer_append_byte(out, '"');
	}
	buffer_append_byte(out, '}');
}

void text_call_id(struct buffer *out, struct dice *dice)
{
	static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	buffer_append_text(out, "call_");
	for (int i = 0; i < 24; i++)
		buffer_append_byte(out, (uint8_t)signs[dice_below(dice, sizeof(signs) - 1)]);
}
