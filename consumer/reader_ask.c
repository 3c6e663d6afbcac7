#include "consumer/reader_inner.h"

#include "core/clock.h"
#include "core/kafka_glue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fate asking_failed(struct error *error, rd_kafka_resp_err_t err, const char *what,
                               const char *topic)
{
	return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err), "could not ask Kafka for %s %s",
	                   what, topic);
}

/*
 * One question about one partition: BEGINNING, END or a time in ms. rd_kafka_query_watermark_offsets of 2.0.2
 * waits for socket.timeout.ms (a minute) whatever timeout it is given; this one keeps to it, and the logical
 * offsets are the protocol's own special timestamps (ListOffsets: -2 earliest, -1 latest).
 */
static rd_kafka_resp_err_t list_offset(struct reader *reader, const char *topic, int32_t partition,
                                       int64_t question, int timeout_ms, int64_t *ret_offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t err;

	rd_kafka_topic_partition_list_add(list, topic, partition)->offset = question;
	err = rd_kafka_offsets_for_times(reader->rk, list, timeout_ms);
	if (!err)
		err = list->elems[0].err;
	*ret_offset = list->elems[0].offset;
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

enum fate reader_range(struct reader *reader, const char *topic, int32_t partition, int timeout_ms,
                       int64_t *ret_low, int64_t *ret_end, struct error *error)
{
	int64_t begun = clock_mono_ms();
	rd_kafka_resp_err_t err =
		list_offset(reader, topic, partition, RD_KAFKA_OFFSET_BEGINNING, timeout_ms, ret_low);
	int64_t left_ms = timeout_ms - (clock_mono_ms() - begun);

	if (!err)
		err = list_offset(reader, topic, partition, RD_KAFKA_OFFSET_END, left_ms > 1 ? (int)left_ms : 1,
		                  ret_end);
	return err ? asking_failed(error, err, "the range of", topic) : FATE_OK;
}

enum fate reader_partitions(struct reader *reader, const char *topic, int timeout_ms, int32_t *ret_count,
                            struct error *error)
{
	rd_kafka_topic_t *handle = rd_kafka_topic_new(reader->rk, topic, NULL);
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_resp_err_t err;

	if (!handle)
		return asking_failed(error, rd_kafka_last_error(), "the partitions of", topic);
	err = rd_kafka_metadata(reader->rk, 0, handle, &metadata, timeout_ms);
	if (!err && metadata->topic_cnt > 0) {
		*ret_count = metadata->topics[0].partition_cnt;
		err = metadata->topics[0].err;
	}
	if (err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
		*ret_count = 0;
		err = RD_KAFKA_RESP_ERR_NO_ERROR;
	}
	if (metadata)
		rd_kafka_metadata_destroy(metadata);
	rd_kafka_topic_destroy(handle);
	return err ? asking_failed(error, err, "the partitions of", topic) : FATE_OK;
}

enum fate reader_cluster_id(struct reader *reader, int timeout_ms, char *ret_id, size_t cap,
                            struct error *error)
{
	char *id = rd_kafka_clusterid(reader->rk, timeout_ms);
	size_t len = id ? strlen(id) : 0;

	if (len > 0 && len < cap)
		memcpy(ret_id, id, len + 1);
	if (id)
		rd_kafka_mem_free(reader->rk, id);
	if (!len)
		return error_set(error, FATE_RETRY, ERR_SERVICE,
		                 "could not ask Kafka for the id of the cluster: no broker answered within %d ms",
		                 timeout_ms);
	if (len >= cap)
		return error_set(error, FATE_FATAL, ERR_BUG, "the id of the Kafka cluster has %zu bytes", len);
	return FATE_OK;
}

/* Which members are meant: all where prefix is NULL. */
static bool is_meant(const char *client_id, const char *prefix, const char *ours)
{
	size_t len = prefix ? strlen(prefix) : 0;

	return !prefix || (strncmp(client_id, prefix, len) == 0 && strcmp(client_id + len, ours) != 0);
}

enum fate reader_members_other(struct reader *reader, const char *group, const char *prefix, const char *ours,
                               int timeout_ms, size_t *ret_count, char *ret_one, size_t cap,
                               struct error *error)
{
	const struct rd_kafka_group_list *list = NULL;
	rd_kafka_resp_err_t err = rd_kafka_list_groups(reader->rk, group, &list, timeout_ms);

	*ret_count = 0;
	ret_one[0] = '\0';
	for (int i = 0; !err && i < list->group_cnt; i++) {
		for (int j = 0; j < list->groups[i].member_cnt; j++) {
			const struct rd_kafka_group_member_info *member = &list->groups[i].members[j];
			if (!is_meant(member->client_id, prefix, ours))
				continue;
			if ((*ret_count)++ == 0)
				snprintf(ret_one, cap, "%.60s at %.60s", member->client_id, member->client_host);
		}
	}
	if (list)
		rd_kafka_group_list_destroy(list);
	return err ? asking_failed(error, err, "the members of group", group) : FATE_OK;
}

enum fate reader_members(struct reader *reader, const char *group, int timeout_ms, size_t *ret_count,
                         char *ret_one, size_t cap, struct error *error)
{
	return reader_members_other(reader, group, NULL, NULL, timeout_ms, ret_count, ret_one, cap, error);
}

/* Kafka's timestamps are milliseconds: the first one that is not below `since`. */
static int64_t first_ms_from(int64_t since_us)
{
	int64_t ms = since_us / 1000;

	if (since_us < 0)
		return 0;
	return since_us % 1000 ? ms + 1 : ms;
}

enum fate reader_offset_at_time(struct reader *reader, const char *topic, int32_t partition, int64_t since,
                                int timeout_ms, int64_t *ret_offset, struct error *error)
{
	int64_t offset;
	int64_t low;
	rd_kafka_resp_err_t err =
		list_offset(reader, topic, partition, first_ms_from(since), timeout_ms, &offset);

	if (err)
		return asking_failed(error, err, "an offset by time in", topic);
	if (offset < 0) /* no record is that late */
		return reader_range(reader, topic, partition, timeout_ms, &low, ret_offset, error);
	*ret_offset = offset;
	return FATE_OK;
}

void reader_report_positions(struct reader *reader, const struct partition_at *parts, size_t len)
{
	rd_kafka_topic_partition_list_t *list;

	if (!reader->in_group || !len)
		return;
	list = rd_kafka_topic_partition_list_new((int)len);
	for (size_t i = 0; i < len; i++)
		if (parts[i].offset >= 0)
			rd_kafka_topic_partition_list_add(list, parts[i].topic, parts[i].partition)->offset =
				parts[i].offset;
	if (list->cnt > 0)
		(void)rd_kafka_commit(reader->rk, list, 1);
	rd_kafka_topic_partition_list_destroy(list);
}
