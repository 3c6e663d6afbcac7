#!/usr/bin/env python3
"""Compatibility by us, by our own resolution and by Apache Avro for Java, over random pairs of schemas, each judged in
both directions: the same answer, or a rule says why not; and what is called compatible is what loads.

    tests/differential/compat.py --fermata build/bin/fermata [--count N] [--seed N] [--values N] [--java FOLDER]

Without --java (a folder that tests/differential/avro-java has filled) only `fermata schema check` and `fermata schema
resolve` are held against each other: every value of a compatible writer passes, none passes where nothing can.

Exit codes: 0 every difference is explained, 1 one is not.
"""

import argparse
import base64
import collections
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rules  # noqa: E402
import triples  # noqa: E402
import values  # noqa: E402

SHOWN = 10
JOBS = 2


def record(name, **fields):
    """Of fields with these types."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": type_} for field, type_ in fields.items()]}


# Differences that the generator does not come upon: Java takes each of them and we do not.
# (rule of the decision, writer, reader, what we say)
DIRECTED = [
    ("the full name first", record("c.R", x="int"), [record("a.R", y="int"), record("b.R", x="int")], "no such field"),
    ("the full name first", record("b.R", x="int"), [record("a.R", x="int"), record("b.R", y="int")], "no such field"),
    ("an empty union", [], [], "is not the reader's union"),
    ("limits", record("R"), {"type": "record", "name": "R", "fields": [
        {"name": "s", "type": "string", "default": "x" * 70000}]}, "its default takes more than"),
    ("error", {"type": "error", "name": "R", "fields": []}, record("R"), "type error is not defined"),
]


def check(fermata, folder, one):
    """Our report on the reader with the values of the writer, and on the other direction; or why one is no schema."""
    reader, writer = folder / f"{one['id']}.new", folder / f"{one['id']}.old"
    reader.write_text(json.dumps(one["reader"]))
    writer.write_text(json.dumps(one["writer"]))
    ours = {key: value for key, value in os.environ.items() if not key.startswith("FERMATA_")}
    done = subprocess.run([fermata, "schema", "check", reader, "--against", writer, "--mode", "FULL", "--json"],
                          capture_output=True, text=True, check=False, env=ours)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    reader.unlink()
    writer.unlink()
    if done.stderr:
        return done.stderr
    assert [line.get("direction") for line in lines] == [None, "BACKWARD", "FORWARD"], one["id"]
    assert done.returncode == (0 if all(line["compatible"] for line in lines[1:]) else 1), one["id"]
    return lines[1:]


def answers(command, lines):
    """Of a program that takes lines, in order."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [answer["id"] for answer in found] == [line["id"] for line in lines], "answers are missing or out of order"
    return found


def requests(some, both):
    """A line for each pair, for both directions or one."""
    for one in some:
        texts = {side: json.dumps(one[side]) for side in ("writer", "reader")}
        yield dict(texts, id=[one["id"], "BACKWARD"])
        if both:
            yield {"id": [one["id"], "FORWARD"], "writer": texts["reader"], "reader": texts["writer"]}


def resolve_requests(some):
    """A line for each value of each writer."""
    for one, pair in zip(some, requests(some, False)):
        for at, body in enumerate(one["bodies"]):
            yield dict(pair, id=[one["id"], at], body=base64.b64encode(body).decode())


class Tally:
    """What came out."""

    def __init__(self):
        self.counts = collections.Counter()
        self.unexplained = []

    def fail(self, what, seed, ours, theirs):
        """Something that no rule knows."""
        self.unexplained.append((what, seed, ours, theirs))


def no_schema(tally, one, why):
    """We do not take one of the two for a schema at all."""
    pair = rules.Pair(values.load(one["writer"]), values.load(one["reader"]))
    rule = rules.explain("compat", "they_take", pair, why, None)
    if rule:
        tally.counts[f"no schema: {rule}"] += 1
    else:
        tally.fail("no schema", one["id"], why, None)


def hold(tally, seed, report, resolved):
    """Is the report true of these values?"""
    failed = [answer for answer in resolved if not answer["ok"]]
    if report["never"]:
        wrong = [answer for answer in resolved if answer["ok"] or answer["when"] != "never"]
    else:
        wrong = [answer for answer in failed if answer["when"] == "never"]
    if report["compatible"]:
        wrong += [answer for answer in failed if not report["warnings"] or "not UTF-8" not in answer["error"]]
        tally.counts["compatible"] += 1
    else:
        tally.counts["incompatible" if failed else "incompatible, no value that shows it was found"] += 1
    if wrong:
        tally.fail("resolution", seed, report, wrong[0])


def compare(tally, one, report, java):
    """With Java's answer."""
    back = report["direction"] == "BACKWARD"
    writer, reader = (one["writer"], one["reader"]) if back else (one["reader"], one["writer"])
    pair = rules.Pair(values.load(writer), values.load(reader))
    whys = [f"{reason['path']}: {reason['why']}" for reason in report["reasons"]]
    ours = None if report["compatible"] else "\n".join(whys)
    theirs = java["error"] if "error" in java else None if java["compatible"] else java["why"]
    if (ours is None) == (theirs is None):
        tally.counts["java: both compatible" if ours is None else "java: both incompatible"] += 1
        return
    how = "they_take" if theirs is None else "we_take"
    rule = rules.explain("compat", how, pair, ours, theirs)
    if rule:
        tally.counts[f"java: {rule}"] += 1
    else:
        tally.fail(f"java {how} {report['direction']}", one["id"], ours, theirs)


def check_directed(tally, fermata, folder, java):
    """The list above, in the one direction."""
    some = [{"id": at, "writer": writer, "reader": reader} for at, (_, writer, reader, _) in enumerate(DIRECTED)]
    theirs = answers(java, list(requests(some, False)))
    for (name, _, _, wanted), one, answer in zip(DIRECTED, some, theirs):
        report = check(fermata, folder, one)
        said = report if isinstance(report, str) else json.dumps(report[0]["reasons"])
        if wanted in said and answer.get("compatible"):
            tally.counts[f"java: {name} (directed)"] += 1
        else:
            tally.fail(f"directed, {name}", one["id"], said, answer)


def main():
    """Runs and says what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fermata", required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--values", type=int, default=20)
    parser.add_argument("--java")
    args = parser.parse_args()
    some = [triples.triple(args.seed * 1000003 + i, args.values) for i in range(args.count)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(JOBS) as pool:
        reports = list(pool.map(lambda one: check(args.fermata, Path(folder), one), some))
    tally = Tally()
    for one, report in zip(some, reports):
        if isinstance(report, str):
            no_schema(tally, one, report)
    judged = [(one, report) for one, report in zip(some, reports) if not isinstance(report, str)]
    some = [one for one, _ in judged]
    resolved = answers([args.fermata, "schema", "resolve", "--batch"], list(resolve_requests(some)))
    for at, (one, report) in enumerate(judged):
        hold(tally, one["id"], report[0], resolved[at * args.values : (at + 1) * args.values])
    if args.java:
        command = ["java", "-cp", f"{args.java}:{args.java}/*", "Compatible"]
        with tempfile.TemporaryDirectory() as folder:
            check_directed(tally, args.fermata, Path(folder), command)
        java = answers(command, list(requests(some, True)))
        for at, (one, report) in enumerate(judged):
            for side in range(2):
                compare(tally, one, report[side], java[2 * at + side])
    print(f"{args.count} pairs from seed {args.seed}{', java' if args.java else ''}")
    for name, count in sorted(tally.counts.items(), key=lambda item: -item[1]):
        print(f"{count:7d}  {name}")
    for what, seed, ours, theirs in tally.unexplained[:SHOWN]:
        print(f"UNEXPLAINED {what}: triple {seed}; we: {ours}; they: {theirs}")
    print(f"{len(tally.unexplained)} unexplained")
    return 1 if tally.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
