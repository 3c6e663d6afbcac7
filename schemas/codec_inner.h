/*
 * codec_inner.h - what the parts of the codec share. Private to this room.
 *
 * A part is something that is decoded and encoded by itself: one of the four records, or a piece of one.
 * avro-c reads and writes a part as a generic value of the part's wire schema (schema_wire_text: maps are
 * arrays of entries); a cursor walks a generic record's fields in their order, which is the contract's, in
 * either direction.
 */
#ifndef FERMATA_SCHEMAS_CODEC_INNER_H
#define FERMATA_SCHEMAS_CODEC_INNER_H

#include "schemas/catalog.h"
#include "schemas/codec.h"
#include "schemas/framing.h"
#include "schemas/migrate.h"
#include "schemas/schema.h"

#include <avro/io.h>
#include <avro/value.h>

enum part {
	PART_SUSPEND, /* the first four are enum record_type */
	PART_APPROVAL,
	PART_RESUME,
	PART_GATE,
	PART_RESUME_HEAD, /* resume_id to edits */
	PART_RESUME_TAIL, /* migrated_from to signature */
	PART_EDITS,
	PART_COUNT,
};

/* Made once in a process and never freed. */
struct part_class {
	const char *name;
	const struct schema *schema;
	const struct schema_type *type;
	avro_value_iface_t *iface;
	uint64_t fingerprint; /* of the four records */
	uint8_t sha256[32];
	struct migrate_text text; /* as it stands in schemas/NAME.avsc */
};

/* FATAL ERR_BUG when our own schemas do not pass; the same answer each time. */
FM_MUSTCHECK enum fate classes_ready(struct error *error);
const struct part_class *class_of(enum part part);

struct codec {
	struct codec_settings settings;
	bool registry; /* its framings are read */
	avro_reader_t reader;
	avro_writer_t writer;
	avro_value_t values[PART_COUNT]; /* iface NULL until it is used */
	uint64_t refusals[PART_COUNT];   /* of memory, when it was used last */
	size_t lens[PART_COUNT];         /* of what it was used for last; at least */
	struct arena *scratch;           /* for checks of what is written; no longer than one call */
	struct buffer migrated;          /* a body of another schema under today's */
	struct view header;              /* __value_schema_id of what is taken next */
	struct schema_want want;         /* what was missing */
	int32_t write_ids[PART_GATE + 1];
};

/* What the copying to and from generic values shares. Failure is sticky. */
struct walk {
	struct arena *arena; /* reading: where copies live */
	bool failed;         /* no memory */
};

/* The next field of a generic record. */
struct cursor {
	struct walk *walk;
	avro_value_t record;
	size_t next;
};

struct cursor cursor_of(struct walk *walk, const avro_value_t *record);
/* The next field itself. */
avro_value_t next_value(struct cursor *at);
/* Steps into the next field, a record. */
struct cursor next_record(struct cursor *at);

/* Reading: codec_read.c. Copies live in the walk's arena. Where they fail they give empty values. */
struct view next_text(struct cursor *at);
struct view next_bytes(struct cursor *at);
int64_t next_long(struct cursor *at);
int32_t next_int(struct cursor *at);
int next_enum(struct cursor *at);
void next_fixed(struct cursor *at, uint8_t *to, size_t len);
/* Unions of null and X: false is null. */
bool next_branch(struct cursor *at, avro_value_t *ret_branch);
struct view next_text_or_null(struct cursor *at);
struct view next_bytes_or_null(struct cursor *at);
/* A time that is not null but is TIME_NONE's number comes out as the microsecond after it. */
int64_t next_time_or_none(struct cursor *at);
struct view *next_texts(struct cursor *at, size_t *ret_len);
/* The next field is an array (or map): its items, each a cursor to take with item_record. NULL and a length
 * of 0 when there is no memory: room for ret_len structs of size. */
void *next_array(struct cursor *at, size_t size, avro_value_t *ret_array, size_t *ret_len);
struct cursor item_record(struct walk *walk, const avro_value_t *array, size_t position);

struct config_entry *next_config(struct cursor *at, size_t *ret_len);
void next_action(struct cursor *at, struct action *ret_action);
void next_edits(struct cursor *at, struct edits *ret_edits);
void next_approver(struct cursor *at, struct approver *ret_approver);
void next_source(struct cursor *at, struct source *ret_source);
void next_signature(struct cursor *at, struct signature *ret_signature);
void read_edits(struct cursor *at, struct edits *ret_edits);
/* The fields of SuspendEvent, which stand in ResumeEvent too. Ids are texts only. */
void read_suspend(struct cursor *at, struct suspend_event *ret_event);

/* Writing: codec_write.c. What is written borrows until the value is reset. */
void put_text(struct cursor *at, struct view text);
void put_bytes(struct cursor *at, struct view bytes);
void put_long(struct cursor *at, int64_t value);
void put_int(struct cursor *at, int32_t value);
void put_enum(struct cursor *at, int value);
void put_fixed(struct cursor *at, const uint8_t *data, size_t len);
avro_value_t put_branch(struct cursor *at, int branch);
void put_text_or_null(struct cursor *at, struct view text);
void put_bytes_or_null(struct cursor *at, struct view bytes);
void put_time_or_none(struct cursor *at, int64_t time);
void put_texts(struct cursor *at, const struct view *texts, size_t len);
/* A new last item of an array. */
struct cursor append_record(struct walk *walk, avro_value_t *array);
/* A uuid as it was sent, or from its bytes when there is no text. text_room holds it until then. */
void put_uuid(struct cursor *at, struct view text, const struct uuid *uuid,
              char text_room[UUID_TEXT_LEN + 1]);

void put_config(struct cursor *at, const struct config_entry *config, size_t len);
void put_action(struct cursor *at, const struct action *action);
void put_edits(struct cursor *at, const struct edits *edits);
void put_approver(struct cursor *at, const struct approver *approver);
void put_source(struct cursor *at, const struct source *source);
void put_signature(struct cursor *at, const struct signature *signature);
void write_edits(struct cursor *at, const struct edits *edits);

/* codec.c: bytes to a generic value and back. */

/* Guarded bytes; afterwards the caller copies out of *ret_value and calls value_done. */
FM_MUSTCHECK enum fate value_read(struct codec *codec, enum part part, struct view body,
                                  avro_value_t *ret_value, struct error *error);
/* An empty value of the part to be filled, then written by value_write. */
FM_MUSTCHECK enum fate value_start(struct codec *codec, enum part part, avro_value_t *ret_value,
                                   struct error *error);
/* Appends the value, and guards what came out: the writer's own texts may not be UTF-8. */
FM_MUSTCHECK enum fate value_write(struct codec *codec, enum part part, const struct walk *walk,
                                   struct buffer *out, struct error *error);
/* Lets go of what the value holds, wiped. */
void value_done(struct codec *codec, enum part part);

/* Around the writing of a whole record: put_begin appends the framing and gives where the record starts,
 * put_end checks the size and takes everything back when fate says that it did not work. */
size_t put_begin(struct codec *codec, enum part part, struct buffer *out);
FM_MUSTCHECK enum fate put_end(struct codec *codec, enum part part, struct buffer *out, size_t start,
                               enum fate fate, struct error *error);

/* Framing off, known fingerprint, guard. */
FM_MUSTCHECK enum fate body_take(struct codec *codec, enum part part, struct view value,
                                 struct view *ret_body, struct error *error);
/* As body_take, and *ret_sent is the body as it was sent, under the schema of ret_sha256 (may be NULL). */
FM_MUSTCHECK enum fate body_take_sent(struct codec *codec, enum part part, struct view value,
                                      struct view *ret_body, struct view *ret_sent, uint8_t ret_sha256[32],
                                      struct error *error);
FM_MUSTCHECK enum fate body_guard(enum part part, struct view body, struct error *error);

/* How many values a body of that length may hold. */
size_t values_in(size_t len);

/* codec_bytes.c: without avro-c, for what a relay reads and writes by the thousand. Reading: the bytes have passed the
 * guard. */
int64_t bytes_take_long(const uint8_t **at);
struct view bytes_take_sized(const uint8_t **at);
/* Writing: the walk says whether the guard would have it. */
void bytes_put_long(struct buffer *out, int64_t value);
void bytes_put_sized(struct buffer *out, struct view bytes);
/* Unions of null and the type. */
void bytes_put_sized_or_null(struct buffer *out, struct view bytes);
void bytes_put_time_or_none(struct buffer *out, int64_t time);
void bytes_put_action(struct buffer *out, const struct action *action);
void bytes_put_uuid(struct buffer *out, struct view text, const struct uuid *uuid);
/* What was appended since start, guarded: the writer's own texts may not be UTF-8. All of it is taken back when it
 * is refused. */
FM_MUSTCHECK enum fate bytes_end(struct buffer *out, enum part part, size_t start, struct error *error);

/* codec_older.c: a frame's body, which another schema wrote, under today's of the record `whole`: the
 * codec's until its next call; or itself, when the schema is another text of today's. ret_sha256 is of
 * what it was written with. */
FM_MUSTCHECK enum fate older_take(struct codec *codec, enum part whole, const struct frame *frame,
                                  struct view *ret_body, uint8_t ret_sha256[32], struct error *error);

FM_MUSTCHECK enum fate walk_fate(const struct walk *walk, struct error *error);

#endif
