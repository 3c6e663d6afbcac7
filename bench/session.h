/*
 * session.h - the sessions of a measurement: their suspend events, of a wanted size, and the decisions on them. Session n
 * of a run has the same text whenever it is made; its ids and its salt are new.
 */
#ifndef FERMATA_BENCH_SESSION_H
#define FERMATA_BENCH_SESSION_H

#include "schemas/codec.h"

struct session_writer;

/* run: a name that stands in the ids of the sessions ("bench-RUN-0000000007"), borrowed. size: bytes of a suspend event,
 * at least SESSION_BYTES_MIN. FATAL ERR_MEMORY. */
FM_MUSTCHECK enum fate session_writer_new(struct session_writer **ret_writer, const char *run, size_t size,
                                          struct error *error);
/* NULL is fine. */
void session_writer_free(struct session_writer *writer);

#define SESSION_BYTES_MIN ((size_t)1024)
#define SESSION_BYTES_MAX ((size_t)4 << 20)

/* The suspend event of session n into out, which is emptied first; *ret_id is new. */
FM_MUSTCHECK enum fate session_suspend(struct session_writer *writer, uint32_t number, struct buffer *out,
                                       struct uuid *ret_id, struct error *error);
/* Suspend `seq` of `of` of a session that goes on in between: the history grows by turns, from SESSION_BYTES_MIN to the whole
 * size in the last one. */
FM_MUSTCHECK enum fate session_suspend_grown(struct session_writer *writer, uint32_t number, uint32_t seq,
                                             uint32_t of, struct buffer *out, struct uuid *ret_id,
                                             struct error *error);
/* An approval of it. */
FM_MUSTCHECK enum fate session_approve(struct session_writer *writer, uint32_t number, const struct uuid *id,
                                       struct buffer *out, struct error *error);
/* Which session of the run is it by its session_id? False: it is none of them. */
bool session_number(const struct session_writer *writer, struct view session_id, uint32_t *ret_number);

#endif
