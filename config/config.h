/*
 * config.h - the configuration of one process: read once, checked whole, then constant.
 *
 * Precedence: command line (-X key=value), environment (FERMATA_*), file, default. The file is the one
 * named by the caller (--config), else by FERMATA_CONFIG, else ./fermata.conf, else
 * /etc/fermata/fermata.conf; no file at all is fine, a named one that is missing is an error.
 *
 * The file: `key = value` lines; `[section]` puts "section." before the keys that follow and `[]` ends
 * that; `#` begins a comment at the start of a line or after a blank, and is an ordinary character after
 * anything else (pass#word). A value that needs " #", or blanks at its ends, stands in double quotes,
 * where \" and \\ are a quote and a backslash. The command line and the environment are taken as they are;
 * an empty environment variable counts as not set.
 *
 * Everything returned lives as long as the config and is wiped by config_free. Not changed after
 * config_load, so any thread may read it.
 */
#ifndef FERMATA_CONFIG_CONFIG_H
#define FERMATA_CONFIG_CONFIG_H

#include "core/kafka.h"

struct config;

/* PARAM_POSTGRES_DSN is "postgres.dsn", and so on: see params.def. */
enum param {
#define PARAM(id, key, type, min, max, unit, fallback, secrecy, line, paragraph) PARAM_##id,
#include "config/params.def"
#undef PARAM
	PARAM_COUNT,
};

struct config_request {
	const char *file;             /* of --config; NULL: not given */
	const char *const *overrides; /* of -X: "key=value" each; the last one of a key counts */
	size_t overrides_len;
};

/* Reads and checks everything. FATAL with ERR_USAGE (exit 2): what is wrong, where it was said (file:line,
 * variable or command line) and what is allowed; no value of a secret is in the message. Unknown keys of
 * file and command line are errors that name the nearest key; unknown FERMATA_ variables are warnings.
 * On failure *ret_config is NULL. Reads the process' environment: call it before threads are started. */
FM_MUSTCHECK enum fate config_load(struct config **ret_config, const struct config_request *request,
                                   struct error *error);
/* Wipes and frees. NULL is fine. */
void config_free(struct config *config);

/* The file that was read, or NULL when there was none. */
const char *config_file(const struct config *config);
/* What should be logged as warnings, one line each. */
const char *const *config_warnings(const struct config *config, size_t *ret_len);

/* The key's full name ("postgres.dsn"). */
const char *config_key(enum param param);
/* Where the value came from: "fermata.conf:12", "environment FERMATA_LOG_LEVEL", "command line", "default". */
const char *config_origin(const struct config *config, enum param param);

/* A TEXT key; NULL when it is empty. */
const char *config_text(const struct config *config, enum param param);
/* A NUMBER key, in the unit of params.def: a count, bytes or milliseconds. Within its bounds. */
int64_t config_number(const struct config *config, enum param param);
/* A FLAG key. */
bool config_flag(const struct config *config, enum param param);
/* A CHOICE key: the index among its values: for log.level an enum log_level, for log.format an
 * enum log_format, for limits.boundary an enum config_boundary. */
int config_choice(const struct config *config, enum param param);
/* A LIST key: its words, NULL after the last one (as execv wants them). *ret_len may be 0. */
const char *const *config_list(const struct config *config, enum param param, size_t *ret_len);

enum config_boundary { CONFIG_BOUNDARY_STEP, CONFIG_BOUNDARY_STRICT };

enum kafka_side { KAFKA_CONSUMER, KAFKA_PRODUCER, KAFKA_ADMIN };
#define KAFKA_SIDE_COUNT 3

/* What goes to librdkafka: bootstrap.servers, kafka.PROP, then kafka.consumer.PROP or kafka.producer.PROP
 * (none of them for KAFKA_ADMIN), later ones winning. What the protocol owns is not among them. */
const struct property *config_kafka(const struct config *config, enum kafka_side side, size_t *ret_len);

enum on_reject {
	ON_REJECT_PUBLISH, /* REJECTED, EXPIRED and CANCELLED are published as resumes too */
	ON_REJECT_DROP,    /* they are settled without one */
};

/* Where the resumes of some agents go: routes.NAME.{tenant,agent,topic,resume_ttl,on_reject}. */
struct route {
	const char *name;
	const char *tenant;    /* pattern with * and ?, or NULL: any */
	const char *agent;     /* the same */
	const char *topic;     /* never NULL; topics.resumes when not given */
	int64_t resume_ttl_ms; /* ResumeEvent.expires_at = resumed_at + this; 0: null */
	enum on_reject on_reject;
};

/* The routes in the order in which they are tried, without the default. */
const struct route *config_routes(const struct config *config, size_t *ret_len);
/* The first that matches, else the default one (topics.resumes, no ttl, publish). Never NULL. */
const struct route *config_route_for(const struct config *config, struct view tenant, struct view agent);
/* Every topic that resumes may go to, each once, topics.resumes first. */
const char *const *config_resumes_topics(const struct config *config, size_t *ret_len);
/* One text that is the same exactly when resumes go to the same topics (names, ttl and on_reject are not
 * in it): its digest is kept in the database, to notice that routes changed. */
const char *config_routes_text(const struct config *config);

/* One effective setting, as `fermata config check` prints it. value: secrets masked. All borrow. */
struct config_setting {
	const char *key;
	const char *value;
	const char *origin;
};

/* Every known key, then the other properties of Kafka by name, then the routes in order. */
void config_each(const struct config *config,
                 void (*each)(void *context, const struct config_setting *setting), void *context);

#endif
