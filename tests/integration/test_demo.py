"""`fermata demo` tells its story to the end and leaves nothing; `fermata dev` stays until it is asked to go.

What runs and what lies about is told by the system (/proc and the directory that the command names), not
by what the command says of itself.
"""

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import servers
from waiting import wait_for
from world import binaries

SECONDS = 120
STAGE = re.compile(r"in (/\S*/fermata-(?:demo|dev)\.\w{6})$", re.M)
MEMORY = ("AWAITING_HUMAN_APPROVAL", "VRAM_limit_gb", "16.0", "user_id", "usr_99")


def environment(**more):
    """Ours without what would configure Fermata, and with what would be in its way."""
    result = {name: value for name, value in os.environ.items() if not name.startswith("FERMATA_")}
    result.update(PGHOST="nowhere.invalid", PGSSLMODE="verify-full", **more)
    return result


def processes_of(directory):
    """The command lines of all processes that know the directory: by argument, variable or place."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
            known = line + (process / "environ").read_bytes()
            place = os.readlink(process / "cwd")
        except OSError:
            continue
        if int(process.name) != os.getpid() and (
            str(directory).encode() in known or str(directory) in place
        ):
            found.append(line)
    return found


def left_by(output):
    """What a command that has ended left behind: (processes, does its directory exist)."""
    (directory,) = STAGE.findall(output)
    return processes_of(directory), Path(directory).exists()


def hear_interrupts():
    """In the child: who runs the tests in the background may have had Ctrl-C ignored for all of them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def start(*words, **more):
    """A command in the background, its output in a pipe; it does not outlive the block."""
    process = subprocess.Popen(
        [str(binaries() / "fermata"), *words],
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hear_interrupts,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(SECONDS)


def run(*words, **more):
    """Runs a command to its end: (exit code, output)."""
    with start(*words, **more) as process:
        output, _ = process.communicate(timeout=SECONDS)
    return process.returncode, output


def read_until(process, text):
    """Reads lines of its output until one has the text."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"it ended before it said {text!r}: {''.join(lines)}")


@pytest.fixture(scope="module")
def libs(kafka):
    """The directory with the jars of the broker that the tests use."""
    if not kafka.ours:
        pytest.skip("the tests run on a foreign broker: its jars are not at hand")
    done = subprocess.run(
        [str(servers.KAFKA), "fetch"], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def assert_told(code, output):
    """The whole story, in order, and nothing left."""
    assert code == 0, output
    assert "\033" not in output, "a log has no colours"
    told = output.index("The story of SESSION-808")
    resumed = output.index("$ fermata approve SESSION-808")
    assert "none found" in output[told:resumed]
    assert "exit code 0. It is gone" in output[told:resumed]
    for word in MEMORY:
        assert word in output[resumed:], output
    assert "SESSION-809" in output[resumed:] and "Exit code 1" in output[resumed:]
    assert left_by(output) == ([], False)


def test_demo_on_a_real_kafka(libs):
    """The one that is meant."""
    code, output = run("demo", "--kafka-libs", libs, "--pause", "0")
    assert_told(code, output)
    assert "Apache Kafka 4." in output


def test_demo_on_the_mock_cluster():
    """Where there is no Kafka; it says so, and what that cannot show."""
    code, output = run("demo", "--mock", "--pause", "0")
    assert_told(code, output)
    assert "mock cluster" in output and "exactly once" in output


def test_demo_on_a_kafka_that_is_there(kafka):
    """With topics of its own, which it deletes: what is there belongs to somebody."""
    from confluent_kafka.admin import AdminClient

    def topics():
        return set(
            AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=30).topics
        )

    before = topics()
    code, output = run("-X", f"kafka.bootstrap.servers={kafka.bootstrap}", "demo", "--pause", "0")
    assert_told(code, output)
    assert kafka.bootstrap in output
    assert re.search(r"fermata-demo-\w{8}", output)
    wait_for(lambda: not {name for name in topics() - before if "demo" in name}, "its topics to go")


def test_keep_keeps_and_says_where():
    """All files, for those who want to look."""
    code, output = run("demo", "--mock", "--pause", "0", "--keep")
    assert code == 0, output
    (directory,) = STAGE.findall(output)
    assert processes_of(directory) == []
    assert output.rstrip().endswith(f"all of it is in {directory}.")
    assert (Path(directory) / "logs" / "worker.log").exists()
    assert (Path(directory) / "postgres" / "data" / "PG_VERSION").exists()
    subprocess.run(["rm", "-rf", directory], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(number):
    """Ctrl-C in the middle."""
    with start("demo", "--mock", "--pause", "60") as process:
        output = read_until(process, "The story of SESSION-808")
        process.send_signal(number)
        output += process.communicate(timeout=SECONDS)[0]
    assert process.returncode == 128 + number, output
    assert "Interrupted" in output
    assert left_by(output) == ([], False)


def test_nothing_outlives_a_demo_that_is_killed():
    """kill -9: the children die with it; only the directory stays."""
    with start("demo", "--mock", "--pause", "60") as process:
        output = read_until(process, "The story of SESSION-808")
        process.kill()
        process.communicate(timeout=SECONDS)
    (directory,) = STAGE.findall(output)
    wait_for(lambda: not processes_of(directory), "its children to die")
    subprocess.run(["rm", "-rf", directory], check=True)


def test_what_is_not_to_be_had_is_said(tmp_path):
    """A directory without Kafka's jars: which step, why, and exit code 69; the logs stay."""
    code, output = run("demo", "--kafka-libs", str(tmp_path))
    assert code == 69, output
    assert "starting the broker: failed" in output and str(tmp_path) in output
    (directory,) = STAGE.findall(output)
    assert processes_of(directory) == []
    assert sorted(os.listdir(directory)) == ["logs"]
    subprocess.run(["rm", "-rf", directory], check=True)


@pytest.mark.parametrize("words", [["--pause", "soon"], ["--pause", "-1"], ["--colour"], ["now"]])
def test_bad_options_are_usage_errors(words):
    """Exit code 2 and a line, before anything is started."""
    code, output = run("demo", *words)
    assert code == 2 and output.strip()
    assert not STAGE.findall(output)


def test_dev_stays_until_it_is_asked_to_go():
    """With the line that it prints, the commands reach what it has started."""
    with start("dev", "--mock") as process:
        output = read_until(process, "bootstrap.servers=")
        (config,) = re.findall(r"export FERMATA_CONFIG=(\S+)", output)
        pending = subprocess.run(
            [str(binaries() / "fermata"), "pending"],
            env=dict(environment(), FERMATA_CONFIG=config),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        process.send_signal(signal.SIGINT)
        output += process.communicate(timeout=SECONDS)[0]
    assert pending.returncode in (0, 1), pending
    assert process.returncode == 0, output
    assert left_by(output) == ([], False)
