#!/usr/bin/env python3
"""Compares `tinyvllm tokenize` and `detokenize` with the packages `tokenizers` and `sentencepiece`.

    tokenizer_check.py BINARY FOLDER_FOR_FILES STRINGS [NAME...]

STRINGS generated strings go through every tokenizer (or those named): ids with and without special
tokens, with and without BOS, and the text of those ids and of random ones. Any difference is printed
and fails the check.
"""
import json
import random
import subprocess
import sys
from pathlib import Path

import judges
from strings import make_strings

SHOWN = 5  # differences printed per tokenizer


def run_jsonl(binary, command, model, flags, values):
    lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    done = subprocess.run([binary, command, str(model), *flags, "--jsonl"], input=lines.encode(), capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{command} {model}: {done.stderr.decode()}")
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


class Comparison:
    def __init__(self, name):
        self.name, self.compared, self.different = name, 0, 0

    def check(self, what, inputs, ours, theirs):
        assert len(ours) == len(theirs) == len(inputs), (self.name, what, len(ours), len(theirs))
        self.compared += len(inputs)
        for given, our, their in zip(inputs, ours, theirs):
            if our == their:
                continue
            self.different += 1
            if self.different <= SHOWN:
                print(f"{self.name}: {what} differs for {json.dumps(given)}\n  ours   {our}\n  theirs {their}")


def random_ids(judge, count, seed):
    rng = random.Random(seed)
    size = judge.vocab_size
    first = list(range(min(size, 300)))  # control and byte tokens, where a tokenizer has them
    pool = [rng.randrange(size) for _ in range(200)] + first
    lists = [[rng.choice(pool) if rng.random() < 0.7 else rng.randrange(size) for _ in range(rng.randrange(1, 12))]
             for _ in range(count)]
    lists += [[rng.choice(first[:3] if rng.random() < 0.2 else first) for _ in range(8)] for _ in range(count // 4)]
    # SentencePiece's byte tokens from 3 on: two that spell a character, and a control token between them
    return lists + [[197 + i, i % 3, 131 + i] for i in range(30) if size >= 300]


def compare(binary, judge, count):
    result = Comparison(judge.name)
    strings = make_strings(count, seed=7, extra=judge.lookalikes)
    encodings = {}
    for special in judge.special_modes:
        for bos in (True, False):
            if not bos and special:
                continue  # the two are independent; three of four will do
            flags = (["--special"] if special else []) + ([] if bos else ["--no-bos"])
            ours = run_jsonl(binary, "tokenize", judge.path, flags, strings)
            theirs = judge.encode(strings, special, bos)
            result.check(f"encoding {' '.join(flags)}", strings, ours, theirs)
            encodings[special, bos] = theirs
    sequences = encodings[judge.special_modes[-1], True] + random_ids(judge, count // 5, seed=8)
    for shown in judge.shown_modes:
        ours = run_jsonl(binary, "detokenize", judge.path, ["--special"] if shown else [], sequences)
        result.check(f"decoding {'with' if shown else 'without'} special tokens", sequences, ours,
                     judge.decode(sequences, shown))
    print(f"{judge.name:24} {result.compared:8} comparisons, {result.different} differences", flush=True)
    return result.different


def main():
    binary, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    sys.exit(1 if sum(compare(binary, judge, count) for judge in judges.make(folder, sys.argv[4:])) else 0)


if __name__ == "__main__":
    main()
