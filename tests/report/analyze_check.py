"""tinyvllm analyze on made runs and on one of its own: sums that must agree, the comparison of two runs, the trace-event file, the page.

    analyze_check.py build/tinyvllm
"""
import collections
import html.parser
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
        cls.runs = {name: root / f"{name}.jsonl" for name in ("first", "again", "slower", "busy", "short")}
        make(cls.runs["first"], seed=1, steps=96)
        make(cls.runs["again"], seed=2, steps=96)
        make(cls.runs["slower"], seed=3, steps=96, slow={"gate_up": 1.1})
        make(cls.runs["busy"], seed=5, steps=96, slow={"all": 1.2})
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

    def test_parts_of_a_log_are_read_as_one_and_left_overs_are_not(self):
        lines = self.runs["first"].read_text().splitlines(keepends=True)
        log = self.runs["first"].with_name("parts.jsonl")
        log.write_text("".join(lines[:2000]))
        start = json.loads(lines[0])
        start["timestamp"] = json.loads(lines[1999])["timestamp"]
        start["event"]["data"]["part"] = 1
        log.with_name("parts.jsonl.1").write_text(json.dumps(start) + "\n" + "".join(lines[2000:]))
        whole, parts = (analyze(path) for path in (self.runs["first"], log))
        self.assertIn("\nParts: 2\n", parts)
        self.assertEqual(parts.split("Backend selection")[1], whole.split("Backend selection")[1])
        start["timestamp"] = 1e9
        self.runs["first"].with_name("first.jsonl.1").write_text(json.dumps(start) + "\n")
        self.assertEqual(analyze(self.runs["first"]), whole)

    def test_an_op_that_became_slower_is_named_and_equal_runs_are_equal(self):
        again = analyze(self.runs["first"], "--diff", self.runs["again"])
        self.assertIn("no difference: ", again)
        slower = json.loads(analyze(self.runs["first"], "--diff", self.runs["slower"], "--json"))["difference"]
        changed = [row for row in slower["rows"] if row["verdict"] in ("slower", "faster") and "step" not in row["what"]]
        self.assertEqual([(row["phase"], row["what"], row["verdict"]) for row in changed], [("decode", "gate_up 1x576x3072", "slower")])
        self.assertLess(changed[0]["low_percent"], 10)
        self.assertGreater(changed[0]["high_percent"], 10)
        back = analyze(self.runs["slower"], "--diff", self.runs["first"])
        self.assertIn("decode gate_up 1x576x3072 is faster by ", back)
        busy = analyze(self.runs["first"], "--diff", self.runs["busy"])
        self.assertRegex(busy, r"all ops alike are slower by about (19|2\d)\.\d%.*no difference between ops")
        self.assertIn("cannot tell: ", analyze(self.runs["first"], "--diff", self.runs["short"]))

    def test_the_trace_event_file_is_one(self):
        out = self.runs["first"].with_suffix(".trace.json")
        analyze(self.runs["first"], "--perfetto", out)
        trace = json.loads(out.read_text())
        self.assertEqual(set(trace), {"displayTimeUnit", "traceEvents"})
        self.assertIn(trace["displayTimeUnit"], ("ms", "ns"))
        check_events(self, trace["traceEvents"])
        phases = collections.Counter(event["ph"] for event in trace["traceEvents"])
        records = [json.loads(line)["event"] for line in self.runs["first"].read_text().splitlines()]
        self.assertEqual(phases["X"], sum("duration_us" in record["data"] for record in records))
        self.assertEqual(phases["b"], 1)
        self.assertEqual(phases["C"], 3 * 97)

    def test_the_page_stands_alone_and_shows_names_as_text(self):
        log, page = self.runs["first"].with_name("odd.jsonl"), self.runs["first"].with_suffix(".html")
        odd = "</script><img src=x>"
        log.write_text(self.runs["short"].read_text().replace("gate_up", "<img src=x>").replace("block_0_total", f"block_{odd}_total"))
        analyze(log, "--html", page)
        text = page.read_text()
        reader = PageReader()
        reader.feed(text)
        reader.close()
        self.assertEqual(reader.open_tags, [])
        self.assertNotIn("img", reader.tags)
        self.assertEqual(reader.addresses, [])
        self.assertNotRegex(text, r"@import|url\(|fetch\(|XMLHttpRequest")
        for heading in ("Timeline", "Roofline plot", "Layers", "Requests", "GPU wait breakdown"):
            self.assertIn(heading, reader.headings)
        spans = json.loads(reader.scripts[0])
        self.assertLessEqual({"block_" + odd, "<img src=x>"}, set(spans["names"]))
        self.assertEqual(len([s for s in spans["spans"] if s[0] == 1]), 4)
        self.assertEqual(len([s for s in spans["spans"] if s[0] == 3]), 3 * (6 * 8 + 1))
        self.assertEqual(reader.tags["table"], 2 + text.count("<thead>"))


class RealRun(unittest.TestCase):
    def test_a_trace_of_our_own_fills_every_section_and_counts_nothing_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            log, trace = pathlib.Path(folder) / "run.jsonl", pathlib.Path(folder) / "run.json"
            subprocess.run([TINYVLLM, "run", "tiny", "--load-format", "dummy", "--raw", "one two three", "--ignore-eos",
                            "--max-tokens", "24", "--trace", log, "--trace-level", "kernel"], check=True, capture_output=True)
            found = json.loads(analyze(log, "--json", "--perfetto", trace))
            self.assertEqual((found["broken_lines"], found["unknown_types"], found["truncated"]), (0, {}, False))
            sections = {key: value for key, value in found.items() if isinstance(value, list) or "rows" in (value if isinstance(value, dict) else {})}
            self.assertEqual(len(sections), 15 + 7)
            for key, value in sections.items():
                self.assertTrue(value if isinstance(value, list) else value["rows"] or value["notes"], key)
            self.assertTrue(all(line["count"] for line in found["sync_operations"]))
            self.assertLessEqual(found["roofline"]["ops_ms"], found["roofline"]["wall_ms"])
            self.assertLessEqual(found["roofline"]["wall_ms"], found["where_the_time_went_that_no_op_explains"]["wall_ms"])
            for row in found["where_the_time_went_that_no_op_explains"]["rows"]:
                self.assertGreaterEqual(row["time_ms"], 0, row)
            split = {row["phase"]: row["tokens"] for row in found["prefill_decode_split"]["rows"]}
            request = found["requests"]["rows"][0]
            self.assertEqual(split, {"prefill": request["prompt_tokens"], "decode": 23})
            self.assertIn("no difference", analyze(log, "--diff", log))
            check_events(self, json.loads(trace.read_text())["traceEvents"])


class PageReader(html.parser.HTMLParser):
    """What a browser would find: tags that are open at the end, addresses to load, headings, scripts."""
    ALONE = {"meta", "br", "img", "link", "input"}

    def __init__(self):
        super().__init__()
        self.open_tags, self.addresses, self.headings, self.scripts = [], [], [], []
        self.tags = collections.Counter()

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.ALONE:
            self.open_tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open_tags and self.open_tags.pop() == tag, f"</{tag}> closes something else, at {self.getpos()}"

    def handle_data(self, data):
        if self.open_tags[-1:] == ["h2"]:
            self.headings.append(data)
        if self.open_tags[-1:] == ["script"]:
            self.scripts.append(data)


def check_events(test, events):
    """The trace-event format, as its definition has it: the members that each phase needs, and their types; complete
    events of a thread nest; asynchronous ones end; threads have names."""
    number = (int, float)
    named, used, threads, open_ids = set(), set(), collections.defaultdict(list), {}
    for event in events:
        test.assertIsInstance(event["name"], str)
        test.assertIn(event["ph"], "XMCbe")
        test.assertIsInstance(event["ts"], number)
        test.assertGreaterEqual(event["ts"], 0)
        test.assertIsInstance(event["pid"], int)
        test.assertIsInstance(event["tid"], int)
        test.assertIsInstance(event.get("args", {}), dict)
        if event["ph"] == "X":
            test.assertIsInstance(event["dur"], number)
            test.assertGreaterEqual(event["dur"], 0)
            threads[event["pid"], event["tid"]].append((round(event["ts"] * 1000), -round(event["dur"] * 1000)))
            used.add(event["tid"])
        if event["ph"] == "C":
            test.assertTrue(event["args"])
            test.assertTrue(all(isinstance(value, number) for value in event["args"].values()), event)
        if event["ph"] == "M":
            test.assertIn(event["name"], ("process_name", "thread_name", "thread_sort_index"))
            named |= {event["tid"]} if event["name"] == "thread_name" else set()
        if event["ph"] in "be":
            key = event["cat"], event["id"]
            test.assertEqual(key in open_ids, event["ph"] == "e")
            open_ids.pop(key) if event["ph"] == "e" else open_ids.update({key: event})
    test.assertEqual(open_ids, {})
    test.assertLessEqual(used, named)
    for thread, slices in threads.items():
        ends = []
        for begin, negative in sorted(slices):
            while ends and ends[-1] <= begin:
                ends.pop()
            test.assertTrue(not ends or begin - negative <= ends[-1], (thread, begin, negative))
            ends.append(begin - negative)


if __name__ == "__main__":
    unittest.main()
