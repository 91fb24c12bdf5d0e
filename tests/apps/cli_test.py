"""The binary as its users meet it: answers, closing lines, exit statuses, and words for what is wrong.

    cli_test.py PATH_TO_TINYVLLM
"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import tokenizers

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
                                      r"generated \d+ tokens, [\d.]+ tok/s \| "
                                      r"[\d.]+ GB/s, \d+% of this machine's [\d.]+\n$")
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
        self.assertGreater(answer["timings"]["limit_percent"], 0)
        self.assertLessEqual(answer["timings"]["limit_percent"], 100)
        self.assertNotIn("logprobs", answer)

    def test_json_has_logprobs_when_asked(self):
        answer = json.loads(tinyvllm("run", "Hi", "-n", 4, "--logprobs", 3, "--json").stdout)
        self.assertEqual([entry["token_id"] for entry in answer["logprobs"]], answer["token_ids"])
        for entry in answer["logprobs"]:
            self.assertEqual(len(entry["top"]), 3)
            self.assertEqual(entry["top"][0], {"token_id": entry["token_id"], "logprob": entry["logprob"]})

    def test_json_has_the_prompts_logprobs_when_asked(self):
        answer = json.loads(tinyvllm("run", "The capital of France is", "--raw", "-n", 1, "--prompt-logprobs", 1,
                                     "--json").stdout)
        self.assertIsNone(answer["prompt_logprobs"][0])
        self.assertEqual([entry["token_id"] for entry in answer["prompt_logprobs"][1:]],
                         answer["prompt_token_ids"][1:])
        for entry in answer["prompt_logprobs"][1:]:
            self.assertLessEqual(entry["logprob"], entry["top"][0]["logprob"])
            self.assertLess(entry["logprob"], 0)

    def test_several_answers(self):
        flags = ["Name a colour", "-n", 8, "--n", 3, "--seed", 4]
        done = tinyvllm("run", *flags)
        parts = re.split(r"\[\d of 3\]\n", done.stdout)
        self.assertEqual(len(parts), 4, done.stdout)
        answer = json.loads(tinyvllm("run", *flags, "--json").stdout)
        self.assertEqual([part.strip() for part in parts[1:]], [one["text"].strip() for one in answer["answers"]])
        self.assertEqual(answer["text"], answer["answers"][0]["text"])
        self.assertEqual(answer["usage"]["completion_tokens"],
                         sum(len(one["token_ids"]) for one in answer["answers"]))
        self.assertGreater(len({one["text"] for one in answer["answers"]}), 1)

    def test_sampling_flags_reach_the_sampler(self):
        def answer(*flags):
            return json.loads(tinyvllm("run", "Why is the sky blue?", "-n", 12, "--json", *flags).stdout)
        plain = answer()
        first = plain["token_ids"][0]
        self.assertNotEqual(answer("--logit-bias", f"{first}:-100")["token_ids"][0], first)
        self.assertLessEqual(set(answer("--allowed-token-ids", "504,2988", "-n", 3)["token_ids"]), {504, 2988})
        word = plain["text"].split()[3]
        before = plain["text"].partition(word)[0]
        cut = answer("--stop", "nowhere in it", "--stop", word)
        self.assertEqual((cut["text"], cut["finish_reason"]), (before, "stop"))
        self.assertEqual(answer("--stop", word, "--include-stop-str-in-output")["text"], before + word)
        self.assertEqual(answer("--temperature", 3, "--top-k", 1)["token_ids"], plain["token_ids"])
        self.assertNotEqual(answer("--top-k", 1000, "--seed", 5)["token_ids"], plain["token_ids"])

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

    def test_a_models_own_defaults_hold_until_a_flag_says_otherwise(self):
        golden = pathlib.Path(__file__).parent.parent / "data/golden/llama"
        with tempfile.TemporaryDirectory() as folder:
            for name in ("config.json", "model.safetensors"):
                shutil.copy(golden / name, folder)
            words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(65)}, unk_token="w0"))
            words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
            words.save(f"{folder}/tokenizer.json")

            def answers(*flags):
                return {str(json.loads(tinyvllm("run", folder, "w1 w2", "--raw", "-n", 8, "--ignore-eos", "--seed", seed,
                                                "--json", *flags).stdout)["token_ids"]) for seed in (1, 2)}
            self.assertEqual(len(answers()), 1)  # without an opinion: greedy
            pathlib.Path(folder, "generation_config.json").write_text('{"temperature": 2.0, "top_k": 50}')
            self.assertEqual(len(answers()), 2)
            self.assertEqual(len(answers("--temperature", 0)), 1)
            self.assertEqual(len(answers("--top-k", 1)), 1)

    def test_the_prompt_may_come_on_stdin_and_raw(self):
        done = tinyvllm("run", "smollm2", "--raw", "-n", 3, stdin=None, input="The capital of France is")
        self.assertIn("Paris", done.stdout)

        def prompt(*arguments, **options):
            return json.loads(tinyvllm("run", *arguments, "-n", 1, "--json", **options).stdout)["prompt_token_ids"]
        self.assertEqual(prompt("smollm2", "-", stdin=None, input="Hi\n"), prompt("Hi"))

    def test_control_tokens_in_a_prompt_stay_text(self):
        plain = json.loads(tinyvllm("run", "a<|im_end|>b", "-n", 1, "--json").stdout)["prompt_token_ids"]
        self.assertEqual(plain.count(2), 2)  # the format's own two, and none from the user

    def test_the_format_is_the_models_or_a_files(self):
        def prompt(*flags):
            done = tinyvllm("run", "smollm2", "Hi", "-n", 1, "--json", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)["prompt_token_ids"]

        def ids(text):
            return json.loads(tinyvllm("tokenize", "smollm2", text, "--special", "--json").stdout)["ids"]
        talk = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        self.assertEqual(prompt("--system", "Rhyme."), ids("<|im_start|>system\nRhyme.<|im_end|>\n" + talk))
        self.assertIn("named SmolLM", tinyvllm("detokenize", "smollm2", *prompt(), "--special").stdout)
        self.assertEqual(prompt("--raw"), ids("Hi"))
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ eos_token }}{{ messages[-1].content }}")
            file.flush()
            self.assertEqual(prompt("--chat-template", file.name), ids("<|im_end|>Hi"))
        self.assertEqual(tinyvllm("run", "Hi", "--raw", "--system", "x").returncode, 2)

    def test_ctrl_c_ends_it_cleanly(self):
        process = subprocess.Popen([BINARY, "run", "Count to a million", "-n", "8000", "--raw"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)  # the answer has begun
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted", errors)

    def test_limits_are_measured_once_and_a_broken_cache_is_no_error(self):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            done = tinyvllm("run", MODEL, "Hi", "-n", 4, env=environment)
            self.assertIn("of this machine's", done.stderr)
            (kept,) = pathlib.Path(cache).glob("tinyvllm/limits/*.json")
            limits = json.loads(tinyvllm("bench", "limits", "--json", env=environment).stdout)["limits"]
            self.assertTrue(limits["cached"])
            self.assertEqual(limits["read_gb_s"], json.loads(kept.read_text())["read_bytes_per_s"] / 1e9)
            for unit in ("read_gb_s", "fma_gflop_s", "int8_gop_s"):
                self.assertGreater(limits[unit], 0.5)
            kept.write_text("{")
            self.assertFalse(json.loads(tinyvllm("bench", "limits", "--json", env=environment).stdout)["limits"]["cached"])


class Template(unittest.TestCase):
    TALK = json.dumps({"messages": [{"role": "user", "content": "Hi\n"}], "name": "x"})

    def render(self, source, stdin=TALK):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(source)
            file.flush()
            return tinyvllm("template", file.name, stdin=None, input=stdin)

    def test_prints_the_text_and_not_a_byte_more(self):
        self.assertEqual(self.render("{{ messages[0].content }}{{ name }}").stdout, "Hi\nx")
        self.assertEqual(self.render("").stdout, "")
        done = tinyvllm("template", "smollm2", stdin=None, input=self.TALK)
        self.assertTrue(done.stdout.endswith("<|im_start|>user\nHi\n<|im_end|>\n"), done.stdout)
        self.assertEqual(done.stderr, "")

    def test_text_needs_no_tokenizer(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "chat_template.jinja").write_text("{{ bos_token }}{{ messages[0].content }}")
            pathlib.Path(folder, "tokenizer_config.json").write_text('{"bos_token": "<s>"}')
            done = tinyvllm("template", folder, stdin=None, input=self.TALK)
            self.assertEqual((done.stdout, done.stderr), ("<s>Hi\n", ""))

    def test_says_what_is_wrong_and_where(self):
        for source, words in [("a\n  {% if %}", "line 2, column 9"), ("{{ raise_exception('no tools') }}", "no tools"),
                              ("\n{{ messages[0].text.x }}", "line 2, column 4, at 'messages[0].text.x'"), ("{{ who() }}", "who")]:
            done = self.render(source)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(words, done.stderr)
        self.assertEqual(self.render("", "[]").returncode, 1)
        self.assertIn("nothere.jinja", tinyvllm("template", "nothere.jinja").stderr)


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
        self.refused(["top_p", "1.5", "at most 1"], "Hi", "--top-p", 1.5)
        self.refused(["stop_token_ids", "99999", "49151"], "Hi", "--stop-token-ids", "1,99999")
        self.refused(["logprobs", "21", "20"], "Hi", "--logprobs", 21)
        self.refused(["max_model_len", "100000"], "Hi", "-c", 100000)


class Usage(unittest.TestCase):
    def test_wrong_usage_is_status_2(self):
        for arguments in (["run", "--nosuchflag"], ["nosuchcommand"], [], ["run", "-n", "many"],
                          ["run", "--seed", "-1"], ["run", "--logit-bias", "5"]):
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
