/*
 * ledger_head.h - a record of a resumes topic, read as the ledger of what has been published.
 *
 * What cannot be read there must not be taken for "not published": a registry whose ids mean something else now, or
 * that is not configured any more, would have everything published a second time.
 */
#ifndef FERMATA_WORKER_LEDGER_HEAD_H
#define FERMATA_WORKER_LEDGER_HEAD_H

#include "consumer/reader.h"
#include "schemas/codec.h"

/*
 * codec_take_resume_head, with the record's header; and where that fails for a record that says that it is ours and
 * is framed with a registry's id, once more by what it is when a worker like this one wrote it: today's ResumeEvent
 * with the id that stands in its header. So nobody needs a registry to know what was published. On failure the
 * error and codec_want are those of the first reading.
 */
FM_MUSTCHECK enum fate ledger_head_read(struct codec *codec, const struct record *record, struct arena *arena,
                                        struct resume_event *ret_event, struct error *error);

/* Does it say that it is a resume of ours? Nobody else may write to the topic, but somebody may have. */
bool ledger_head_ours(const struct record *record);

#endif
