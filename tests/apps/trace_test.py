"""Traces as their users make them: every line holds to docs/trace.schema.json, at every level, for one prompt,
a batch and a chat; parts, environment, live lines and profiles do what they say.

    trace_test.py PATH_TO_TINYVLLM PATH_TO_SCHEMA
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

BINARY = sys.argv.pop(1)
SCHEMA = json.loads(pathlib.Path(sys.argv.pop(1)).read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PRESET = ("qwen2.5-0.5b", "--load-format", "dummy", "--dtype", "Q4_0")


def tinyvllm(*arguments, environment=None, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(environment or {})}, **options)


class Traces(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "trace.jsonl"

    def check(self, path=None):
        """Every line against the schema; the types and how often they came."""
        types = collections.Counter()
        seen = collections.Counter()  # lines of one shape are checked a few times, not ten thousand
        for number, text in enumerate((path or self.path).read_text().splitlines(), 1):
            record = json.loads(text)
            types[record["event"]["type"]] += 1
            shape = (record["event"]["type"], record["span_name"], tuple(record["event"]["data"]))
            seen[shape] += 1
            if seen[shape] > 20:
                continue
            for problem in VALIDATOR.iter_errors(record):
                self.fail(f"line {number}: {problem.message}\n{text}")
        return types

    def run_traced(self, *arguments, **options):
        done = tinyvllm(*arguments, "--trace", self.path, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_schema_is_one_and_refuses_what_is_wrong(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        line = {"timestamp": 1.5, "span_id": 1, "parent_span_id": None, "span_name": "run",
                "event": {"type": "RecordsDropped", "data": {"count": 3}}}
        self.assertTrue(VALIDATOR.is_valid(line))
        for wrong in ({"count": -1}, {"count": "3"}, {}, {"count": 3, "more": 1}):
            line["event"]["data"] = wrong
            self.assertFalse(VALIDATOR.is_valid(line), wrong)
        line["event"] = {"type": "Invented", "data": {}}
        self.assertFalse(VALIDATOR.is_valid(line))

    def test_every_level_holds_to_the_schema(self):
        for level in ("step", "op", "kernel"):
            self.run_traced("run", "smollm2", "Why is the sky blue?", "-n", 4, "--trace-level", level)
            types = self.check()
            lines = self.path.read_text().splitlines()
            self.assertEqual(json.loads(lines[0])["event"]["type"], "TraceStarted")
            ended = json.loads(lines[-1])["event"]
            self.assertEqual(ended["type"], "TraceEnded")
            self.assertEqual(ended["data"]["records"], len(lines))
            self.assertEqual(ended["data"]["dropped"], 0)
            self.assertEqual(types["StepCompleted"], 4)
            self.assertEqual(types["TraceCalibration"], 1)
            self.assertEqual(types["GpuOpCompleted"] > 0, level != "step")
            self.assertEqual(types["GpuKernelDispatched"] > 0, level == "kernel")

    def test_a_batch_of_dummies_and_a_chat(self):
        questions = pathlib.Path(self.folder.name) / "in.jsonl"
        questions.write_text("".join(json.dumps({"prompt": f"Question {i}"}) + "\n" for i in range(8)))
        self.run_traced("run", *PRESET, "--raw", "--prompts", questions, "--output", str(questions) + ".out",
                        "-n", 3, "--trace-level", "op")
        types = self.check()
        self.assertEqual(types["RequestAdded"], 8)
        self.assertEqual(types["RequestFinished"], 8)
        self.run_traced("chat", "smollm2", "--max-tokens", 3, stdin=None, input="Hi\n")
        self.assertEqual(self.check()["RequestFinished"], 1)

    def test_parts_and_the_environment(self):
        done = tinyvllm("run", "smollm2", "Hi", "-n", 8, "--trace-level", "op", "--trace-rotate", "200K",
                        environment={"TINYVLLM_TRACE": str(self.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        parts = sorted(pathlib.Path(self.folder.name).glob("trace.jsonl*"))
        self.assertGreater(len(parts), 2)
        spans = collections.Counter()
        for part in parts:
            self.check(part)
            self.assertIn('"TraceStarted"', part.read_text().splitlines()[0])
            for text in part.read_text().splitlines():
                record = json.loads(text)
                if record["event"]["type"] == "GpuOpCompleted" and "/cb_" not in record["event"]["data"]["op_name"]:
                    spans[record["span_id"]] += 1
        self.assertEqual(set(spans.values()), {1})

    def test_a_full_disk_costs_one_warning_and_no_answer(self):
        done = tinyvllm("run", "smollm2", "Hi", "-n", 3, "--trace", "/dev/full")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.strip())
        self.assertEqual(len(re.findall("warning: trace '/dev/full'", done.stderr)), 1, done.stderr)
        done = tinyvllm("run", "smollm2", "Hi", "-n", 3, "--trace", "/no/such/folder/x.jsonl")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--trace: cannot write '/no/such/folder/x.jsonl'", done.stderr)

    def test_live_lines(self):
        done = tinyvllm("run", "smollm2", "Hi", "-n", 3, environment={"TINYVLLM_DEBUG": "1"})
        steps = re.findall(r"^\*\*\* step \d+ (?:prefill|decode): .*scheduled in [\d.]+us, tm +[\d.]+us",
                           done.stderr, re.M)
        self.assertEqual(len(steps), 3, done.stderr)
        done = tinyvllm("run", "smollm2", "Hi", "-n", 3, environment={"TINYVLLM_DEBUG": "2"})
        ops = re.findall(r"^\*\*\* cpu-\w+ \S+ +\w+ .* mem +[\d.]+ MB tm +[\d.]+us +[\d.]+ GFLOPS +[\d.]+ GB/s$",
                         done.stderr, re.M)
        self.assertGreaterEqual(len(ops), 3 * 180, done.stderr[:2000])

    def test_a_profile_explains_the_time(self):
        done = tinyvllm("run", "smollm2", "Why is the sky blue?", "-n", 24, "--profile")
        self.assertRegex(done.stderr, r"norm_linear +Q4_1 +decode +\d+ +[\d.]+ ms")
        unexplained = float(re.search(r"no op explains +[\d.-]+ ms +([\d.-]+)%", done.stderr).group(1))
        self.assertGreaterEqual(unexplained, 0)
        self.assertLess(unexplained, 20)


if __name__ == "__main__":
    unittest.main()
