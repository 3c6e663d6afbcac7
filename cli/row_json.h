/* row_json.h - rows of the database as JSON: field names as in the records. */
#ifndef FERMATA_CLI_ROW_JSON_H
#define FERMATA_CLI_ROW_JSON_H

#include "core/policy.h"
#include "schemas/json.h"
#include "store/store_audit.h"

/* The fields of a checkpoint into a line that is begun; those of the suspend event are null until it came. */
void row_json_checkpoint(struct json_line *line, const struct checkpoint *row);
/* A decision with the field names of an ApprovalEvent ("reason" is the person's own), and what became of it:
 * "outcome", "outcome_reason". Edits are sealed: "has_edits" says whether there are any. Appends one object
 * without a newline. */
FM_MUSTCHECK enum fate row_json_decision(const struct decision *decision, struct buffer *out,
                                         struct error *error);
/* The same for all of them, as an array. */
FM_MUSTCHECK enum fate row_json_decisions(struct decision *const *decisions, size_t len, struct buffer *out,
                                          struct error *error);
/* What an operator did: "what", "who", "reason" (the operator's own), "details", "at". One object without a newline. */
FM_MUSTCHECK enum fate row_json_audit(const struct audit_entry *entry, struct buffer *out,
                                      struct error *error);
/* The same for all of them, as an array. */
FM_MUSTCHECK enum fate row_json_audits(const struct audit_entry *entries, size_t len, struct buffer *out,
                                       struct error *error);
/* Ends a line, adds a newline and writes it to stdout. Frees line. */
FM_MUSTCHECK enum fate json_line_write(struct json_line *line, struct error *error);

#endif
