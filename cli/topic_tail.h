/*
 * topic_tail.h - reads whole topics, from the beginning, from a time or from now, to the end as of now or for ever,
 * until Ctrl-C (or SIGTERM), which is the good end of following.
 */
#ifndef FERMATA_CLI_TOPIC_TAIL_H
#define FERMATA_CLI_TOPIC_TAIL_H

#include "cli/cli.h"
#include "core/kafka.h"

/* One record. False: enough. */
typedef bool topic_tail_each(void *context, const struct record *record);

struct topic_tail {
	const struct cli *cli;
	const char *const *topics;
	size_t topics_len;
	bool from_now; /* else from since on */
	int64_t since; /* us, by the times of the records; 0: from the beginning */
	bool follow;   /* else to the end that stands now */
	topic_tail_each *each;
	void *context;
};

/* read_committed. FATE_OK when the end was reached, each said enough, or a signal came. While it follows it
 * waits for brokers that went away, and says so once. */
FM_MUSTCHECK enum fate topic_tail_read(const struct topic_tail *tail, struct error *error);

#endif
