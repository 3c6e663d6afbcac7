#include "worker/rivals.h"

#include "core/log.h"
#include "core/metrics.h"

#include <stdio.h>

#define LOOK_MS        10000
#define ASK_TIMEOUT_MS 3000

void rivals_group(const struct config *config, char *ret_group, size_t cap)
{
	snprintf(ret_group, cap, "%s" WORKER_RELAYS_SUFFIX, config_text(config, PARAM_WORKER_GROUP));
}

enum fate rivals_look(struct worker *worker, struct error *error)
{
	char group[256], one[160];
	size_t count = 0;
	struct error unasked;
	rivals_group(worker->config, group, sizeof(group));
	if (worker->mark[0] == '\0')
		return FATE_OK;
	if (reader_members_other(worker->ends, group, RIVALS_CLIENT, worker->mark, ASK_TIMEOUT_MS, &count, one,
	                         sizeof(one), &unasked) != FATE_OK) {
		log_error(LOG_LEVEL_DEBUG, "worker", &unasked);
		return FATE_OK;
	}
	metrics_set(METRIC_RIVALS, (int64_t)count);
	if (count == 0)
		return FATE_OK;
	return error_set(
		error, FATE_RETRY, ERR_SERVICE,
		"worker.group %s is that of another installation too (%s works on another database): give each "
		"one a group and topics of its own, or correct postgres.dsn",
		config_text(worker->config, PARAM_WORKER_GROUP), one);
}

void rivals_tick(struct rivals *rivals, struct worker *worker)
{
	struct error error;
	if (clock_mono_ms() < rivals->look_at_ms)
		return;
	rivals->look_at_ms = clock_mono_ms() + LOOK_MS;
	bool there = rivals_look(worker, &error) != FATE_OK;
	if (there && !rivals->there)
		log_error(LOG_LEVEL_ERROR, "worker", &error);
	if (!there && rivals->there)
		log_info("worker", "no other installation is in the group any more");
	rivals->there = there;
	if (there)
		worker_part_waits_for(worker, PART_GROUP, WAIT_RIVAL);
	else
		worker_part_ok(worker, PART_GROUP, true);
}
