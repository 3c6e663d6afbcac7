#include "consumer/reader_inner.h"

#include "core/kafka_glue.h"

#include <stdlib.h>
#include <string.h>

enum fate reader_committed(struct reader *reader, struct partition_at *parts, size_t len, int timeout_ms,
                           struct error *error)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)len);
	rd_kafka_resp_err_t err;

	for (size_t i = 0; i < len; i++)
		rd_kafka_topic_partition_list_add(list, parts[i].topic, parts[i].partition);
	err = rd_kafka_committed(reader->rk, list, timeout_ms);
	for (size_t i = 0; !err && i < len; i++) {
		int64_t offset = list->elems[i].offset;

		err = list->elems[i].err;
		parts[i].offset = offset >= 0 ? offset : READER_BEGINNING;
	}
	rd_kafka_topic_partition_list_destroy(list);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err),
		                   "could not read the positions of the group");
	return FATE_OK;
}

static void on_committed(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts,
                         void *opaque)
{
	rd_kafka_resp_err_t *answer = opaque;

	(void)rk;
	*answer = err;
	if (!err && parts && parts->cnt > 0)
		*answer = parts->elems[0].err;
}

static bool is_stale(rd_kafka_resp_err_t err)
{
	return err == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || err == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
	       err == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS || err == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID ||
	       err == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST;
}

/* The queue is this call's own, so no callback can come once it is destroyed. */
static rd_kafka_resp_err_t commit_and_wait(struct reader *reader, const rd_kafka_topic_partition_list_t *list,
                                           int timeout_ms)
{
	rd_kafka_resp_err_t answer = RD_KAFKA_RESP_ERR__TIMED_OUT;
	rd_kafka_queue_t *queue = rd_kafka_queue_new(reader->rk);
	rd_kafka_resp_err_t err = rd_kafka_commit_queue(reader->rk, list, queue, on_committed, &answer);

	if (!err) {
		rd_kafka_queue_poll_callback(queue, timeout_ms);
		err = answer;
	}
	rd_kafka_queue_destroy(queue);
	return err;
}

enum fate reader_commit(struct reader *reader, const struct partition_at *part, int timeout_ms,
                        struct error *error)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t err;

	rd_kafka_topic_partition_list_add(list, part->topic, part->partition)->offset = part->offset;
	err = commit_and_wait(reader, list, timeout_ms);
	rd_kafka_topic_partition_list_destroy(list);
	if (is_stale(err))
		return error_set_native(error, FATE_RETRY, ERR_STALE, rd_kafka_err2name(err),
		                        "could not acknowledge %s[%d]: the group has given it to somebody else",
		                        part->topic, part->partition);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err),
		                   "could not acknowledge %s[%d]", part->topic, part->partition);
	return FATE_OK;
}
