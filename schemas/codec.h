/*
 * codec.h - the four records between bytes and structs. The only room that knows avro-c.
 *
 * Reading is framing, guard, decode, check of the values; every failure is a REJECT whose code is that
 * of the dead letter (ERR_FRAMING, ERR_UNKNOWN_SCHEMA, ERR_MALFORMED, ERR_INVALID, ERR_TOO_LARGE,
 * ERR_NOT_AT_BOUNDARY) and whose message names the field and never quotes a value.
 * A codec is for one thread; it is cheap (it shares the parsed schemas).
 */
#ifndef FERMATA_SCHEMAS_CODEC_H
#define FERMATA_SCHEMAS_CODEC_H

#include "core/records.h"

struct codec;

struct catalog; /* schemas/catalog.h */
struct schema_want;

struct codec_settings {
	size_t record_bytes;  /* limits.record_bytes: largest value that is taken; 0: 8 MiB */
	bool strict_boundary; /* limits.boundary = strict */
	/*
	 * Schemas of records that other versions of Fermata, or other programs, wrote; borrowed. NULL: only
	 * today's are taken, and no framings of a registry. With it, ret_body of the functions below may be of
	 * such a schema: see codec_take_suspend_written.
	 */
	struct catalog *catalog;
};

enum record_type { RECORD_SUSPEND, RECORD_APPROVAL, RECORD_RESUME, RECORD_GATE };

FM_MUSTCHECK enum fate codec_new(struct codec **ret_codec, const struct codec_settings *settings,
                                 struct error *error);
void codec_free(struct codec *codec);
/* What it gave for a record of another schema is over: wiped, and its room given back where that is large. */
void codec_forget(struct codec *codec);

/*
 * What was missing when the last codec_take_... of a framed value, or codec_today, gave RETRY
 * ERR_UNKNOWN_SCHEMA: look for it, tell the catalog (catalog_learn or catalog_deny), and call again.
 * Otherwise its kind is WANT_NOTHING. Never NULL; good until the codec is asked again.
 */
const struct schema_want *codec_want(const struct codec *codec);
/*
 * The Kafka header __value_schema_id of the record that is taken next (the null view: it has none); borrowed
 * until then, and for that one call only: who calls again says it again. Used when the value itself has no
 * framing and the catalog has a registry.
 */
#define SCHEMA_ID_HEADER "__value_schema_id"
void codec_schema_header(struct codec *codec, struct view header);
/* From now on records of that type are written with Confluent's framing (00 and the id) in place of the
 * single-object header: what a registry gave for codec_schema_text. Below 0: single-object again. */
void codec_write_id(struct codec *codec, enum record_type type, int32_t id);

/* Fingerprint of the schema that we write: CRC-64-AVRO of its canonical form, and its SHA-256. */
uint64_t codec_fingerprint(enum record_type type);
void codec_schema_sha256(enum record_type type, uint8_t ret_sha256[32]);
/* The schema's JSON text as it stands in schemas/NAME.avsc. */
struct view codec_schema_text(enum record_type type);
/* "fermata.v1.SuspendEvent" and so on, which needs no codec; and back: false when it is none of the four. */
const char *codec_record_name(enum record_type type);
bool codec_record_type(const char *name, enum record_type *ret_type);

/* The structs' views live in the arena. ret_body borrows from value: the bytes after the framing. A value
 * with data == NULL (Kafka's null) is REJECT ERR_FRAMING. RETRY ERR_UNKNOWN_SCHEMA: see codec_want. */
FM_MUSTCHECK enum fate codec_take_suspend(struct codec *codec, struct view value, struct arena *arena,
                                          struct suspend_event *ret_event, struct view *ret_body,
                                          struct error *error);
/*
 * As codec_take_suspend, and *ret_sha256 is that of the schema that body is written in: today's
 * (codec_schema_sha256), or one of the catalog's. body is the bytes as they were sent, whichever it is: the
 * digest is of them, they are what is sealed, and the SHA-256 is sealed with them (struct seal_context), so
 * that whoever opens them knows by which schema to read them: codec_today. ret_event is of today's schema.
 */
FM_MUSTCHECK enum fate codec_take_suspend_written(struct codec *codec, struct view value, struct arena *arena,
                                                  struct suspend_event *ret_event, struct view *ret_body,
                                                  uint8_t ret_sha256[32], struct error *error);
/*
 * The body of a suspend, as it was unsealed, under today's schema: itself (*ret_body borrows from it) when it
 * was written so, else migrated: then *ret_body is the codec's until it is asked again or takes a framed
 * value (codec_take_suspend, _approval, _resume, _resume_head, _gate; not _edits), which wipes it. Everything
 * below wants bodies of today's schema. RETRY ERR_UNKNOWN_SCHEMA: see codec_want. REJECT: ERR_UNKNOWN_SCHEMA,
 * nobody has such a schema of SuspendEvent; or it does not resolve.
 */
FM_MUSTCHECK enum fate codec_today(struct codec *codec, const uint8_t sha256[32], struct view body,
                                   struct view *ret_body, struct error *error);
FM_MUSTCHECK enum fate codec_take_approval(struct codec *codec, struct view value, struct arena *arena,
                                           struct approval_event *ret_event, struct view *ret_body,
                                           struct error *error);
FM_MUSTCHECK enum fate codec_take_resume(struct codec *codec, struct view value, struct arena *arena,
                                         struct resume_event *ret_event, struct error *error);
FM_MUSTCHECK enum fate codec_take_gate(struct codec *codec, struct view value, struct arena *arena,
                                       struct gate_event *ret_event, struct error *error);
/* Only resume_id, verdict, decisions and edits, which stand first; the rest is not looked at. For the
 * relay's reading of its ledger. */
FM_MUSTCHECK enum fate codec_take_resume_head(struct codec *codec, struct view value, struct arena *arena,
                                              struct resume_event *ret_event, struct error *error);
/* The bytes of a suspend record without framing (as they were unsealed): guard, decode and check. */
FM_MUSTCHECK enum fate codec_read_suspend_body(struct codec *codec, struct view body, struct arena *arena,
                                               struct suspend_event *ret_event, struct error *error);
/* A suspend body that has passed the guard, and where in it lies what is looked at by itself. All of them borrow. */
struct guarded_body {
	struct view body;
	struct view state;  /* the field: null or AppState */
	struct view action; /* the field of its gate: null or Action */
};

/* Only guard: would codec_read_suspend_body's decode take it? (For the relay, which splices the bytes.) */
FM_MUSTCHECK enum fate codec_guard_suspend_body(struct view body, struct guarded_body *ret_guarded,
                                                struct error *error);
/* Only gate.action; its texts lie in the body. */
void codec_read_action(const struct guarded_body *guarded, struct action *ret_action);
/* Only state; the same. */
void codec_read_state(const struct guarded_body *guarded, struct app_state *ret_state);
/* Appends the suspend body with another state in the place of its own; the rest is copied untouched. */
FM_MUSTCHECK enum fate codec_replace_state(const struct guarded_body *guarded, const struct app_state *state,
                                           struct buffer *out, struct error *error);

/* Writing, with the single-object header (or as codec_write_id says). The buffer is appended to. The
 * values are checked like those that are read (a writer may not write what a reader refuses). */
FM_MUSTCHECK enum fate codec_put_suspend(struct codec *codec, const struct suspend_event *event,
                                         struct buffer *out, struct error *error);
FM_MUSTCHECK enum fate codec_put_approval(struct codec *codec, const struct approval_event *event,
                                          struct buffer *out, struct error *error);
FM_MUSTCHECK enum fate codec_put_gate(struct codec *codec, const struct gate_event *event, struct buffer *out,
                                      struct error *error);
/*
 * A resume is the head (resume_id, verdict, decisions, edits of event), the suspend record's fields, and
 * the tail (migrated_from, resumed_at, expires_at, signature). In Avro's binary encoding a record is the
 * concatenation of its fields, and the fields of SuspendEvent stand in ResumeEvent in the same order and
 * with the same types, so the guarded bytes of the suspend are copied in the middle untouched.
 * event->suspend is not looked at.
 */
FM_MUSTCHECK enum fate codec_put_resume(struct codec *codec, const struct resume_event *event,
                                        struct view suspend_body, struct buffer *out, struct error *error);

/* Edits alone (sealed beside a decision), without framing: the record Edits of ApprovalEvent. */
FM_MUSTCHECK enum fate codec_put_edits(struct codec *codec, const struct edits *edits, struct buffer *out,
                                       struct error *error);
FM_MUSTCHECK enum fate codec_take_edits(struct codec *codec, struct view body, struct arena *arena,
                                        struct edits *ret_edits, struct error *error);
/* Equal content, whatever the order of the map's entries? */
bool edits_equal(const struct edits *a, const struct edits *b);

#endif
