#include "producer/handle.h"

#include "core/deadline.h"
#include "core/kafka_glue.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CLOSE_MS 2000

static bool set_property(void *context, const char *name, const char *value, char *why, size_t why_cap)
{
	return rd_kafka_conf_set(context, name, value, why, why_cap) == RD_KAFKA_CONF_OK;
}

bool handle_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	return rd_kafka_conf_set(conf, name, value, NULL, 0) == RD_KAFKA_CONF_OK;
}

bool handle_set_number(rd_kafka_conf_t *conf, const char *name, size_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", value);
	return handle_set(conf, name, text);
}

static void on_log(const rd_kafka_t *rk, int severity, const char *facility, const char *text)
{
	(void)rk;
	kafka_log("producer", severity, facility, text);
}

enum fate handle_conf(rd_kafka_conf_t **ret_conf, const struct property *defaults,
                      const struct property *properties, size_t properties_len, struct error *error)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	enum fate fate;

	for (; defaults->name; defaults++)
		handle_set(conf, defaults->name, defaults->value);
	fate = kafka_properties_apply(properties, properties_len, set_property, conf, error);
	if (fate != FATE_OK) {
		rd_kafka_conf_destroy(conf);
		return fate;
	}
	/* A topic that somebody else's default makes has one partition and the wrong settings. */
	handle_set(conf, "allow.auto.create.topics", "false");
	handle_set(conf, "log.queue", "false");
	rd_kafka_conf_set_log_cb(conf, on_log);
	*ret_conf = conf;
	return FATE_OK;
}

enum fate handle_open(rd_kafka_t **ret_rk, rd_kafka_conf_t *conf, struct error *error)
{
	char why[200];
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));

	if (!rk) {
		rd_kafka_conf_destroy(conf);
		return error_set(error, FATE_FATAL, ERR_USAGE, "cannot set up a Kafka producer: %s", why);
	}
	*ret_rk = rk;
	return FATE_OK;
}

struct closing {
	rd_kafka_t *rk;
	void *opaque;
	bool in_transaction;
};

/*
 * The partitions of a transaction are announced to the broker by a timer, due 1 ms after the first record, that
 * the main thread looks at when something else wakes it. Where that is the end of the handle, the request is
 * refused while librdkafka (2.0.2 and newer) has not counted it yet, and an assertion ends the process. So the
 * thread is woken before, by beginning what has begun, which changes nothing; twice, for it answers before it
 * looks at its timers. After a fatal error nothing is announced, and beginning may hang.
 */
static void let_announce(rd_kafka_t *rk)
{
	char ignored[64];

	for (int i = 0; i < 2 && !rd_kafka_fatal_error(rk, ignored, sizeof(ignored)); i++) {
		const struct timespec due = { .tv_nsec = 2000000 };
		rd_kafka_error_t *begun;

		nanosleep(&due, NULL);
		begun = rd_kafka_begin_transaction(rk);
		if (begun)
			rd_kafka_error_destroy(begun);
	}
}

/* No abort and no commit: what a transaction left open is for the next init_transactions of its id (R1). */
static void close_work(void *context)
{
	struct closing *closing = context;

	if (closing->in_transaction)
		let_announce(closing->rk);
	(void)rd_kafka_purge(closing->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	(void)rd_kafka_poll(closing->rk, 0); /* the reports of what was purged, to nobody */
	rd_kafka_destroy(closing->rk);
	free(closing->opaque);
	free(closing);
}

void handle_close(rd_kafka_t *rk, void *opaque, bool in_transaction)
{
	struct closing *closing;
	bool started;

	if (!rk) {
		free(opaque);
		return;
	}
	closing = malloc(sizeof(*closing));
	if (!closing) /* left open: the process is about to have other sorrows */
		return;
	*closing = (struct closing){ rk, opaque, in_transaction };
	if (!deadline_run(close_work, closing, CLOSE_MS, &started)) {
		if (!started)
			free(closing);
		log_warn("producer", "could not close a Kafka producer within %d ms: it is left behind", CLOSE_MS);
	}
}
