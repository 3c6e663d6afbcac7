/*
 * compat.h - can a reader with one schema read everything that a writer with another may write?
 *
 * A static question, as Avro's SchemaCompatibility asks it, answered by the same plan that later moves the
 * bytes (migrate.h), so that what is called compatible here is what loads there. Every value of the writer's
 * has to pass: where migrate_plan_new is content with one that does, this is not. Counted as incompatible are
 *
 * - types, names, sizes of a fixed, or precision and scale of decimals that do not match;
 * - a field of the reader's without default that the writer does not have, fields that clash through aliases,
 *   a default above the limits of migrate.h;
 * - a branch of a union of the writer's, null too, that has no place in the reader;
 * - a symbol of an enum of the writer's that the reader lacks, when its enum has no default.
 *
 * Reasons nearest to the root come first. Two types with parts that meet in several places are looked into once, so
 * that what is wrong inside of them is told by the first path there. A record whose fields clash is not looked into.
 *
 * What hangs on the value is a warning and makes nothing incompatible: bytes that become a string must be
 * UTF-8. What is lost in silence (a long that becomes a double), and the limits on size, number and depth of
 * values (guard.h, migrate.h) are not told at all. Where this differs from Apache Avro for Java, and why, is in
 * docs/decisions/0016-compatibility.md.
 */
#ifndef FERMATA_SCHEMAS_COMPAT_H
#define FERMATA_SCHEMAS_COMPAT_H

#include "schemas/schema.h"

#define COMPAT_REASONS_MAX 20 /* of each kind are told; all are counted */
#define COMPAT_PATH_SIZE   256
#define COMPAT_WHY_SIZE    256

struct compat_reason {
	char path[COMPAT_PATH_SIZE]; /* in the reader's names, from its root: "State.items[].name"; cut to fit */
	char why[COMPAT_WHY_SIZE];   /* a short text that says which side has what */
};

struct compat_report {
	struct compat_reason reasons[COMPAT_REASONS_MAX];
	size_t reasons_count; /* 0: every value passes. May be above COMPAT_REASONS_MAX */
	bool never;           /* with reasons: no value at all passes */
	struct compat_reason warnings[COMPAT_REASONS_MAX];
	size_t warnings_count; /* may be above COMPAT_REASONS_MAX */
};

/* OK: *ret_report is the answer, whichever it is. REJECT ERR_INVALID: the two meet in more places than are looked
 * at. RETRY: no memory. */
FM_MUSTCHECK enum fate compat_check(const struct schema *writer, const struct schema *reader,
                                    struct compat_report *ret_report, struct error *error);

/* The modes of Confluent's registry. BACKWARD: the new schema reads what the last one wrote; FORWARD: the last one
 * reads what the new one writes; FULL: both; TRANSITIVE: all versions and not only the last. */
enum compat_mode {
	COMPAT_NONE,
	COMPAT_BACKWARD,
	COMPAT_BACKWARD_TRANSITIVE,
	COMPAT_FORWARD,
	COMPAT_FORWARD_TRANSITIVE,
	COMPAT_FULL,
	COMPAT_FULL_TRANSITIVE,
};

const char *compat_mode_name(enum compat_mode mode);
/* Upper or lower case. False: there is no such mode. */
bool compat_mode_parse(struct view text, enum compat_mode *ret_mode);
/* Does the mode ask whether the new schema reads an old one's values, and the other way round? last: the old one is
 * the last version. */
bool compat_mode_backward(enum compat_mode mode, bool last);
bool compat_mode_forward(enum compat_mode mode, bool last);

#endif
