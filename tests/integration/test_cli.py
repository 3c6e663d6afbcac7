"""The command line: usage, exit codes, configuration, keys, servers that are away."""

import json
import os
import re
import stat
import subprocess

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

import topics
import world as worlds
from acts import json_suspend, one_line
from waiting import TIMEOUT, wait_for

NOWHERE = "127.0.0.1:1"
COMMANDS = [
    "worker",
    "suspend",
    "approve",
    "reject",
    "cancel",
    "pending",
    "show",
    "history",
    "watch",
    "resumes",
    "migrate",
    "rebuild",
    "replay",
    "topics create",
    "keys generate",
    "config check",
    "doctor",
    "demo",
]
DAY_MS = 86_400_000


# ---- usage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help(shared, command):
    """Every command teaches by example, without any configuration."""
    done = shared.run(*command.split(), "--help", config=False)
    assert f"fermata {command}" in done.out and done.err == ""
    assert "xample" in done.out


def test_help_lists_the_commands(shared):
    """`fermata --help` names them all."""
    out = shared.run("--help", config=False).out
    for command in COMMANDS:
        assert command.split()[0] in out


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["no-such-command"],
        ["pending", "--no-such-option"],
        ["approve"],
        ["show"],
        ["show", "a", "b"],
        ["topics"],
        ["keys"],
        ["topics", "destroy"],
        ["pending", "-X"],
        ["pending", "-X", "novalue"],
        ["--config"],
    ],
)
def test_usage_errors(shared, argv):
    """Exit 2, and nothing on stdout."""
    done = shared.run(*argv, rc=2)
    assert done.out == "" and done.err


# ---- configuration -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong, near",
    [
        ("topics.suspend", "topics.suspends"),
        ("worker.groups", "worker.group"),
        ("postgres.dns", "postgres.dsn"),
        ("vault.keyringfile", "vault.keyring_file"),
        ("decisions.forbidself", "decisions.forbid_self"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(make_world, wrong, near):
    """In the file and on the command line."""
    world = make_world()
    line = one_line(world.run("pending", "-X", f"{wrong}=x", rc=2))
    assert wrong in line and near in line
    world.write_config(**{wrong.replace(".", "__"): "x"})
    line = one_line(world.run("config", "check", rc=2))
    assert wrong in line and near in line and "fermata.conf" in line


def test_an_unknown_variable_is_a_warning(shared):
    """Kubernetes makes some."""
    done = shared.run("pending", env={"FERMATA_SERVICE_HOST": "10.0.0.1"})
    assert "FERMATA_SERVICE_HOST" in done.err


def effective(world, *args, key="topics.partitions", **options):
    """The line about a key in `config check`."""
    lines = world.run("config", "check", *args, **options).lines
    (line,) = [line for line in lines if re.search(rf"(^|\W){re.escape(key)}\b", line)]
    return line


def test_precedence(make_world):
    """Command line, environment, file, default; and where each value came from."""
    world = make_world()
    default = effective(world)
    assert "6" in default and "default" in default
    world.write_config(topics__partitions="11")
    assert "11" in effective(world) and "fermata.conf" in effective(world)
    env = {"FERMATA_TOPICS_PARTITIONS": "12"}
    assert "12" in effective(world, env=env)
    assert "13" in effective(world, "-X", "topics.partitions=13", env=env)


def test_options_may_stand_before_the_command(shared):
    """--config and -X."""
    done = shared.run("-X", "topics.partitions=13", "config", "check")
    assert "13" in done.out
    argv = ["pending", "--config", shared.config_path, "--json"]
    assert shared.run(*argv, config=False).rc == 0


def test_where_the_file_is_looked_for(make_world):
    """FERMATA_CONFIG, else ./fermata.conf; sections prefix keys."""
    world = make_world()
    assert str(world.run("config", "check", config=False).rc) == "0"
    other = world.directory / "other.conf"
    other.write_text("# words\n[topics]\npartitions = 14\n\n[worker]\ngroup = other\n")
    line = effective(world, config=False, env={"FERMATA_CONFIG": str(other)})
    assert "14" in line and "other.conf" in line
    missing = world.run("pending", config=False, rc=2, env={"FERMATA_CONFIG": "/no/such/file"})
    assert "/no/such/file" in one_line(missing)


@pytest.mark.parametrize(
    "setting",
    [
        "topics.partitions=0",
        "topics.partitions=many",
        "limits.record_bytes=1",
        "limits.boundary=loose",
        "decisions.forbid_self=perhaps",
        "worker.group=",
        "topics.suspends=a b",
        "kafka.group.id=mine",
        "kafka.consumer.isolation.level=read_uncommitted",
        "kafka.consumer.enable.auto.commit=true",
        "kafka.producer.transactional.id=mine",
        "kafka.producer.enable.idempotence=false",
    ],
)
def test_bad_values(shared, setting):
    """A value that cannot be, and properties that the protocol owns: exit 2 and the key."""
    line = one_line(shared.run("config", "check", "-X", setting, rc=2))
    assert setting.split("=")[0].removeprefix("kafka.") in line


@pytest.mark.parametrize("setting", ["kafka.no.such.property=1", "kafka.socket.timeout.ms=soon"])
def test_bad_properties_of_librdkafka(shared, setting):
    """What librdkafka does not take is a fault of the configuration."""
    line = one_line(shared.run("topics", "create", "-X", setting, rc=2))
    assert setting.split("=")[0].removeprefix("kafka.") in line


def test_secrets_are_masked(make_world):
    """No password in what `config check` prints, wherever it came from."""
    world = make_world()
    secret = "pa55word-of-the-database"
    dsn_file = world.directory / "dsn"
    dsn_file.write_text(f"host=localhost user=u password={secret} dbname=d\n")
    options = ["-X", f"kafka.sasl.password={secret}", "-X", "kafka.sasl.username=bob"]
    world.write_config(postgres__dsn=None, postgres__dsn_file=str(dsn_file))
    for more in ([], ["--json"]):
        done = world.run("config", "check", *options, *more)
        assert secret not in done.out + done.err
        assert "postgres.dsn" in done.out and "bob" in done.out
    uri = f"postgresql://u:{secret}@localhost/d"
    done = world.run("config", "check", env={"FERMATA_POSTGRES_DSN": uri})
    assert secret not in done.out + done.err


def test_a_secret_from_a_file(make_world):
    """postgres.dsn_file works as postgres.dsn does."""
    world = make_world()
    dsn_file = world.directory / "dsn"
    dsn_file.write_text(world.settings["postgres.dsn"] + "\n")
    world.write_config(postgres__dsn=None, postgres__dsn_file=str(dsn_file))
    world.run("pending")


# ---- keys ----------------------------------------------------------------------------------


def test_keys_generate_never_overwrites(make_world):
    """Mode 0600 whatever the umask; the second time exit 1 and the file is as it was."""
    world = make_world(migrate=False)
    keyring = world.directory / "keyring"
    before = os.umask(0)
    try:
        world.run("keys", "generate")
    finally:
        os.umask(before)
    assert stat.S_IMODE(keyring.stat().st_mode) == 0o600
    text = keyring.read_text()
    assert "FERMATA-KEK-1" in text and "primary" in text
    done = world.run("keys", "generate", rc=1)
    assert str(keyring) in one_line(done)
    assert keyring.read_text() == text
    assert "FERMATA-KEK-1" not in done.out + done.err


@pytest.mark.parametrize("fault", ["missing", "group", "others", "empty", "garbage"])
def test_a_worker_without_a_key_does_not_start(make_world, fault):
    """Exit 2, and the file is named."""
    world = make_world()
    keyring = world.directory / "keyring"
    if fault == "missing":
        keyring.unlink()
    elif fault in ("group", "others"):
        keyring.chmod(0o640 if fault == "group" else 0o604)
    else:
        keyring.write_text("" if fault == "empty" else "a primary FERMATA-KEK-1-garbage\n")
    done = world.run("worker", "--drain", rc=2)
    assert str(keyring) in done.err


# ---- servers away --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv", [["topics", "create"], ["resumes", "--json"], ["suspend"]], ids=lambda argv: argv[0]
)
def test_kafka_away(shared, argv):
    """Commands that run once end with 69 and say what cannot be reached."""
    data = json.dumps(json_suspend()) if argv == ["suspend"] else None
    done = shared.run("-X", f"kafka.bootstrap.servers={NOWHERE}", *argv, rc=69, stdin=data)
    assert NOWHERE in done.err and done.out == ""


@pytest.mark.parametrize(
    "argv", [["migrate"], ["pending"], ["show", "x"], ["approve", "x"]], ids=lambda argv: argv[0]
)
def test_postgres_away(shared, argv):
    """The same for the database."""
    done = shared.run("-X", "postgres.dsn=host=127.0.0.1 port=1 dbname=d", *argv, rc=69)
    assert "127.0.0.1" in one_line(done)


# ---- migrate and topics --------------------------------------------------------------------


def test_migrate_twice_and_at_once(make_world):
    """Safe in both ways."""
    world = make_world(migrate=False)
    running = [
        subprocess.Popen(
            world.argv("migrate"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=worlds.clean_environment(),
        )
        for _ in range(4)
    ]
    for each in running:
        _, errors = each.communicate(timeout=TIMEOUT)
        assert each.returncode == 0, errors
    world.run("migrate")
    tables = {
        row[0] for row in world.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'fermata'")
    }
    assert {"checkpoint", "payload", "decision", "outbox", "kafka_offset"} <= tables


def topic_settings(world, name):
    """{setting: value} of a topic."""
    admin = AdminClient({"bootstrap.servers": world.kafka.bootstrap})
    resource = ConfigResource("topic", name)
    (future,) = admin.describe_configs([resource]).values()
    return {key: entry.value for key, entry in future.result(TIMEOUT).items()}


def partitions_of(world, name):
    """How many partitions a topic has; 0 when it is not there."""
    admin = AdminClient({"bootstrap.servers": world.kafka.bootstrap})
    known = admin.list_topics(timeout=TIMEOUT).topics
    return len(known[name].partitions) if name in known else 0


def test_topics_create(make_world):
    """The right settings; topics that exist are left as they are; a broken promise is told."""
    world = make_world()
    names = {kind: f"{world.name}.made.{kind}" for kind in worlds.KINDS}
    topics.create_topics(world.kafka.bootstrap, {names["approvals"]: 2})
    options = [part for k, name in names.items() for part in ("-X", f"topics.{k}={name}")]
    done = world.run("topics", "create", *options)
    assert names["approvals"] in done.err and "LogAppendTime" in done.err
    for kind, name in names.items():
        wait_for(lambda name=name: partitions_of(world, name), f"topic {name}")
        assert partitions_of(world, name) == (2 if kind == "approvals" else 6)
    suspends, resumes = (topic_settings(world, names[kind]) for kind in ("suspends", "resumes"))
    assert suspends["message.timestamp.type"] == "LogAppendTime"
    assert resumes["message.timestamp.type"] == "LogAppendTime"
    assert int(suspends["retention.ms"]) == 30 * DAY_MS
    assert int(resumes["retention.ms"]) >= 31 * DAY_MS
    assert topic_settings(world, names["gates"])["cleanup.policy"] == "compact"
    assert topic_settings(world, names["dead_letters"])["cleanup.policy"] == "delete"
    world.run("topics", "create", *options)
    topics.delete_topics(world.kafka.bootstrap, names.values())


# ---- doctor --------------------------------------------------------------------------------


def test_doctor(make_world):
    """0 when all is well; 1, and what to do, when something is wrong."""
    world = make_world()
    world.run("doctor")
    missing = world.run("doctor", "-X", "topics.suspends=no-such-topic", rc=None)
    assert missing.rc == 1 and "no-such-topic" in missing.out + missing.err
    (world.directory / "keyring").chmod(0o644)
    keyring = world.run("doctor", rc=None)
    assert keyring.rc in (1, 2) and "keyring" in keyring.out + keyring.err
