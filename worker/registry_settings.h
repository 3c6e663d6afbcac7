/* registry_settings.h - what the configuration says about the schema registry, for schemas/, which knows no
 * configuration. */
#ifndef FERMATA_WORKER_REGISTRY_SETTINGS_H
#define FERMATA_WORKER_REGISTRY_SETTINGS_H

#include "config/config.h"
#include "schemas/registry.h"

/* Everything borrows from config. ret_settings->url NULL: no registry is configured. */
void registry_settings_of(const struct config *config, struct registry_settings *ret_settings);

/* registry.subject_name_strategy */
enum subject_strategy registry_strategy_of(const struct config *config);

struct schema_want; /* schemas/catalog.h */

/* The subject of the record that a want is about, in the arena; NULL: it is about none of ours (or no memory). */
const char *registry_record_subject(const struct config *config, const struct schema_want *want,
                                    struct arena *arena);

#endif
