/*
 * registry.h - a schema registry with the Confluent API, over HTTP. The only user of libcurl.
 *
 * Blocking, for one thread at a time (registry_interrupt is for any). Every question ends within
 * timeout_ms, connecting included, and every call within that, but for those that ask a question a version
 * (registry_versions, registry_lookup when the text is not found as it stands): ten times that. The bodies
 * of answers are bounded. Connections are kept for the next question. No proxy of the environment, no
 * redirect, no netrc is followed.
 *
 * Registries differ (Confluent's own, Apicurio, Karapace, Redpanda): error bodies come in other content
 * types than good ones, members come or do not, lists come as null, a text may come back re-serialised.
 * What is compared is canonical forms, never text.
 *
 * Fates, of everything that asks:
 * - RETRY ERR_SERVICE: it cannot be reached, or says that it cannot now (connection, TLS, timeout, 408,
 *   429, 5xx); the credentials do not pass (401, 403: an operator can mend that, and no record is at
 *   fault); or what answers is no registry (a redirect, a page, a 404 that is not about schemas from an
 *   address that has none: a wrong registry.url must not make dead letters);
 * - REJECT ERR_UNKNOWN_SCHEMA: it answered and there is no such thing (404), or what there is cannot be
 *   used (not Avro, with references, no schema by schema_parse);
 * - REJECT ERR_INVALID: it refuses (400, 409, 422), or there can be no such subject ("", ".", "..", not
 *   UTF-8, more than 4 KiB);
 * - REJECT ERR_TOO_LARGE: an answer above the bound; it refuses for size (413);
 * - RETRY ERR_MEMORY: no room, in the arena or at all.
 *
 * Messages name the registry's address without its credentials, and may quote what it says.
 */
#ifndef FERMATA_SCHEMAS_REGISTRY_H
#define FERMATA_SCHEMAS_REGISTRY_H

#include "core/memory.h"

struct registry;

/* Texts may be NULL or "": not given. All are copied. */
struct registry_settings {
	const char *url;       /* http:// or https://, with the path of the API: https://HOST/apis/ccompat/v7 */
	const char *user;      /* basic auth, with password; the URL may hold both instead */
	const char *password;  /* secret */
	const char *token;     /* bearer; secret. Not together with user */
	const char *ca_file;   /* PEM: only what it holds is trusted; else the system's */
	const char *cert_file; /* of the client, PEM */
	const char *key_file;  /* of the client, PEM without a password; else the key stands in cert_file */
	int64_t timeout_ms;    /* of one question, connecting included; 0: 5,000 */
};

/* FATAL ERR_USAGE: the address or a combination of settings is wrong, or a file cannot be read. Asks
 * nothing. */
FM_MUSTCHECK enum fate registry_open(struct registry **ret_registry, const struct registry_settings *settings,
                                     struct error *error);
/* NULL is fine. */
void registry_close(struct registry *registry);
/* From any thread: the call that is under way, and every one after it, is RETRY ERR_SERVICE within a
 * second. */
void registry_interrupt(struct registry *registry);
/* The address without credentials, default port and slash at its end, the host in lower case: what ids of
 * it are kept under. */
const char *registry_name(const struct registry *registry);

/* The text of the schema with that id, or GUID; in the arena. */
FM_MUSTCHECK enum fate registry_by_id(struct registry *registry, int32_t id, struct arena *arena,
                                      struct view *ret_text, struct error *error);
FM_MUSTCHECK enum fate registry_by_guid(struct registry *registry, const uint8_t guid[16],
                                        struct arena *arena, struct view *ret_text, struct error *error);

/* Registers text under the subject, or finds it there (by its text or its canonical form, as the registry
 * does). REJECT ERR_INVALID: incompatible, or not allowed. */
FM_MUSTCHECK enum fate registry_register(struct registry *registry, const char *subject, struct view text,
                                         int32_t *ret_id, struct error *error);
/* Finds it only: the text as the registry compares it, else a version of the same canonical form, newer ones
 * first. REJECT ERR_UNKNOWN_SCHEMA: it is not there. */
FM_MUSTCHECK enum fate registry_lookup(struct registry *registry, const char *subject, struct view text,
                                       int32_t *ret_id, struct error *error);

struct registry_version {
	int32_t version; /* 0: the registry did not say */
	int32_t id;      /* 0: the registry did not say */
	struct view text;
};

#define REGISTRY_VERSIONS_MAX   1000
#define REGISTRY_VERSIONS_BYTES ((size_t)8 * 1024 * 1024) /* of text */
#define REGISTRY_SUBJECTS_MAX   100000

/* Every version of a subject, oldest first; those that cannot be used are left out (*ret_unusable counts
 * them; may be NULL), and so are the oldest when there are more than REGISTRY_VERSIONS_BYTES of text. An
 * arena of 16 MiB has room for it. REJECT ERR_UNKNOWN_SCHEMA: no such subject; ERR_TOO_LARGE: more than
 * REGISTRY_VERSIONS_MAX. */
FM_MUSTCHECK enum fate registry_versions(struct registry *registry, const char *subject, struct arena *arena,
                                         struct registry_version **ret_versions, size_t *ret_len,
                                         size_t *ret_unusable, struct error *error);
/* The last version. */
FM_MUSTCHECK enum fate registry_latest(struct registry *registry, const char *subject, struct arena *arena,
                                       struct registry_version *ret_version, struct error *error);
/* REJECT ERR_TOO_LARGE: more than REGISTRY_SUBJECTS_MAX. */
FM_MUSTCHECK enum fate registry_subjects(struct registry *registry, struct arena *arena,
                                         struct view **ret_subjects, size_t *ret_len, struct error *error);
/* Would the registry take text as the next version of the subject, by its own rule? Yes where there is no
 * such subject yet. *ret_why: what it says when not, one line, in the arena (may be the null view). */
FM_MUSTCHECK enum fate registry_compatible(struct registry *registry, const char *subject, struct view text,
                                           struct arena *arena, bool *ret_compatible, struct view *ret_why,
                                           struct error *error);
/* The rule of the subject, else the global one; of subject NULL the global one. "BACKWARD",
 * "FULL_TRANSITIVE", "NONE"...; in the arena. Apicurio says NONE of a subject that has no rule of its own,
 * and holds it to the global one. */
FM_MUSTCHECK enum fate registry_rule(struct registry *registry, const char *subject, struct arena *arena,
                                     struct view *ret_rule, struct error *error);

/*
 * Names of subjects, as Confluent's strategies make them: TOPIC-value; the record's full name; TOPIC-the full
 * name. Appended to out.
 */
enum subject_strategy { SUBJECT_TOPIC, SUBJECT_RECORD, SUBJECT_TOPIC_RECORD };
void subject_name(enum subject_strategy strategy, const char *topic, const char *record, struct buffer *out);

#endif
