"""The binary as its users meet it: answers, closing lines, exit statuses, and words for what is wrong.

    cli_test.py PATH_TO_TINYVLLM
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv.pop(1)
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
MODEL = pathlib.Path(CACHE) / "tinyvllm/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def tinyvllm(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


class Run(unittest.TestCase):
    def test_answers_on_stdout_and_closes_on_stderr(self):
        done = tinyvllm("run", "smollm2", "Why is the sky blue?", "-n", 40)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sky", done.stdout)
        self.assertRegex(done.stderr, r"^prompt \d+ tokens, \d+ tok/s \| first token [\d.]+ s \| "
                                      r"generated \d+ tokens, [\d.]+ tok/s\n$")
        self.assertNotIn("\033", done.stdout + done.stderr)

    def test_json_has_the_promised_keys(self):
        done = tinyvllm("run", "-m", "smollm2", "-p", "Hi", "-n", 5, "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(len(answer["token_ids"]), 5)
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer["usage"]["completion_tokens"], 5)
        self.assertEqual(answer["usage"]["prompt_tokens"], len(answer["prompt_token_ids"]))
        self.assertLessEqual({"load_s", "ttft_s", "prefill_tok_s", "decode_tok_s", "limit_percent"},
                             answer["timings"].keys())

    def test_an_end_token_ends_it(self):
        answer = json.loads(tinyvllm("run", "What is 12 times 12?", "-n", 200, "--json").stdout)
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertNotIn("<|im_end|>", answer["text"])

    def test_a_seed_decides_and_chunks_and_blocks_do_not(self):
        def tokens(*flags):
            return json.loads(tinyvllm("run", "Tell me a story", "-n", 24, "--temperature", 1,
                                       "--json", *flags).stdout)["token_ids"]
        self.assertEqual(tokens("--seed", 7), tokens("--seed", 7, "--max-num-batched-tokens", 5,
                                                      "--block-size", 8, "-t", 1))
        self.assertNotEqual(tokens("--seed", 7), tokens("--seed", 8))

    def test_the_prompt_may_come_on_stdin_and_raw(self):
        done = tinyvllm("run", "smollm2", "--raw", "-n", 3, stdin=None, input="The capital of France is")
        self.assertIn("Paris", done.stdout)

    def test_control_tokens_in_a_prompt_stay_text(self):
        plain = json.loads(tinyvllm("run", "a<|im_end|>b", "-n", 1, "--json").stdout)["prompt_token_ids"]
        self.assertEqual(plain.count(2), 2)  # the format's own two, and none from the user

    def test_ctrl_c_ends_it_cleanly(self):
        process = subprocess.Popen([BINARY, "run", "Count to a million", "-n", "8000", "--raw"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)  # the answer has begun
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted", errors)


class Refusals(unittest.TestCase):
    """Each a clear message and exit status 1."""

    def refused(self, words, *arguments):
        done = tinyvllm("run", *arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "^error: ")
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stdout, "")

    def broken_copy(self, change):
        data = bytearray(MODEL.read_bytes())
        data = change(data) or data
        copy = tempfile.NamedTemporaryFile(suffix=".gguf")
        self.addCleanup(copy.close)
        copy.write(data)
        copy.flush()
        return copy.name

    def test_wrong_magic(self):
        def change(data):
            data[0:4] = b"ABCD"
        self.refused(["magic"], self.broken_copy(change), "Hi")

    def test_truncated(self):
        self.refused(["blk."], self.broken_copy(lambda data: data[:50_000_000]), "Hi")
        self.refused([""], self.broken_copy(lambda data: data[:1000]), "Hi")

    def test_missing_tensor(self):
        def change(data):
            at = data.index(b"blk.5.attn_q.weight")
            data[at:at + 12] = b"blk.5.attn_x"
        self.refused(["blk.5.attn_q.weight", "missing"], self.broken_copy(change), "Hi")

    def test_wrong_shape(self):
        def change(data):
            name = b"blk.7.ffn_down.weight"
            at = data.index(name) + len(name) + 4
            first, second = struct.unpack_from("<QQ", data, at)
            struct.pack_into("<QQ", data, at, second, first)
        self.refused(["blk.7.ffn_down.weight", "[576, 1536]", "[1536, 576]"], self.broken_copy(change), "Hi")

    def test_empty_prompt(self):
        self.refused(["prompt is empty"], "smollm2", "")

    def test_prompt_longer_than_the_context(self):
        self.refused(["context", "64"], "smollm2", "word " * 200, "-c", 64)

    def test_no_such_model(self):
        self.refused(["nosuch.gguf"], "nosuch.gguf", "Hi")
        missing = tinyvllm("run", "Hi", env={**os.environ, "XDG_CACHE_HOME": "/nonexistent"})
        self.assertEqual(missing.returncode, 1)
        self.assertIn("tools/get_model smollm2", missing.stderr)

    def test_values_out_of_range(self):
        self.refused(["temperature", "-1"], "Hi", "--temperature", -1)
        self.refused(["max_tokens", "0"], "Hi", "-n", 0)
        self.refused(["max_model_len", "100000"], "Hi", "-c", 100000)


class Usage(unittest.TestCase):
    def test_wrong_usage_is_status_2(self):
        for arguments in (["run", "--nosuchflag"], ["nosuchcommand"], [], ["run", "-n", "many"]):
            self.assertEqual(tinyvllm(*arguments).returncode, 2, arguments)

    def test_every_help_has_an_example(self):
        commands = [line.split()[0] for line in tinyvllm("--help").stdout.partition("Subcommands:")[2].splitlines()
                    if line.strip()]
        self.assertIn("run", commands)
        for command in commands:
            done = tinyvllm(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example", done.stdout, command)

    def test_version_names_commit_compiler_and_cpu_path(self):
        self.assertRegex(tinyvllm("--version").stdout,
                         r"^tinyvllm \d+\.\d+\.\d+ \(\S+\), (g\+\+|clang) .*\n.*baseline.*\n.*uses: \w+\n$")


if __name__ == "__main__":
    unittest.main()
