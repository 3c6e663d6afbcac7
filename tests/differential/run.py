#!/usr/bin/env python3
"""Schema resolution by us, by fastavro and by Apache Avro for Java, over random triples of writer's schema, reader's
schema and datum: the same value, or both refuse, or a rule says why not.

    tests/differential/run.py --fermata build/bin/fermata [--count N] [--seed N] [--java FOLDER] [--require]

fastavro is taken from where it is installed; else pip puts it into a folder of its own below ~/.cache, which is used
again. Where it cannot be had, that is said and the exit code is 77 (with --require: 1). --java is a folder that
tests/differential/avro-java has filled: then Apache Avro for Java is asked too.

Exit codes: 0 every difference is explained, 1 one is not, 77 fastavro cannot be had.
"""

import argparse
import base64
import collections
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rules  # noqa: E402
import triples  # noqa: E402
import values  # noqa: E402

FASTAVRO = "1.13.0"
SHOWN = 10


def get_fastavro():
    """The module, or None and why not."""
    try:
        import fastavro  # pylint: disable=import-outside-toplevel

        return fastavro, None
    except ImportError:
        pass
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    tag = f"py{sys.version_info[0]}{sys.version_info[1]}"
    folder = cache / "fermata" / f"fastavro-{FASTAVRO}-{tag}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as half:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", half,
                       f"fastavro=={FASTAVRO}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            if done.returncode != 0:
                return None, (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            Path(half).chmod(0o755)
            try:
                Path(half).rename(folder)
                Path(half).mkdir()
            except OSError:
                pass  # another run was faster
    sys.path.insert(0, str(folder))
    import fastavro  # pylint: disable=import-outside-toplevel

    return fastavro, None


def lines_of(some):
    """The triples as lines for a batch."""
    for one in some:
        yield json.dumps({
            "id": one["id"],
            "writer": json.dumps(one["writer"]),
            "reader": json.dumps(one["reader"]),
            "body": base64.b64encode(one["body"]).decode(),
        })


def batch(command, some):
    """Answers of a program that takes lines, in order."""
    text = "\n".join(lines_of(some)) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [one["id"] for one in some], "answers are missing or out of order"
    return answers


def ask_fastavro(fastavro, one):
    """(value, None) or (None, error). What it leaves over counts as an error: it does not look."""
    try:
        stream = io.BytesIO(one["body"])
        writer = fastavro.parse_schema(one["writer"], named_schemas={})
        reader = fastavro.parse_schema(one["reader"], named_schemas={})
        value = fastavro.schemaless_reader(stream, writer, reader)
        return (value, "left over" if stream.read(1) else None)
    except Exception as error:  # pylint: disable=broad-except
        return (None, f"{type(error).__name__}: {error}")


class Tally:
    """What came out."""

    def __init__(self):
        self.counts = collections.Counter()
        self.unexplained = []

    def judge(self, who, one, pair, ours, theirs, equal):
        """ours and theirs: None or the error; equal: when both took it."""
        if ours is None and theirs is None:
            how = None if equal() else "values"
        elif ours is not None and theirs is not None:
            how = None
        else:
            how = "they_take" if ours is not None else "we_take"
        if how is None:
            self.counts[f"{who}: {'same value' if ours is None else 'both refuse'}"] += 1
            return
        rule = rules.explain(who, how, pair, ours, theirs)
        if rule:
            self.counts[f"{who}: {rule}"] += 1
        else:
            self.unexplained.append((who, how, one["id"], ours, theirs))


def check_malformed(tally, one, answer):
    """Bytes that are not of the writer's schema: the others are not asked, they take much of it."""
    tally.counts["not of the writer's schema: refused"] += 1
    if answer["ok"]:
        tally.unexplained.append(("strict decoder", "we_take", one["id"], None, "malformed"))


def same_bytes(reader, value, body):
    """Does body hold the value, NaN and all?"""
    try:
        other = values.decode(reader, body)
    except values.Malformed:
        return False  # Avro for Java hands out strings that are not UTF-8
    return other == value or repr(other) == repr(value)


def compare(tally, one, answer, java, fastavro):
    """One triple."""
    writer, reader = values.load(one["writer"]), values.load(one["reader"])
    try:
        values.decode(writer, one["body"])
    except values.Malformed:
        check_malformed(tally, one, answer)
        return
    pair = rules.Pair(writer, reader)
    ours = None if answer["ok"] else answer["error"]
    value = values.decode(reader, base64.b64decode(answer["body"])) if answer["ok"] else None
    if ours is not None and not ours.endswith("(always)" if answer["when"] == "never" else "(only this value)"):
        tally.unexplained.append(("us", "says not when", one["id"], ours, None))
    theirs, error = ask_fastavro(fastavro, one)
    tally.judge("fastavro", one, pair, ours, error, lambda: values.same(reader, value, theirs))
    if java:
        body = base64.b64decode(java.get("body", ""))
        tally.judge("java", one, pair, ours, java.get("error"), lambda: same_bytes(reader, value, body))


def main():
    """Runs and says what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fermata", required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--java")
    parser.add_argument("--require", action="store_true")
    args = parser.parse_args()
    fastavro, why = get_fastavro()
    if not fastavro:
        print(f"left out: fastavro {FASTAVRO} cannot be had: {why}")
        return 1 if args.require else 77
    import fastavro.read  # pylint: disable=import-outside-toplevel

    fastavro.read.LOGICAL_READERS.clear()  # decimals as bytes
    some = [triples.triple(args.seed * 1000003 + i) for i in range(args.count)]
    ours = batch([args.fermata, "schema", "resolve", "--batch"], some)
    java = [None] * len(some)
    if args.java:
        java = batch(["java", "-cp", f"{args.java}:{args.java}/*", "Resolve"], some)
    tally = Tally()
    for one, answer, other in zip(some, ours, java):
        compare(tally, one, answer, other, fastavro)
    print(f"{args.count} triples from seed {args.seed}, fastavro {fastavro.__version__}{', java' if args.java else ''}")
    for name, count in sorted(tally.counts.items(), key=lambda item: -item[1]):
        print(f"{count:7d}  {name}")
    for who, how, seed, said, theirs in tally.unexplained[:SHOWN]:
        print(f"UNEXPLAINED {who} {how}: triple {seed}; we: {said}; they: {theirs}")
    print(f"{len(tally.unexplained)} unexplained")
    return 1 if tally.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
