"""`tinyvllm tokenize` and `detokenize` as their users meet them; tokenizer_check.py judges the ids.

    tokenize_test.py PATH_TO_TINYVLLM
"""
import json
import lzma
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

import gguf

BINARY = sys.argv.pop(1)
LLAMA2 = pathlib.Path(__file__).parent.parent / "data/tokenizers/llama2"
BOS = 1


def tinyvllm(*arguments, given=b""):
    return subprocess.run([BINARY, *map(str, arguments)], input=given, capture_output=True, timeout=60, check=False)


class Tokenize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = pathlib.Path(cls.folder.name)  # nothing but a tokenizer
        (cls.model / "tokenizer.json").write_bytes(lzma.open(LLAMA2 / "tokenizer.json.xz").read())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ids(self, *arguments, given=b""):
        done = tinyvllm("tokenize", self.model, *arguments, given=given)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(id) for id in done.stdout.split()]

    def test_there_and_back(self):
        text = "Hello,  world\n漢字 👩‍💻 "
        ids = self.ids(text)
        self.assertEqual(ids[0], BOS)
        self.assertEqual(ids[1:], self.ids("-", "--no-bos", given=text.encode()))
        for arguments, given in (ids, b""), (["-"], " ".join(map(str, ids)).encode()), (["-"], json.dumps(ids).encode()):
            done = tinyvllm("detokenize", self.model, *arguments, given=given)
            self.assertEqual(done.stdout.decode(), text + "\n")

    def test_json_has_ids_and_pieces(self):
        answer = json.loads(tinyvllm("tokenize", self.model, "Hello world", "--json").stdout)
        self.assertEqual(answer["ids"], self.ids("Hello world"))
        self.assertEqual(answer["pieces"], ["<s>", " Hello", " world"])

    def test_a_line_in_is_a_line_out(self):
        texts = ["Hello", "", "two\nlines", "漢"]
        lines = "".join(json.dumps(text) + "\n" for text in texts).encode()
        done = tinyvllm("tokenize", self.model, "--jsonl", given=lines)
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [self.ids(text) for text in texts])
        done = tinyvllm("tokenize", self.model, "--jsonl", given=b'"a"\n{}\n')
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"line 2: expected a JSON string", done.stderr)

    def test_bad_bytes_are_replacement_characters(self):
        bad, good = b"caf\xe9 \xff\xfe ok \xe6\xbc", "caf\ufffd \ufffd\ufffd ok \ufffd".encode()
        self.assertEqual(self.ids("-", given=bad), self.ids("-", given=good))
        lines = b'"' + bad + b'"\n"' + good + b'"\n'
        first, second = tinyvllm("tokenize", self.model, "--jsonl", given=lines).stdout.splitlines()
        self.assertEqual(first, second)

    def test_control_tokens_only_on_demand(self):
        self.assertNotIn(2, self.ids("a</s>b"))
        self.assertIn(2, self.ids("a</s>b", "--special"))
        self.assertEqual(tinyvllm("detokenize", self.model, 1, 2).stdout, b"\n")
        self.assertEqual(tinyvllm("detokenize", self.model, 1, 2, "--special").stdout, b"<s></s>\n")

    def test_a_terminal_gets_coloured_pieces(self):
        ours, theirs = pty.openpty()
        with subprocess.Popen([BINARY, "tokenize", str(self.model), "Hello"], stdin=subprocess.DEVNULL, stdout=theirs) as running:
            running.wait(60)
        self.assertIn(b"\x1b[38;5;16;48;5;", os.read(ours, 4096))
        self.assertNotIn(b"\x1b", tinyvllm("tokenize", self.model, "Hello").stdout)

    def test_says_what_is_wrong(self):
        file = self.model / "x.gguf"
        writer = gguf.GGUFWriter(str(file), "llama")
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("klingon")
        writer.add_token_list(["a", "b"])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        done = tinyvllm("tokenize", file, "ab")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr, rb"'klingon'.*known are: .*deepseek-llm.*qwen2")
        for arguments, words in (["detokenize", self.model, "x"], b"expected token ids, found 'x'"), \
                (["tokenize", self.model / "nothing", "x"], b"neither a file, a folder"):
            done = tinyvllm(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        self.assertEqual(tinyvllm("tokenize").returncode, 2)


if __name__ == "__main__":
    unittest.main()
