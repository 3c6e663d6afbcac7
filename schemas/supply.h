/*
 * supply.h - a catalog of schemas and, where one is configured, the registry that is asked at once for what is
 * missing: for programs that may wait for the answer (commands, agents, executors). For one thread.
 */
#ifndef FERMATA_SCHEMAS_SUPPLY_H
#define FERMATA_SCHEMAS_SUPPLY_H

#include "schemas/ask.h"
#include "schemas/codec.h"

struct supply;

/* Somebody else who may have a schema (PostgreSQL, for a command): tells the catalog when it has. *ret_found says so.
 * Asked before the registry. */
typedef enum fate supply_shelf(void *context, struct catalog *catalog, const struct schema_want *want,
                               bool *ret_found, struct error *error);

struct supply_settings {
	const char *folder;                       /* schemas.path; NULL or "": none */
	const struct registry_settings *registry; /* NULL, or an url that is NULL or "": none. Copied */
	const char *state_subject;                /* see registry_ask; NULL: "{schema}". Borrowed */
	supply_shelf *shelf;                      /* or NULL */
	void *context;
};

/* The registry that the environment names, as the configuration's keys would be: FERMATA_REGISTRY_URL, _USER, _PASSWORD,
 * _TOKEN, _CA_FILE, _CERT_FILE, _KEY_FILE. Borrows from it. */
struct registry_settings registry_environment(void);

/* FATAL ERR_USAGE: the folder or the settings of the registry. Asks nobody yet. */
FM_MUSTCHECK enum fate supply_open(struct supply **ret_supply, const struct supply_settings *settings,
                                   struct error *error);
/* NULL is fine. */
void supply_close(struct supply *supply);

/* For codec_settings; the supply's own. */
struct catalog *supply_catalog(const struct supply *supply);
/* NULL: none is configured. the supply's own. */
struct registry *supply_registry(const struct supply *supply);

/*
 * After a fate of RETRY with ERR_UNKNOWN_SCHEMA: looks for what is wanted. True: try again (tries counts the rounds and
 * begins at 0). False: *fate is the answer (RETRY ERR_SERVICE: the registry is away), and any other fate is left as
 * it is.
 */
FM_MUSTCHECK bool supply_more(struct supply *supply, const struct schema_want *want, unsigned *tries,
                              enum fate *fate, struct error *error);

/*
 * With a registry the codec writes records of that type with the id that today's schema has under the subject (it is
 * registered, or with look_only only looked up); without one nothing happens. RETRY: the registry is away. FATAL
 * ERR_USAGE: it refuses.
 */
FM_MUSTCHECK enum fate supply_write_id(struct supply *supply, struct codec *codec, enum record_type type,
                                       const char *subject, bool look_only, struct error *error);

#endif
