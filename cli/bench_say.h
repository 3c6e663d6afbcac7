/* bench_say.h - `fermata bench` to people and to machines: figures, and how far it is. */
#ifndef FERMATA_CLI_BENCH_SAY_H
#define FERMATA_CLI_BENCH_SAY_H

#include "bench/bench.h"

#define SAYING_ROWS_MAX   256
#define SAYING_ROUNDS_MAX 9

/* A row of the table: the same figure of each round. */
struct bench_row {
	struct bench_figure rounds[SAYING_ROUNDS_MAX];
	size_t len;
};

struct bench_saying {
	bool json;
	int round;     /* from 1 on */
	bool terminal; /* stderr is one: the line is written over */
	int64_t said_ms;
	char doing[64]; /* what was said last */
	struct bench_row rows[SAYING_ROWS_MAX];
	size_t len;
};

void bench_say_init(struct bench_saying *saying, bool json);
/* As bench_host: how far it is, to stderr; on a terminal a few times a second, else when something else is done, and every
 * ten seconds. */
void bench_say_progress(struct bench_saying *saying, size_t size, const char *doing, int64_t done,
                        int64_t of);
/* The progress is over: its line is taken back. */
void bench_say_over(struct bench_saying *saying);
/* One figure: kept for the table, and with --json one object on stdout at once. */
FM_MUSTCHECK enum fate bench_say_figure(struct bench_saying *saying, const struct bench_figure *figure,
                                        struct error *error);
/* What was measured with so many settled rows, of this size and round, beside the same on empty tables: figures of their own. */
FM_MUSTCHECK enum fate bench_say_settled(struct bench_saying *saying, size_t size, uint32_t settled,
                                         struct error *error);
/* The table of what was kept; of several rounds the middle one, by the ratio or, without one, by the value. */
FM_MUSTCHECK enum fate bench_say_table(struct bench_saying *saying, struct error *error);
/* "2 KiB", "1500 B"; spaced: with a blank before the unit. cap >= 32. Returns text. */
char *bench_size_text(size_t size, bool spaced, char *text, size_t cap);

#endif
