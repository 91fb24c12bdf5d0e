"""The benches end to end on the tiny preset: every table of theirs, JSON that holds together, files for people, and
what is left after Ctrl-C.

    bench_test.py TINYVLLM
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TINYVLLM = ""


def run(*words, status=0):
    done = subprocess.run([TINYVLLM, "bench", *words], capture_output=True, text=True, timeout=120)
    if done.returncode != status:
        raise AssertionError(f"bench {' '.join(words)}: exit status {done.returncode}\n{done.stderr}")
    return done


def results(*words):
    """The JSON of a bench, with what holds of every one of them checked."""
    contents = json.loads(run(*words, "--json").stdout)
    assert contents["complete"] and contents["machine"]["threads"] >= 1 and contents["results"]
    for result in contents["results"]:
        assert result["samples"], result
        ordered = sorted(result["samples"])
        assert ordered[0] <= result["value"] <= ordered[-1], result
        if result["utilization"] is not None:
            ratio = result["value"] / result["limit"]
            assert min(abs(result["utilization"] - ratio), abs(result["utilization"] - 1 / ratio)) < 1e-6, result
            assert 0 < result["utilization"] <= 1, result
    return {result["name"]: result for result in contents["results"]}


class Bench(unittest.TestCase):
    def test_throughput(self):
        found = results("throughput", "--repeat", "1")
        for name in ("Single request", "Sequential (5 requests)", "Concurrent (64 requests)", "context 512"):
            self.assertGreater(found[name]["value"], 0)
            self.assertGreater(found[name]["limit"], found[name]["value"])

    def test_latency(self):
        found = results("latency", "--repeat", "1")
        first, each, whole = (found[name]["value"] for name in ("TTFT", "TPOT", "E2E"))
        self.assertLess(first, whole)
        self.assertLess(each, whole)
        self.assertIn("TPOT, context 512", found)

    def test_memory(self):
        found = results("memory")
        self.assertEqual(found["KV used, 2 sequences"]["value"], 2 * found["KV used, 1 sequences"]["value"])
        self.assertLessEqual(found["KV used, 5 sequences"]["value"], found["KV allocated, 5 sequences"]["value"])
        self.assertGreater(found["memory, measured"]["value"], found["weights, feed-forward"]["value"])

    def test_scalability(self):
        text = run("scalability", "--repeat", "1").stdout
        self.assertIn("Best throughput: ", text)
        rows = [line.split() for line in text.splitlines() if " cached " in line]
        self.assertTrue(rows and all(float(row[-1].rstrip("%")) > 90 for row in rows), text)

    def test_breakdown_parts_are_the_whole(self):
        found = results("breakdown", "--repeat", "3")
        self.assertTrue(any(name.startswith("op, prefill") and "rows=50" in name for name in found))  # all of the prompt
        names = ("1. Tokenization (encode)", "2. Prefill (full prompt)", "3. Sampling", "4. Decode forward",
                 "5. Detokenization (decode)", "6. Scheduling and batches", "unaccounted")
        total = found["total"]["value"]
        self.assertLess(abs(sum(sum(found[name]["samples"]) for name in names) - total), 0.02 * total)
        self.assertLess(found["unaccounted"]["value"], 0.25 * total)  # a busy machine may sit in between

    def test_every_table_is_in_every_file(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {kind: pathlib.Path(folder) / kind for kind in ("output", "markdown", "html")}
            flags = [word for kind, path in paths.items() for word in (f"--{kind}", str(path))]
            text = run("all", "--repeat", "1", "--max-concurrency", "5", *flags).stdout
            markdown, html = paths["markdown"].read_text(), paths["html"].read_text()
            for title in ("Test Configuration", "Theoretical Limits", "Throughput", "Context Length Scaling", "Latency",
                          "Per-Prompt Latency", "Memory", "KV Cache Scaling", "Memory Projections (per sequence)",
                          "Scalability", "Throughput vs Concurrent Requests", "Timing Breakdown",
                          "Aggregated by Component", "Bottleneck Analysis", "Running Benchmarks"):
                self.assertIn(f"\n{title}\n", text)
                self.assertIn(f"# {title}\n", markdown)
                self.assertIn(f">{title}<", html)
            self.assertGreaterEqual(html.count("<svg"), 8)
            self.assertNotIn("nan", html)
            again = run("compare", str(paths["output"]), str(paths["output"]), "--fail-above", "5").stdout
            self.assertNotIn("WORSE", again)

    def test_compare_sees_a_slowdown(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, value in (("a", 100), ("b", 80)):
                contents = {"results": [{"name": "x", "unit": "tok/s", "samples": [value - 1, value, value + 1]}]}
                (pathlib.Path(folder) / name).write_text(json.dumps(contents))
            a, b = (str(pathlib.Path(folder) / name) for name in "ab")
            self.assertIn("slower: x by 20.0%", run("compare", a, b, "--fail-above", "5", status=1).stderr)
            self.assertIn("better", run("compare", b, a, "--fail-above", "5").stdout)

    def test_interrupt_leaves_what_there_was(self):
        process = subprocess.Popen([TINYVLLM, "bench", "all", "--repeat", "100000", "--seconds", "100000", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        contents = json.loads(out)
        self.assertFalse(contents["complete"])
        self.assertTrue(contents["results"])

    def test_wrong_words_are_refused(self):
        for words, status in ((("throughput", "--device", "tpu"), 2), (("latency", "no-such-model"), 1),
                              (("compare", "/nonexistent", "/nonexistent"), 1)):
            self.assertTrue(run(*words, status=status).stderr)


if __name__ == "__main__":
    TINYVLLM = sys.argv.pop(1)
    unittest.main()
