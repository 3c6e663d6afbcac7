/*
 * validate.h - are the values of a decoded record those that the contract allows ("Fine points")?
 *
 * REJECT ERR_INVALID, or ERR_NOT_AT_BOUNDARY where the record is sound but was not made at a boundary of
 * the graph. The message begins with the field's path; it may give a number or a length, never content.
 *
 * What the contract leaves open was settled so: an empty gate_id, tenant, agent, issuer or subject is taken
 * (the contract gives a lower bound to session_id alone); display and each field of source may have
 * 4 KiB, for they are kept in clear and shown; U+0000 is legal in step, in names of tools and in summary
 * too, which are sealed; an AVRO state has a fingerprint of 8 bytes and a JSON state has none; a key that
 * a map holds twice is refused, since readers differ in which of the two they keep.
 */
#ifndef FERMATA_SCHEMAS_VALIDATE_H
#define FERMATA_SCHEMAS_VALIDATE_H

#include "core/records.h"

#define ID_BYTES_MAX       255 /* session_id, gate_id, tenant, agent, agent_version, requested_by, ... */
#define TITLE_BYTES_MAX    1024
#define REASON_BYTES_MAX   4096
#define TEXT_BYTES_MAX     4096  /* display, source.* */
#define AUDIENCE_BYTES_MAX 16384 /* approvers and labels together */

/* Parses the text of an id. path is its field's, for the message. */
FM_MUSTCHECK enum fate validate_uuid(struct view text, const char *path, struct uuid *ret_uuid,
                                     struct error *error);

/* As validate_uuid, for a writer: null means that the text is to be made from the bytes. */
FM_MUSTCHECK enum fate validate_id_to_put(struct view text, const char *path, struct error *error);

/* arena gives scratch room for searching maps and calls. strict: limits.boundary = strict. */
FM_MUSTCHECK enum fate validate_suspend(const struct suspend_event *event, bool strict, struct arena *arena,
                                        struct error *error);
FM_MUSTCHECK enum fate validate_approval(const struct approval_event *event, struct arena *arena,
                                         struct error *error);
/* resume_id's siblings: decisions, edits, tail. Not the suspend's fields. */
FM_MUSTCHECK enum fate validate_resume(const struct resume_event *event, struct arena *arena,
                                       struct error *error);
FM_MUSTCHECK enum fate validate_gate_event(const struct gate_event *event, struct error *error);
FM_MUSTCHECK enum fate validate_edits(const struct edits *edits, struct arena *arena, struct error *error);

/* validate_boundary.c: limits.boundary = strict. A tool call without its answer is legal in the last AGENT
 * entry only. An answer is a later entry of role TOOL with the call's id; it answers one call, of several
 * with that id the one before it. */
FM_MUSTCHECK enum fate validate_boundary(const struct history_entry *history, size_t len, struct arena *arena,
                                         struct error *error);

#endif
