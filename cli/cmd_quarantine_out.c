/* cmd_quarantine_out.c - `fermata quarantine retry` and `drop`: the two ways out. */
#include "cli/cmd.h"
#include "cli/way_out.h"

static bool settles(void *context, struct view tenant, struct view agent)
{
	return config_route_for(context, tenant, agent)->on_reject == ON_REJECT_DROP;
}

static enum fate retry(struct cli *cli, struct store *store, const struct operator_deed *deed,
                       struct arena *arena, struct deed_result *ret_result, struct error *error)
{
	return store_quarantine_retry(store, deed, settles, cli->config, arena, ret_result, error);
}

static enum fate drop(struct cli *cli, struct store *store, const struct operator_deed *deed,
                      struct arena *arena, struct deed_result *ret_result, struct error *error)
{
	(void)cli;
	return store_quarantine_drop(store, deed, arena, ret_result, error);
}

int cmd_quarantine_retry(struct cli *cli)
{
	static const struct way_out way = {
		.from = GATE_QUARANTINED,
		.word = "quarantined",
		.several = "are quarantined",
		.done = "retried",
		.deed = retry,
		.follows = { [GATE_PENDING] = "it waits for a decision again",
		             [GATE_DECIDED] = "a worker tries again to publish its resume",
		             [GATE_RESUMED] = "settled without a resume, as routes.*.on_reject = drop says",
		             [GATE_QUARANTINED] = NOT_MENDED },
		.all = true,
	};

	return way_out_run(cli, &way);
}

int cmd_quarantine_drop(struct cli *cli)
{
	static const struct way_out way = {
		.from = GATE_QUARANTINED,
		.word = "quarantined",
		.several = "are quarantined",
		.done = "dropped",
		.deed = drop,
		.follows = { [GATE_RESUMED] = "dropped: nothing of it is published" },
		.wants_reason = true,
		.question = "Drop it? Nothing of it is ever published, no decision counts any more.",
	};

	return way_out_run(cli, &way);
}
