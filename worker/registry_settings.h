/* registry_settings.h - what the configuration says about the schema registry, for schemas/, which knows no
 * configuration. */
#ifndef FERMATA_WORKER_REGISTRY_SETTINGS_H
#define FERMATA_WORKER_REGISTRY_SETTINGS_H

#include "config/config.h"
#include "schemas/codec.h"
#include "schemas/registry.h"

/* Everything borrows from config. ret_settings->url NULL: no registry is configured. */
void registry_settings_of(const struct config *config, struct registry_settings *ret_settings);

/* The topic of the configuration for records of that type; of resumes, the one without a route. */
const char *registry_topic_of(const struct config *config, enum record_type type);

/* The subject of records of that type on that topic, by registry.subject_name_strategy. FATAL ERR_USAGE: it is too long. */
#define REGISTRY_SUBJECT_MAX 4096
FM_MUSTCHECK enum fate registry_subject_of(const struct config *config, enum record_type type,
                                           const char *topic, char subject[REGISTRY_SUBJECT_MAX],
                                           struct error *error);

struct schema_want; /* schemas/catalog.h */

/* The subject of the record that a want is about, in the arena; NULL: it is about none of ours (or no memory). */
const char *registry_record_subject(const struct config *config, const struct schema_want *want,
                                    struct arena *arena);

#endif
