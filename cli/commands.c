/* commands.c - the table of commands. */
#include "cli/cmd.h"
#include "cli/command.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define JSON_OPTION                                                                                          \
	{                                                                                                        \
		"json", NULL, "one JSON object a line"                                                               \
	}
#define FILTER_OPTIONS                                                                                       \
	{ "tenant", "NAME", "only of this tenant" }, { "agent", "NAME", "only of this agent" },                  \
	{                                                                                                        \
		"session", "ID", "only of this session"                                                              \
	}
#define END                                                                                                  \
	{                                                                                                        \
		NULL, NULL, NULL                                                                                     \
	}

const struct option_spec common_options[] = {
	{ "config", "FILE", "the configuration file (default: ./fermata.conf)" },
	{ "X", "KEY=VALUE", "one setting, before environment and file; may be repeated" },
	{ "verbose", NULL, "log as log.level says, also where a command runs once" },
	{ "help", NULL, "this, or the help of a command" },
	{ "version", NULL, "the version" },
	END,
};

static const struct option_spec json_only[] = { JSON_OPTION, END };

static const struct option_spec worker_options[] = {
	{ "drain", NULL, "end when what stood in the topics at the start is done" },
	{ "adopt-group", NULL, "take the database over with another worker.group" },
	END,
};

static const struct option_spec decide_options[] = {
	{ "reason", "TEXT", "why; kept with the decision, and given to the agent" },
	{ "as", "WHO", "the subject who decides (default: your login name)" },
	{ "issuer", "NAME", "who vouches for the subject (default: local)" },
	{ "edit", "KEY=VALUE", "change a variable: JSON, else a string; may be repeated" },
	{ "arguments", "JSON", "change the arguments of the proposed action" },
	{ "early", NULL, "send it though nothing waits under this checkpoint_id" },
	JSON_OPTION,
	END,
};

static const struct option_spec check_options[] = {
	{ "against", "OLD.avsc", "an older version; may be repeated, oldest first" },
	{ "mode", "MODE", "who must read whom (default BACKWARD)" },
	{ "against-registry", NULL, "ask the schema registry, and judge by its rule" },
	{ "subject", "NAME", "the subject there (default: that of FILE's name)" },
	{ "pending", NULL, "read everything that waits under FILE" },
	JSON_OPTION,
	END,
};

static const struct option_spec resolve_options[] = {
	{ "writer", "FILE", "the schema that the datum was written with" },
	{ "reader", "FILE", "the schema that it is wanted under" },
	{ "batch", NULL, "lines of JSON with both schemas and a datum" },
	JSON_OPTION,
	END,
};

static const struct option_spec pending_options[] = {
	FILTER_OPTIONS,
	{ "limit", "N", "at most so many, those that wait longest first" },
	JSON_OPTION,
	END,
};

/* --all first, and what it narrows; the others of the command come behind. */
static const struct option_spec retry_options[] = {
	{ "all", NULL, "all that are quarantined and that the following let through" },
	FILTER_OPTIONS,
	{ "limit", "N", "at most so many, the oldest first" },
	{ "reason", "TEXT", "what was mended; kept with the deed" },
	{ "dry-run", NULL, "only say which they are" },
	JSON_OPTION,
	END,
};

static const struct option_spec drop_options[] = {
	{ "reason", "TEXT", "why; kept with it, and told in its gate event" },
	{ "yes", NULL, "do not ask whether it is to be" },
	JSON_OPTION,
	END,
};

static const struct option_spec doubt_resume_options[] = {
	{ "all", NULL, "all that are in doubt and that the following let through" },
	FILTER_OPTIONS,
	{ "limit", "N", "at most so many, the oldest first" },
	{ "reason", "TEXT", "how it is known; kept with the deed" },
	{ "dry-run", NULL, "only say which they are" },
	JSON_OPTION,
	END,
};

static const struct option_spec doubt_drop_options[] = {
	{ "all", NULL, "all that are in doubt and that the following let through" },
	FILTER_OPTIONS,
	{ "limit", "N", "at most so many, the oldest first" },
	{ "reason", "TEXT", "why; kept with it, and told in its gate event" },
	{ "yes", NULL, "do not ask whether it is to be" },
	{ "dry-run", NULL, "only say which they are" },
	JSON_OPTION,
	END,
};

static const struct option_spec show_options[] = {
	{ "state", NULL, "open what is sealed: history, step, variables, action" },
	JSON_OPTION,
	END,
};

static const struct option_spec resumes_options[] = {
	{ "follow", NULL, "go on with those that come, until Ctrl-C" },
	{ "limit", "N", "end after so many" },
	JSON_OPTION,
	END,
};

static const struct option_spec erase_options[] = {
	{ "tenant", "NAME", "whose session, where several tenants have one of that name" },
	{ "reason", "TEXT", "why; kept in fermata.audit" },
	{ "yes", NULL, "do not ask first" },
	{ "dry-run", NULL, "only say what would be erased" },
	JSON_OPTION,
	END,
};

static const struct option_spec watch_options[] = {
	{ "from-start", NULL, "begin with what the topic holds, not with what comes" },
	JSON_OPTION,
	END,
};

static const struct option_spec letters_options[] = {
	{ "code", "CODE", "only of this code: unknown_schema, invalid, conflict, ..." },
	{ "topic", "NAME", "only of those that came from this topic" },
	{ "since", "TIME", "only of those that came since: 2h, 3d, 2026-11-30T06:45Z" },
	{ "until", "TIME", "only of those that came before" },
	{ "limit", "N", "end after so many" },
	{ "all", NULL, "also the second letters that a crash may leave" },
	JSON_OPTION,
	END,
};

static const struct option_spec letter_options[] = {
	{ "value", "FILE", "write the value, byte for byte, to a new file" },
	JSON_OPTION,
	END,
};

static const struct option_spec redrive_options[] = {
	{ "all", NULL, "all letters, or those that the filters let through" },
	{ "code", "CODE", "with --all: only of this code" },
	{ "topic", "NAME", "with --all: only of those that came from this topic" },
	{ "since", "TIME", "with --all: only of those that came since" },
	{ "until", "TIME", "with --all: only of those that came before" },
	{ "dry-run", NULL, "say what would be done, and whether it would help" },
	{ "rate", "N", "at most so many a second (default 100)" },
	{ "to", "TOPIC", "to this topic, not to where they came from" },
	{ "max-redrives", "N", "leave alone what has come back so often (default 3)" },
	{ "again", NULL, "also what was redriven before" },
	JSON_OPTION,
	END,
};

static const struct option_spec let_through_options[] = {
	{ "count", "N", "the next N offsets" },
	{ "until", "OFFSET", "those below that offset" },
	{ "reason", "TEXT", "why; kept in fermata.audit" },
	JSON_OPTION,
	END,
};

static const struct option_spec demo_options[] = {
	{ "kafka-libs", "DIR", "the jars of Apache Kafka to run" },
	{ "mock", NULL, "the mock cluster: quick, and no proof of exactly-once" },
	{ "pause", "SECONDS", "how long the hours take (default 2)" },
	{ "keep", NULL, "leave the directory with all files and logs" },
	END,
};

static const struct option_spec bench_options[] = {
	{ "quick", NULL, "a minute or two, with less of everything" },
	{ "size", "BYTES", "of a suspend event (default: 2KiB, 32KiB); may be repeated" },
	{ "phase", "NAME", "only this one (default: all); may be repeated" },
	{ "sessions", "N", "of each phase that counts, at 2 KiB (default 40000)" },
	{ "asleep", "N", "how many sleep when memory and disk are looked at (100000)" },
	{ "seconds", "N", "how long decisions come one at a time (default 20)" },
	{ "rounds", "N", "all of it so often; the table shows the middle one" },
	{ "settled", "N", "again, with so many settled sessions in the tables" },
	{ "dev", NULL, "on the servers of `fermata dev`, started for it" },
	{ "kafka-libs", "DIR", "with --dev: the jars of Apache Kafka to run" },
	JSON_OPTION,
	END,
};

static const struct option_spec rebuild_options[] = {
	{ "dry-run", NULL, "say what would come back, write nothing" },
	{ "resumes", "TOPIC", "resumes went there under earlier routes; may be repeated" },
	JSON_OPTION,
	END,
};

static const struct option_spec replay_options[] = {
	{ "topic", "NAME", "of suspends, of approvals or of resumes" },
	{ "from", "OFFSET|TIME", "from there on: 0, 12345, 2h, 2026-11-30T06:45Z" },
	{ "partition", "N", "only this one" },
	{ "dry-run", NULL, "say what is different, write nothing" },
	JSON_OPTION,
	END,
};

static const struct option_spec dev_options[] = {
	{ "kafka-libs", "DIR", "the jars of Apache Kafka to run" },
	{ "mock", NULL, "the mock cluster of librdkafka" },
	{ "keep", NULL, "leave the directory with all files and logs" },
	END,
};

const struct command commands[] = {
	{ "worker", "", "seal what comes, judge decisions, publish resumes",
	  "Reads suspends and approvals, keeps them in PostgreSQL, publishes resumes and\n"
	  "gates. Start as many as you like: they share the partitions. A worker waits\n"
	  "while Kafka or PostgreSQL is away, and ends within 10 s of SIGTERM.\n"
	  "SIGHUP reads the keys again.\n",
	  "fermata worker\n"
	  "fermata worker --drain                 # for cron, or a Kubernetes Job\n"
	  "fermata-worker -X log.format=json      # the same program by its own name\n",
	  worker_options, 0, 0, COMMAND_VAULT | COMMAND_LOGS | COMMAND_SIGNALS, cmd_worker },
	{ "suspend", "[FILE]", "send suspend events: JSON lines from a file or stdin",
	  "Each line is one SuspendEvent with the field names of its schema. Missing\n"
	  "ids, times and salt are made. Prints the checkpoint_id of each, in order, once\n"
	  "Kafka has acknowledged it. A bad line is named and passed over; the exit code\n"
	  "is then 1. An agent that sends a line again gives checkpoint_id, suspended_at\n"
	  "and salt itself, so that it is the same record.\n",
	  "fermata suspend waiting.jsonl\n"
	  "my-agent --to-json | fermata suspend --json\n",
	  json_only, 0, 1, 0, cmd_suspend },
	{ "approve", "ID", "let a session go on",
	  "ID is a checkpoint_id or, where exactly one gate of it waits, a session_id.\n"
	  "The decision carries the digest of what the database holds, and counts for\n"
	  "nothing else. Prints its decision_id once Kafka has acknowledged it;\n"
	  "`fermata history` tells what became of it.\n",
	  "fermata approve SESSION-808 --reason \"checked the plan\"\n"
	  "fermata approve SESSION-808 --edit VRAM_limit_gb=24.0 --edit 'hosts=[\"a\",\"b\"]'\n"
	  "fermata approve 019400a1-7c3e-7d21-9f00-5b1c2d3e4f50 --as alice --issuer desk\n",
	  decide_options, 1, 1, 0, cmd_approve },
	{ "reject", "ID", "refuse what a session proposes",
	  "ID is a checkpoint_id or, where exactly one gate of it waits, a session_id.\n"
	  "A rejection decides at once; the agent gets its session back with the verdict\n"
	  "REJECTED, to clean up, unless routes.*.on_reject = drop.\n",
	  "fermata reject SESSION-808 --reason \"not on a Friday\"\n"
	  "fermata reject 019400a1-7c3e-7d21-9f00-5b1c2d3e4f50 --as alice\n",
	  decide_options, 1, 1, 0, cmd_reject },
	{ "cancel", "ID", "call a session off",
	  "ID is a checkpoint_id or, where exactly one gate of it waits, a session_id.\n"
	  "A cancellation counts from anyone; the verdict is CANCELLED.\n",
	  "fermata cancel SESSION-808 --reason \"the customer called it off\"\n", decide_options, 1, 1, 0,
	  cmd_cancel },
	{ "pending", "", "list the gates that wait for a decision",
	  "Those that wait longest come first. A QUARANTINED one is among them while it\n"
	  "has no verdict: it cannot be opened, `fermata show` says why.\n",
	  "fermata pending\n"
	  "fermata pending --agent planner --limit 20\n"
	  "fermata pending --json | jq -r 'select(.risk == \"HIGH\") | .checkpoint_id'\n",
	  pending_options, 0, 0, 0, cmd_pending },
	{ "show", "ID", "read a checkpoint, or all gates of a session",
	  "What stands in clear in the database, and every decision with its outcome.\n"
	  "--state needs the keys (vault.*) and opens the rest: the history line by line,\n"
	  "the step, the variables, the proposed action.\n",
	  "fermata show SESSION-808\n"
	  "fermata show SESSION-808 --state\n"
	  "fermata show SESSION-808 --state --json | jq .suspend.config\n",
	  show_options, 1, 1, COMMAND_VAULT, cmd_show },
	{ "history", "ID", "tell what happened to a checkpoint, or to a session",
	  "States and decisions in the order of time; a decision that did not count says\n"
	  "why (wrong_digest, late, not_approver, already_decided, ...). With --json that\n"
	  "is outcome_reason; the fields of a decision are those of its record, so that\n"
	  "reason is what the person gave.\n",
	  "fermata history SESSION-808\n"
	  "fermata history SESSION-808 --json | jq 'select(.outcome == \"refused\")'\n",
	  json_only, 1, 1, 0, cmd_history },
	{ "resumes", "", "read the resumes topic, as executors do",
	  "From its beginning to its end as of now, read_committed: what was aborted is\n"
	  "not shown. The topics of routes are read too.\n",
	  "fermata resumes\n"
	  "fermata resumes --follow\n"
	  "fermata resumes --json | jq -r '[.session_id, .verdict] | @tsv'\n",
	  resumes_options, 0, 0, 0, cmd_resumes },
	{ "watch", "", "follow the gates live",
	  "One line for each change of a gate, until Ctrl-C: it waits, it is decided, it\n"
	  "is resumed. Older versions of what was shown are passed over.\n",
	  "fermata watch\n"
	  "fermata watch --from-start --json\n",
	  watch_options, 0, 0, 0, cmd_watch },
	{ "dead-letters list", "", "list the records that could not be understood",
	  "From the beginning of the dead-letters topic to its end as of now: where each\n"
	  "letter stands, its code, the record that it was, the reason. --since and\n"
	  "--until go by the time at which it became a dead letter.\n",
	  "fermata dead-letters list --since 2h\n"
	  "fermata dead-letters list --code unknown_schema --json | jq -r .place\n",
	  letters_options, 0, 0, 0, cmd_dead_letters_list },
	{ "dead-letters show", "PLACE", "read one of them",
	  "PLACE is PARTITION:OFFSET, as the list shows it. Says all that is known of it,\n"
	  "whether it could be read now, and what would have to change first. What it\n"
	  "holds is not shown, for it may be the state of a session: --value writes it,\n"
	  "byte for byte, to a new file with mode 0600.\n",
	  "fermata dead-letters show 3:1042\n"
	  "fermata dead-letters show 3:1042 --value letter.avro\n",
	  letter_options, 1, 1, COMMAND_VAULT, cmd_dead_letters_show },
	{ "dead-letters redrive", "[PLACE...]", "send them back to where they came from",
	  "Bytes, key and headers as they came, to the topic and partition that they\n"
	  "came from; each once: fermata.audit knows which went. --dry-run tells what has\n"
	  "to change first. One that is left alone is named, and the exit code is then 1.\n",
	  "fermata dead-letters redrive --all --code unknown_schema --rate 20 --dry-run\n"
	  "fermata dead-letters redrive 3:1042 3:1043\n",
	  redrive_options, 0, 10000, COMMAND_VAULT, cmd_dead_letters_redrive },
	{ "intake let-through", "TOPIC PARTITION", "send on what a stopped one fails on",
	  "When most of the last records of a partition became dead letters\n"
	  "(worker.breaker_records), it is stopped, and the others go on; the log says\n"
	  "what is wrong. Once that is mended it goes on by itself, within a minute.\n"
	  "Where it cannot be mended, this sends what fails on as dead letters, up to an\n"
	  "offset; what is good of it is taken in. Exit 1 when it is not stopped.\n",
	  "fermata intake let-through fermata.suspends 3 --count 5000\n"
	  "fermata intake let-through fermata.suspends 3 --until 120400 --reason old\n",
	  let_through_options, 2, 2, 0, cmd_intake_let_through },
	{ "erase", "SESSION", "make what is sealed of a session unreadable",
	  "Erases the keys of all its checkpoints, and of the edits in their decisions:\n"
	  "nothing can open them any more, `fermata show` says so. What was not published\n"
	  "is settled, CANCELLED where nobody had decided, and never will be; decisions\n"
	  "that come later are refused. What stands in clear stays: ids, title, labels,\n"
	  "who asked, who decided and why. So do copies in Kafka's topics, in backups and\n"
	  "in the write-ahead log, until they age out. On a terminal it asks first.\n",
	  "fermata erase SESSION-808 --reason \"request 4711 of the customer\"\n"
	  "fermata erase SESSION-808 --tenant acme --dry-run --json\n",
	  erase_options, 1, 1, 0, cmd_erase },
	{ "migrate", "", "bring the tables in PostgreSQL up to date",
	  "Safe to run twice and at once. Workers wait until it was run.\n",
	  "fermata migrate\n"
	  "fermata -X postgres.dsn=postgresql://owner@db/fermata migrate\n",
	  json_only, 0, 0, 0, cmd_migrate },
	{ "rebuild", "", "bring a lost database back from the topics",
	  "For a new database, migrated, while no worker runs. Reads the resumes first\n"
	  "(what was published is published), then suspends and approvals up to where\n"
	  "they end now; publishes nothing. What was decided and may have been published\n"
	  "is IN_DOUBT then: `fermata in-doubt list`, `resume` and `drop` settle it.\n"
	  "Interrupted, it goes on where it stopped when it is started again. A worker\n"
	  "does the same by itself; this is faster, shows how far it is and says what it\n"
	  "found. --dry-run counts what the topics hold, judges nothing and needs no\n"
	  "database.\n",
	  "fermata rebuild --dry-run\n"
	  "fermata migrate && fermata rebuild && fermata worker\n"
	  "fermata rebuild --resumes fermata.resumes.old\n",
	  rebuild_options, 0, 0, COMMAND_VAULT | COMMAND_SIGNALS, cmd_rebuild },
	{ "replay", "", "read a topic again, beside what is there",
	  "Up to where the workers stand, beside them, and no position moves. What is\n"
	  "missing in the database is put in; what is settled stays, and what is not as\n"
	  "the topic has it is told, a line each. Suspends first, then approvals: a\n"
	  "decision whose checkpoint is missing is not put in. What was published is\n"
	  "looked up on the topics of resumes before anything is decided again. An offset\n"
	  "counts in every partition.\n",
	  "fermata replay --topic fermata.suspends --from 0 --dry-run\n"
	  "fermata replay --topic fermata.approvals --from 2h\n"
	  "fermata replay --topic fermata.resumes --from 2026-11-30T06:45Z --partition 3\n",
	  replay_options, 0, 0, COMMAND_VAULT | COMMAND_SIGNALS, cmd_replay },
	{ "topics create", "", "create the topics with the right settings",
	  "Suspends, approvals, resumes (those of routes too), gates and dead letters,\n"
	  "with topics.partitions, .replication and .retention. A topic that exists\n"
	  "is left as it is; where its settings break a promise, that is said.\n",
	  "fermata topics create\n"
	  "fermata -X topics.partitions=12 -X topics.replication=3 topics create\n",
	  json_only, 0, 0, 0, cmd_topics_create },
	{ "keys generate", "", "make the file with the keys",
	  "Writes vault.keyring_file with one new primary key, mode 0600, and never over\n"
	  "a file that is there. What is sealed cannot be read without it: keep a copy.\n",
	  "fermata keys generate\n"
	  "fermata keys generate -X vault.keyring_file=/etc/fermata/keyring\n",
	  json_only, 0, 0, 0, cmd_keys_generate },
	{ "schema check", "FILE", "is it a schema, and does it read what is there?",
	  "Exit 0, or 1 and one line for each reason. FILE may be - for stdin.\n"
	  "MODE is as in a registry: BACKWARD, FILE reads what the last version wrote;\n"
	  "FORWARD, that reads what FILE writes; FULL, both; _TRANSITIVE: with all\n"
	  "versions; NONE. It is judged by the resolution that loads what waits. What\n"
	  "hangs on the value (bytes to a string must be UTF-8) is a warning.\n"
	  "--pending opens all that waits (it needs the keys) and reads each state under\n"
	  "FILE; all of it, when FILE is fermata.v1.SuspendEvent.\n",
	  "fermata schema check v3.avsc --against v1.avsc --against v2.avsc --mode full\n"
	  "fermata schema check v3.avsc --against-registry --pending\n",
	  check_options, 1, 1, COMMAND_VAULT, cmd_schema_check },
	{ "schema fingerprint", "FILE", "print the fingerprints of an Avro schema",
	  "CRC-64-AVRO in the byte order of the single-object header, MD5 and SHA-256 of\n"
	  "the parsing canonical form; with --json that form too.\n",
	  "fermata schema fingerprint schemas/ResumeEvent.avsc\n"
	  "fermata schema fingerprint --json - < app.avsc | jq -r .canonical\n",
	  json_only, 1, 1, 0, cmd_schema_fingerprint },
	{ "schema list", "", "list the schemas that are known",
	  "Those of the program, of schemas.path and of the database (what was seen, and\n"
	  "what a registry told). A reader is what records or states are read with today.\n"
	  "WAIT counts the checkpoints that wait and whose suspend event was written with\n"
	  "it; with which schema a state was written is sealed.\n",
	  "fermata schema list\n"
	  "fermata schema list --json | jq 'select(.waiting > 0)'\n",
	  json_only, 0, 0, 0, cmd_schema_list },
	{ "schema resolve", "", "read a datum under another schema",
	  "By Avro's schema resolution: defaults, aliases, promotions. The datum is raw\n"
	  "Avro binary on stdin; it is printed in Avro's JSON encoding. Exit 1 and one\n"
	  "line when it cannot be: the field, why, and whether always or only for this\n"
	  "value. With --batch, stdin has lines {\"id\",\"writer\",\"reader\",\"body\"}, the\n"
	  "schemas as JSON or in strings, body in base64. Each is answered, in order, by\n"
	  "{\"id\",\"ok\":true,\"body\"} or {\"id\",\"ok\":false,\"error\",\"when\"}, where when is\n"
	  "\"never\" or \"value\".\n",
	  "fermata schema resolve --writer v1.avsc --reader v2.avsc < datum.avro\n"
	  "fermata schema resolve --batch < triples.jsonl\n",
	  resolve_options, 0, 0, 0, cmd_schema_resolve },
	{ "quarantine list", "", "list what could not be opened or validated",
	  "A checkpoint that was decided and cannot be published (its key is unknown, its\n"
	  "row was tampered with, its state does not fit the schema, its resume is too\n"
	  "large) waits QUARANTINED with its decision and the reason; others go on.\n",
	  "fermata quarantine list\n"
	  "fermata quarantine list --agent planner --json | jq -r .reason\n",
	  pending_options, 0, 0, 0, cmd_quarantine_list },
	{ "quarantine show", "ID", "tell why it is quarantined, and what to do",
	  "ID is a checkpoint_id, or a session_id for all of its gates that are\n"
	  "quarantined. The reason, the decisions, and what operators did.\n",
	  "fermata quarantine show SESSION-808\n", json_only, 1, 1, 0, cmd_quarantine_show },
	{ "quarantine retry", "[ID...]", "try it again, once what was wrong is mended",
	  "With a verdict it becomes DECIDED, and a worker publishes its resume, once;\n"
	  "without one it waits for a decision again. What is still broken comes back,\n"
	  "with its reason. Where the verdict is no approval and routes.*.on_reject is\n"
	  "drop, it is settled without a resume; the configuration is to be the workers'.\n"
	  "ID is a checkpoint_id or, where exactly one gate of it is quarantined, a\n"
	  "session_id. Exit 1 when one of them was not quarantined.\n",
	  "fermata quarantine retry SESSION-808 --reason \"key put back\"\n"
	  "fermata quarantine retry --all --agent planner --dry-run\n",
	  retry_options, 0, SIZE_MAX, 0, cmd_quarantine_retry },
	{ "quarantine drop", "ID", "give it up: nothing of it is published",
	  "It is settled (RESUMED, with the reason) and kept from the resumes topic; its\n"
	  "decision stays as it is, later ones are refused. Who dropped it and why is\n"
	  "recorded (`fermata history`). Asks first. It stands in the database only: what\n"
	  "is rebuilt from the topics does not know of it.\n",
	  "fermata quarantine drop SESSION-808 --reason \"done by hand\"\n"
	  "fermata quarantine drop SESSION-808 --reason \"done by hand\" --yes\n",
	  drop_options, 1, 1, 0, cmd_quarantine_drop },
	{ "in-doubt list", "", "list what may have been published, and may not",
	  "After a rebuild, or where retention has taken the beginning of a resumes\n"
	  "topic: decided, and not among the resumes that the topic still has. RESUMES\n"
	  "and PARTITION say where its resume would be. Whether its executor has had it,\n"
	  "only you can find out.\n",
	  "fermata in-doubt list\n"
	  "fermata in-doubt list --agent planner --json | jq -r .checkpoint_id\n",
	  pending_options, 0, 0, 0, cmd_in_doubt_list },
	{ "in-doubt resume", "[ID...]", "it was not published: let a worker do it",
	  "It becomes DECIDED, and a worker publishes its resume, once, unless it finds\n"
	  "it on the topic after all. If it had been published before, its executor gets\n"
	  "it a second time. The answer is kept: the same doubt does not come back; a\n"
	  "later one may, when more of the topic has gone. ID is a checkpoint_id or,\n"
	  "where exactly one gate of it is in doubt, a session_id. Exit 1 when one of\n"
	  "them was not in doubt.\n",
	  "fermata in-doubt resume SESSION-808 --reason \"its executor never ran\"\n"
	  "fermata in-doubt resume --all --agent planner --dry-run\n",
	  doubt_resume_options, 0, SIZE_MAX, 0, cmd_in_doubt_resume },
	{ "in-doubt drop", "[ID...]", "it was published, or is not to be: settle it",
	  "It is settled (RESUMED, with the reason) and kept from the resumes topic; its\n"
	  "decision stays as it is. Asks first. Who dropped it and why is recorded\n"
	  "(`fermata history`). It stands in the database only: after another rebuild\n"
	  "from the topics it is in doubt again.\n",
	  "fermata in-doubt drop SESSION-808 --reason \"it ran on Friday\"\n"
	  "fermata in-doubt drop --all --agent planner --reason \"they ran\" --yes\n",
	  doubt_drop_options, 0, SIZE_MAX, 0, cmd_in_doubt_drop },
	{ "config check", "", "print the effective configuration, secrets masked",
	  "Every key with its value and where that came from: the command line, the\n"
	  "environment, the file and line, or the default.\n",
	  "fermata config check\n"
	  "fermata config check --json | jq 'select(.origin != \"default\")'\n",
	  json_only, 0, 0, 0, cmd_config_check },
	{ "doctor", "", "find what is wrong, and say how to mend it",
	  "Looks at the configuration, the limits of this machine, the keys, PostgreSQL\n"
	  "and its tables, Kafka, the topics and their settings, and whether transactions\n"
	  "are possible. Changes nothing. Exit 0 when a worker can start, else 1.\n",
	  "fermata doctor\n"
	  "fermata doctor --json | jq 'select(.result != \"ok\")'\n",
	  json_only, 0, 0, COMMAND_VAULT, cmd_doctor },
	{ "bench", "", "measure what this machine and its servers carry",
	  "Real sessions through your Kafka, your PostgreSQL and a worker, and what those\n"
	  "do without one; in topics fermata-bench-* and databases fermata_bench_*, gone\n"
	  "at the end and on Ctrl-C. It loads the servers fully. Phases: suspend, asleep,\n"
	  "restart, decide, outbox, together, latency, growth (not with --quick).\n",
	  "fermata bench --dev --json --phase suspend | jq 'select(.met == false)'\n", bench_options, 0, 0, 0,
	  cmd_bench },
	{ "demo", "", "tell the story of SESSION-808, nothing to configure",
	  "Starts a private PostgreSQL, a broker and a worker; an agent asks, waits and\n"
	  "goes on; then everything is taken down. The broker is that of\n"
	  "kafka.bootstrap.servers when you have set it, else an Apache Kafka of its own\n"
	  "(scripts/kafka fetch), else librdkafka's mock cluster.\n",
	  "fermata demo\n"
	  "fermata demo --mock --pause 0\n"
	  "fermata -X kafka.bootstrap.servers=localhost:9092 demo\n",
	  demo_options, 0, 0, COMMAND_RAW, cmd_demo },
	{ "dev", "", "all servers on this machine, to develop against",
	  "Starts them in a temporary directory, makes keys, tables and topics, says how\n"
	  "to reach it all, and stays until Ctrl-C.\n",
	  "fermata dev\n"
	  "fermata dev --mock --keep\n",
	  dev_options, 0, 0, COMMAND_RAW, cmd_dev },
	{ .name = NULL },
};

const struct command *command_find(const char *name)
{
	for (const struct command *command = commands; command->name != NULL; command++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

bool command_in_group(const struct command *command, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(command->name, word, len) && command->name[len] == ' ';
}

bool command_is_group(const char *word)
{
	for (const struct command *command = commands; command->name != NULL; command++)
		if (command_in_group(command, word))
			return true;
	return false;
}

const struct option_spec *option_find(const struct option_spec *options, const char *name)
{
	for (; options != NULL && options->name != NULL; options++)
		if (!strcmp(options->name, name))
			return options;
	return NULL;
}
