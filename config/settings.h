/* settings.h - the inside of a config: what was given for each key, by whom, and what it came to. */
#ifndef FERMATA_CONFIG_SETTINGS_H
#define FERMATA_CONFIG_SETTINGS_H

#include "config/conf_file.h"
#include "config/value.h"

/* In the order of precedence. */
enum layer { LAYER_DEFAULT, LAYER_FILE, LAYER_ENVIRONMENT, LAYER_COMMAND };

/* What somebody gave for a key, or for KEY_file. text NULL: nobody did. */
struct given {
	const char *text;
	const char *origin;
	enum layer layer;
};

/* A key and what was given for it. At most one of direct and by_file is left once all layers are in. */
struct slot {
	const char *key; /* full */
	struct given direct;
	struct given by_file;
	const char *text;   /* effective, "" when empty */
	const char *origin; /* never NULL once resolved */
};

enum kafka_scope { SCOPE_ALL, SCOPE_CONSUMER, SCOPE_PRODUCER };

struct kafka_slot {
	struct slot slot;
	enum kafka_scope scope;
	const char *name; /* of the property: the end of slot.key */
	struct kafka_slot *next;
};

struct route_slot {
	const char *name;
	struct slot fields[ROUTE_FIELD_COUNT];
	struct route_slot *next;
};

#define KAFKA_SLOTS_MAX 1000
#define ROUTES_MAX      1000

struct config {
	struct arena *arena; /* holds the config too */
	const char *file;
	struct slot slots[PARAM_COUNT];
	struct value values[PARAM_COUNT];

	struct kafka_slot *kafka; /* sorted by key */
	size_t kafka_len;
	struct property *properties[KAFKA_SIDE_COUNT];
	size_t properties_len[KAFKA_SIDE_COUNT];

	struct route_slot *route_slots; /* in the order of their first line */
	size_t routes_len;
	struct route *routes;
	struct route fallback;
	const char *routes_text;
	const char **resumes_topics;
	size_t resumes_topics_len;

	const char **warnings;
	size_t warnings_len;
};

/* One setting from outside, whatever its key. */
struct offered {
	const char *key;
	const char *value;
	const char *origin;
	enum layer layer;
};

/* Finds the slot of the key (making one for kafka.PROP and routes.NAME.FIELD) and puts the value there.
 * FATAL with ERR_USAGE for a key that nobody knows, naming the nearest, and for KEY beside KEY_file. */
FM_MUSTCHECK enum fate settings_offer(struct config *config, const struct offered *offered,
                                      struct error *error);

/* Puts a value into a slot; a layer above takes the place of one below. As settings_offer. */
FM_MUSTCHECK enum fate slot_give(struct config *config, struct slot *slot, bool by_file,
                                 const struct offered *offered, struct error *error);
/* The slot's effective text: what was given, what its KEY_file holds, or the default. */
FM_MUSTCHECK enum fate slot_resolve(struct config *config, struct slot *slot, const char *fallback,
                                    struct error *error);
/* slot_resolve, and checked as info says. */
FM_MUSTCHECK enum fate slot_parse(struct config *config, struct slot *slot, const struct param_info *info,
                                  struct value *ret_value, struct error *error);

/* One more line for config_warnings. Returns false when there is no memory. */
FM_MUSTCHECK bool settings_warn(struct config *config, const char *fmt, ...) FM_PRINTF(2, 3);

/* environment.c: offers every FERMATA_ variable but FERMATA_CONFIG; those that mean nothing are warnings. */
FM_MUSTCHECK enum fate environment_offer(struct config *config, struct error *error);

/* kafka_slots.c */
/* key begins with "kafka.". by_file slots end in "_file". */
FM_MUSTCHECK enum fate kafka_offer(struct config *config, const struct offered *offered, struct error *error);
/* Resolves them and fills properties; bootstrap.servers must have been parsed. */
FM_MUSTCHECK enum fate kafka_resolve(struct config *config, struct error *error);

/* routes.c */
/* key begins with "routes.". */
FM_MUSTCHECK enum fate routes_offer(struct config *config, const struct offered *offered,
                                    struct error *error);
/* Parses them and fills routes, fallback, routes_text and resumes_topics; topics must have been parsed. */
FM_MUSTCHECK enum fate routes_resolve(struct config *config, struct error *error);
/* The name of an existing route that reads the same with '.', '-' and '_' folded and in lower case, or NULL. */
const char *routes_find_folded(const struct config *config, const char *folded);

#endif
