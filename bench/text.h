/*
 * text.h - prose, JSON and ids that compress as those of a chat do: words of a vocabulary of thousands, drawn with
 * the distribution of natural text (Zipf's), in sentences; the same seed gives the same text.
 */
#ifndef FERMATA_BENCH_TEXT_H
#define FERMATA_BENCH_TEXT_H

#include "core/memory.h"

/* Random numbers that can be had again (splitmix64, by Sebastiano Vigna, public domain). */
struct dice {
	uint64_t state;
};

uint64_t dice_roll(struct dice *dice);
/* 0 to below - 1; below > 0. */
uint32_t dice_below(struct dice *dice, uint32_t below);

/* Appends sentences of about len bytes (at least one word), paragraphs and lists where there is room. */
void text_prose(struct buffer *out, struct dice *dice, size_t len);
/* Appends what a tool says: lines of a log, a table as JSON, or a diff, of about len bytes. */
void text_output(struct buffer *out, struct dice *dice, size_t len);
/* Appends the arguments of a call: one JSON object of about len bytes (at least 60). */
void text_arguments(struct buffer *out, struct dice *dice, size_t len);
/* Appends "call_" and 24 letters and digits. */
void text_call_id(struct buffer *out, struct dice *dice);

#endif
