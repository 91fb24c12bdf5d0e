"""tinyvllm analyze on made runs: sums that must agree, the comparison of two runs, the trace-event file, the page.

    analyze_check.py build/tinyvllm
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from make_run_trace import make

TINYVLLM = sys.argv.pop(1)


def analyze(*args):
    return subprocess.run([TINYVLLM, "analyze", *map(str, args)], check=True, capture_output=True, text=True).stdout


class MadeRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        cls.runs = {name: root / f"{name}.jsonl" for name in ("first", "again", "slower", "short")}
        make(cls.runs["first"], seed=1, steps=96)
        make(cls.runs["again"], seed=2, steps=96)
        make(cls.runs["slower"], seed=3, steps=96, slow={"gate_up": 1.1})
        make(cls.runs["short"], seed=4, steps=3)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_nothing_is_counted_twice(self):
        records = [json.loads(line) for line in self.runs["first"].read_text().splitlines()]
        steps = sum(r["event"]["data"]["duration_us"] for r in records if r["event"]["type"] == "StepCompleted") / 1e3
        ops = sum(r["event"]["data"]["duration_us"] for r in records if r["event"]["type"] == "GpuOpCompleted" and
                  not r["event"]["data"]["op_name"].endswith("cb_gpu")) / 1e3
        found = json.loads(analyze(self.runs["first"], "--json"))
        self.assertAlmostEqual(found["roofline"]["wall_ms"], steps, 3)
        self.assertAlmostEqual(found["roofline"]["ops_ms"], ops, 3)
        rows = {row["op"]: row for row in found["roofline"]["rows"] if row["op"].startswith("(")}
        self.assertAlmostEqual(rows["(no op explains)"]["time_ms"], steps - ops, 3)
        parts = found["where_the_time_went_that_no_op_explains"]["rows"]
        whole = parts.pop()
        self.assertEqual(whole["part"], "the run")
        self.assertAlmostEqual(sum(row["time_ms"] for row in parts), whole["time_ms"], 3)
        for row in parts:
            self.assertGreaterEqual(row["time_ms"], -1e-3, row)
        self.assertAlmostEqual(sum(row["time_ms"] for row in found["prefill_decode_split"]["rows"]), steps, 3)

    def test_an_op_that_became_slower_is_named_and_equal_runs_are_equal(self):
        again = analyze(self.runs["first"], "--diff", self.runs["again"])
        self.assertIn("no difference: ", again)
        slower = json.loads(analyze(self.runs["first"], "--diff", self.runs["slower"], "--json"))["difference"]
        changed = [row for row in slower["rows"] if row["verdict"] in ("slower", "faster") and "step" not in row["what"]]
        self.assertEqual([(row["phase"], row["what"], row["verdict"]) for row in changed], [("decode", "gate_up", "slower")])
        self.assertLess(changed[0]["low_percent"], 10)
        self.assertGreater(changed[0]["high_percent"], 10)
        back = analyze(self.runs["slower"], "--diff", self.runs["first"])
        self.assertIn("decode gate_up is faster by ", back)
        self.assertIn("cannot tell: ", analyze(self.runs["first"], "--diff", self.runs["short"]))


if __name__ == "__main__":
    unittest.main()
