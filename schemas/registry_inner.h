/* registry_inner.h - the registry's client as its parts see it. Private to this room. */
#ifndef FERMATA_SCHEMAS_REGISTRY_INNER_H
#define FERMATA_SCHEMAS_REGISTRY_INNER_H

#include "schemas/registry.h"
#include "schemas/registry_answer.h"
#include "schemas/schema.h"

#include <curl/curl.h>
#include <stdatomic.h>

#define REGISTRY_SHOWN 80 /* bytes of an address or a subject in a message */

/* Of bodies: a character of a schema's text takes up to six in JSON. */
#define ANSWER_SCHEMA_MAX (6 * SCHEMA_TEXT_MAX + (size_t)64 * 1024)
#define ANSWER_LIST_MAX   ((size_t)8 * 1024 * 1024)
#define ANSWER_SMALL_MAX  ((size_t)64 * 1024)

struct registry {
	CURL *curl;
	struct curl_slist *headers;
	char *name;                 /* of libcurl */
	char shown[REGISTRY_SHOWN]; /* the name, cut to fit a message */
	int64_t timeout_ms;         /* of one question */
	int64_t deadline_ms;        /* of the call that is under way; clock_mono_ms */
	struct buffer path;         /* of the question, behind the name */
	struct buffer question;     /* its body */
	struct buffer answer;
	struct buffer head;
	char curl_says[CURL_ERROR_SIZE];
	atomic_bool interrupted;
};

#define REGISTRY_MANY 10 /* how many times timeout_ms a call has that asks a question a version */

/* Begins a call, which has so many times timeout_ms. */
void registry_begin(struct registry *registry, int times);

/* registry_http.c */

/* Every option that stays the same for all questions; false when there is no memory. settings are checked. */
bool registry_set_up(struct registry *registry, const struct registry_settings *settings);

struct reply {
	long status;
	struct view body; /* borrows from registry->answer, until the next question */
};

/* Sends registry->path, with registry->question unless that is empty (then it is a GET), and takes the
 * answer, whatever its status. RETRY ERR_SERVICE: there is none; REJECT ERR_TOO_LARGE: it says yes in more
 * than max bytes (of a longer no the body is left out). */
FM_MUSTCHECK enum fate registry_exchange(struct registry *registry, size_t max, struct reply *ret_reply,
                                         struct error *error);
/* What a reply's status means: OK for 2xx. May ask whether there is a registry at all. */
FM_MUSTCHECK enum fate registry_judge(struct registry *registry, const struct reply *reply,
                                      struct error *error);
/* Both. *ret_body is what a 2xx says. */
FM_MUSTCHECK enum fate registry_question(struct registry *registry, size_t max, struct view *ret_body,
                                         struct error *error);

#endif
