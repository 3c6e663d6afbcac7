/*
 * store_row.h - reads the columns of a result, binary, one after the other.
 *
 * A row is hostile too. Faults are sticky (a type that is not the expected one, a length that does not fit
 * it, an enum's name that is not known, no memory) and row_end tells of them. Texts and bytes are copied into
 * the arena, for the result goes.
 */
#ifndef FERMATA_STORE_STORE_ROW_H
#define FERMATA_STORE_STORE_ROW_H

#include "core/uuid.h"

#include <libpq-fe.h>

struct row {
	const PGresult *result;
	int row;
	int column; /* the next to be read */
	struct arena *arena;
	int bad_column; /* -1: none is */
	bool no_memory;
};

struct row row_at(const PGresult *result, int row, struct arena *arena);
/* FATAL when a column was not what this program expects (another program changed the tables), REJECT
 * ERR_MEMORY when the arena was too small, FATAL too when columns were left over. */
FM_MUSTCHECK enum fate row_end(const struct row *row, struct error *error);

bool row_is_null(const struct row *row); /* the next column; does not move on */
void row_skip(struct row *row);

/* Null reads as false and 0. */
bool row_bool(struct row *row);
int16_t row_int2(struct row *row);
int32_t row_int4(struct row *row);
int64_t row_int8(struct row *row);
/* Null reads as TIME_NONE. */
int64_t row_time(struct row *row);
/* Null reads as absent. */
struct view row_text(struct row *row);
struct view row_bytes(struct row *row);
/* Null reads as empty. */
struct view row_text_or_empty(struct row *row);
struct uuid row_uuid(struct row *row);
/* Fills len bytes. False, and zeros, when it is null or of another length: what was tampered with then fails
 * its own check (a tag, a digest), and that row only. */
bool row_fixed(struct row *row, uint8_t *ret_bytes, size_t len);
/* The number of an enum's name, whose names are those of name_of(0 .. count - 1); -1 when it is null. */
int row_enum(struct row *row, const char *(*name_of)(int), int count);
/* Null reads as no elements; a null element as an empty text. */
void row_texts(struct row *row, struct view **ret_texts, size_t *ret_len);
void row_uuids(struct row *row, struct uuid **ret_uuids, size_t *ret_len);

/* The number that WITH ORDINALITY gave, as an index below len. FATAL ERR_BUG: it is none that was asked for. */
FM_MUSTCHECK enum fate row_ordinal(struct row *row, size_t len, size_t *ret_at, struct error *error);

/* For a statement that gives one bigint (or no row: then it is left as it is): context is an int64_t. */
enum fate row_number(void *context, const PGresult *rows, struct error *error);

#endif
