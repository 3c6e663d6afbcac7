/* person.h - records and rows as text for people; nothing in it can steer a terminal. */
#ifndef FERMATA_CLI_PERSON_H
#define FERMATA_CLI_PERSON_H

#include "core/policy.h"
#include "store/store_audit.h"

/* "issuer:subject", or the display name too where it says more. */
void put_person(struct buffer *out, const struct approver *by);
/* A value of the variables as JSON would have it: 16.0, "text", [..]. */
void put_config_value(struct buffer *out, const struct config_entry *entry);
/* "label       " in the colour of labels, padded. */
void put_label(struct buffer *out, const char *label);

/* A row in clear, label by label. */
void person_checkpoint(struct buffer *out, const struct checkpoint *row, int64_t now);
/* A decision in one line, its reasons in one more each. */
void person_decision(struct buffer *out, const struct decision *decision, int64_t now);
/* What an operator did, in the same way. */
void person_audit(struct buffer *out, const struct audit_entry *entry, int64_t now);
/* What was sealed: step, action, history line by line, variables, permissions. */
void person_suspend(struct buffer *out, const struct suspend_event *event);
/* The memory of a session alone: history line by line. */
void person_history(struct buffer *out, const struct suspend_event *event);

#endif
