/* kafka_env.h - librdkafka's properties from the environment, for agents and executors, which have no
 * configuration file. The names are those of the configuration (contract.md). */
#ifndef FERMATA_CORE_KAFKA_ENV_H
#define FERMATA_CORE_KAFKA_ENV_H

#include "core/kafka.h"

/*
 * FERMATA_KAFKA_PROP and, after those, FERMATA_KAFKA_<HALF>_PROP (half: "consumer" or "producer"), lower case,
 * underscores as dots; PROP_FILE names a file that holds the value. What Kubernetes adds about a service
 * called fermata-kafka is passed over. The list lives in the arena. REJECT ERR_USAGE for a file that cannot
 * be read.
 */
FM_MUSTCHECK enum fate kafka_environment(const char *half, struct arena *arena,
                                         struct property **ret_properties, size_t *ret_len,
                                         struct error *error);

#endif
