"""run --prompts IN.jsonl --output OUT.jsonl: every line answered once, whatever happens to the run or to a line.

    batch_test.py PATH_TO_TINYVLLM
"""
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = sys.argv.pop(1)


class Batch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.input = self.folder / "in.jsonl"
        self.output = self.folder / "out.jsonl"

    def write_input(self, *lines):
        self.input.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))

    def command(self, *flags):
        return [BINARY, "run", "smollm2", "--prompts", str(self.input), "--output", str(self.output),
                *map(str, flags)]

    def run_batch(self, *flags, **options):
        return subprocess.run(self.command(*flags), capture_output=True, text=True, timeout=120, **options)

    def lines(self):
        """Output lines by index; each index must be there once."""
        found = {}
        for line in self.output.read_text().splitlines():
            line = json.loads(line)
            self.assertNotIn(line["index"], found)
            found[line["index"]] = line
        return found

    def test_a_line_is_answered_as_run_answers_it(self):
        self.write_input({"prompt": "Why is the sky blue?"},
                         {"messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 3},
                         "",
                         {"prompt": "Name a colour", "temperature": 1.0, "seed": 7, "n": 2, "logprobs": 1,
                          "stop": ["\n"], "logit_bias": {"504": -100}})
        done = self.run_batch("-n", 8)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^answered 3 prompts, \d+ tokens, [\d.]+ tok/s\n$")
        lines = self.lines()
        self.assertEqual(set(lines), {0, 1, 3})

        def alone(*flags):
            return json.loads(subprocess.run([BINARY, "run", *map(str, flags), "--json"], capture_output=True,
                                             text=True, stdin=subprocess.DEVNULL).stdout)
        one = alone("Why is the sky blue?", "-n", 8)
        self.assertLessEqual(set(one), set(lines[0]))
        for key in ("text", "token_ids", "prompt_token_ids", "finish_reason"):
            self.assertEqual(lines[0][key], one[key])
        self.assertEqual(lines[1]["token_ids"], one["token_ids"][:3])
        two = alone("Name a colour", "-n", 8, "--temperature", 1, "--seed", 7, "--n", 2, "--logprobs", 1,
                    "--stop", "\n", "--logit-bias", "504:-100")
        self.assertEqual(lines[3]["answers"], two["answers"])

    def test_a_bad_line_fails_alone(self):
        self.write_input({"prompt": "Hi"}, "{", "[]", {"prompt": "Hi", "temperature": -1}, {"prompt": 3},
                         {"prompt": "Hi", "temprature": 1}, {}, {"prompt": "a", "messages": []},
                         {"prompt": "word " * 9000}, {"prompt": "Hi", "stop_token_ids": [1, 99999]},
                         {"messages": 7}, {"prompt": ""}, {"prompt": "Ho"})
        done = self.run_batch("-n", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("answered 2 prompts", done.stderr)
        self.assertIn("11 failed", done.stderr)
        lines = self.lines()
        self.assertEqual(set(lines), set(range(13)))
        self.assertEqual({index for index, line in lines.items() if "error" not in line}, {0, 12})
        for index, words in {1: "JSON", 2: "object", 3: "temperature", 4: "prompt", 5: "temprature", 6: "prompt",
                             8: "tokens", 9: "99999", 10: "messages", 11: "empty"}.items():
            self.assertIn(words, lines[index]["error"])

    def test_an_interrupted_run_goes_on(self):
        self.write_input(*({"prompt": f"Count from {i}", "max_tokens": 8 if i % 4 else 200, "ignore_eos": True}
                           for i in range(24)))
        process = subprocess.Popen(self.command(), stderr=subprocess.PIPE, text=True)
        while not self.output.exists() or self.output.stat().st_size == 0:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted", errors)
        first = self.output.read_text()
        kept = self.lines()
        self.assertTrue(0 < len(kept) < 24, len(kept))

        with self.output.open("a") as file:  # as a power cut leaves it
            file.write('{"index":23,"input":"00')
        self.write_input(*(json.dumps({"prompt": f"Count from {i}", "max_tokens": 8 if i % 4 else 200,
                                       "ignore_eos": True}) for i in range(24)))
        done = self.run_batch("-n", 512)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.output.read_text().startswith(first))
        self.assertEqual(set(self.lines()), set(range(24)))
        self.assertIn(f"{len(kept)} were there", done.stderr)
        again = self.run_batch()
        self.assertIn("answered 0 prompts", again.stderr)

    def test_another_inputs_output_is_left_alone(self):
        self.write_input({"prompt": "Hi", "max_tokens": 1}, {"prompt": "Ho", "max_tokens": 1})
        self.assertEqual(self.run_batch().returncode, 0)
        before = self.output.read_text()
        for lines, flags in ([[{"prompt": "Hi", "max_tokens": 1}, {"prompt": "Hey"}], []],
                             [[{"prompt": "Hi", "max_tokens": 1}], []],
                             [[{"prompt": "Hi", "max_tokens": 1}, {"prompt": "Ho", "max_tokens": 1}], ["--top-k", 5]]):
            self.write_input(*lines)
            done = self.run_batch(*flags)
            self.assertEqual(done.returncode, 1, (lines, done.stderr))
            self.assertIn("another input" if len(lines) == 2 else "other length", done.stderr)
            self.assertEqual(self.output.read_text(), before)

    def test_files_that_are_not_ours_are_refused(self):
        self.write_input({"prompt": "Hi"})
        for content in ("my notes", "my notes\n", '{"index":0}\n', '{"index":0,"input":"xyz"}\n'):
            self.output.write_text(content)
            done = self.run_batch()
            self.assertEqual(done.returncode, 1, content)
            self.assertIn("line 1", done.stderr)
            self.assertEqual(self.output.read_text(), content)
        self.output.unlink()
        os.link(self.input, self.output)
        self.assertIn("input itself", self.run_batch().stderr)
        self.output.unlink()
        self.input.unlink()
        self.assertIn("in.jsonl", self.run_batch().stderr)

    def test_a_full_disk_leaves_whole_lines(self):
        self.write_input(*({"prompt": f"Say {i}", "max_tokens": 4} for i in range(8)))
        done = self.run_batch(preexec_fn=lambda: (resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500)),
                                                  signal.signal(signal.SIGXFSZ, signal.SIG_IGN)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("out.jsonl", done.stderr)
        self.assertTrue(0 < len(self.lines()) < 8)
        self.assertEqual(self.run_batch().returncode, 0)
        self.assertEqual(set(self.lines()), set(range(8)))


if __name__ == "__main__":
    unittest.main()
