/* health.h - GET /metrics, /live and /ready of a worker, and the gauges that are looked up now and then. */
#ifndef FERMATA_WORKER_HEALTH_H
#define FERMATA_WORKER_HEALTH_H

#include "worker/worker.h"

struct http;

struct health {
	struct http *http; /* NULL when worker.metrics.listen is not set */
	struct store *store;
	struct arena *arena;
	int64_t look_at_ms;
};

/* Listens on worker.metrics.listen, if it is set; before anything else of the worker is there, so that who looks
 * whether it is alive sees that it is, while it waits. FATAL: the address is not to be had. */
FM_MUSTCHECK enum fate health_start(struct health *health, struct worker *worker, struct error *error);
/* Every 10 s: backlog and lag into the gauges. Never fails loudly. */
void health_tick(struct health *health, struct worker *worker);
/* Twice is fine. */
void health_stop(struct health *health);

#endif
