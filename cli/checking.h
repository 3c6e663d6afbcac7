/* checking.h - one `fermata schema check`: a schema, and what is held against it. */
#ifndef FERMATA_CLI_CHECKING_H
#define FERMATA_CLI_CHECKING_H

#include "cli/cli.h"
#include "cli/schema_file.h"
#include "schemas/compat.h"

struct checking {
	const struct cli *cli;
	struct schema_file file; /* the new one */
	size_t wrong;            /* answers that are no */
};

/* What is found out. */
enum check_result { CHECK_OK, CHECK_WARNING, CHECK_WRONG };

/* A line for people: "ok       TEXT". The text is cleaned. Nothing with --json. */
void check_say(const struct checking *checking, enum check_result result, const char *fmt, ...)
	FM_PRINTF(3, 4);

/* An older version of the schema. */
struct check_version {
	const char *name; /* how it is called: a path, "version 3" */
	const struct schema *schema;
};

/*
 * Judges the file beside older versions, oldest first, as the mode has it; says each answer, and counts what is
 * wrong. check: what asks, for the JSON: "against", "registry".
 */
FM_MUSTCHECK enum fate check_versions(struct checking *checking, const char *check, enum compat_mode mode,
                                      const struct check_version *versions, size_t len, struct error *error);

/* --against OLD.avsc ... */
FM_MUSTCHECK enum fate check_against(struct checking *checking, enum compat_mode mode, struct error *error);

/* --against-registry. wanted: --mode; NULL: by the registry's own rule. FATAL ERR_USAGE: no registry is configured;
 * RETRY: it is away. */
FM_MUSTCHECK enum fate check_registry(struct checking *checking, const enum compat_mode *wanted,
                                      struct error *error);

/* --pending: would what waits load under the file? */
FM_MUSTCHECK enum fate check_pending(struct checking *checking, struct error *error);

#endif
