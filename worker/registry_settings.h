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

#endif
