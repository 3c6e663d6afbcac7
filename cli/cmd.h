/* cmd.h - what the table of commands points to: each does one command and returns the exit code. */
#ifndef FERMATA_CLI_CMD_H
#define FERMATA_CLI_CMD_H

struct cli;

int cmd_worker(struct cli *cli);
int cmd_suspend(struct cli *cli);
int cmd_approve(struct cli *cli);
int cmd_reject(struct cli *cli);
int cmd_cancel(struct cli *cli);
int cmd_pending(struct cli *cli);
int cmd_show(struct cli *cli);
int cmd_history(struct cli *cli);
int cmd_resumes(struct cli *cli);
int cmd_watch(struct cli *cli);
int cmd_dead_letters_list(struct cli *cli);
int cmd_dead_letters_show(struct cli *cli);
int cmd_dead_letters_redrive(struct cli *cli);
int cmd_intake_let_through(struct cli *cli);
int cmd_erase(struct cli *cli);
int cmd_migrate(struct cli *cli);
int cmd_rebuild(struct cli *cli);
int cmd_replay(struct cli *cli);
int cmd_topics_create(struct cli *cli);
int cmd_keys_generate(struct cli *cli);
int cmd_schema_check(struct cli *cli);
int cmd_schema_fingerprint(struct cli *cli);
int cmd_schema_list(struct cli *cli);
int cmd_schema_resolve(struct cli *cli);
int cmd_quarantine_list(struct cli *cli);
int cmd_quarantine_show(struct cli *cli);
int cmd_quarantine_retry(struct cli *cli);
int cmd_quarantine_drop(struct cli *cli);
int cmd_in_doubt_list(struct cli *cli);
int cmd_in_doubt_resume(struct cli *cli);
int cmd_in_doubt_drop(struct cli *cli);
int cmd_config_check(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_bench(struct cli *cli);
int cmd_demo(struct cli *cli);
int cmd_dev(struct cli *cli);

#endif
