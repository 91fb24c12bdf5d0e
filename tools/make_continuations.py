#!/usr/bin/env python3
"""Makes tests/data/smollm2_continuations.json: what llama.cpp answers, greedily, to ten prompts.

    LLAMA_CPP=folder/with/libllama.so tools/make_continuations.py

For each prompt: its token ids, the ids that follow, and for each of those how many nats llama.cpp's
first choice was ahead of its second. The test feeds the same tokens and wants the same choice wherever
the margin is more than rounding can explain.
"""
import heapq
import json
import os
import pathlib

from llama_cpp_peer import LlamaCpp

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea, there lived an old fisherman who",
    "In autumn the leaves of many trees change their colour, because",
    "Il était une fois, dans une petite ville de France, une jeune fille qui",
    "Paris est la capitale de la France. Lyon est",
    "中国的首都是北京。北京是一个",
    "def is_even(number):\n    return number % 2 == 0\n\ndef is_odd(number):\n",
    "#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 10; i++) {\n",
    "1, 1, 2, 3, 5, 8, 13, 21,",
    "<|im_start|>user\nWhat is 12 times 12?<|im_end|>\n<|im_start|>assistant\n",
]
NEW_TOKENS = 48


def model_path():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tinyvllm/models/SmolLM2-135M-Instruct.Q4_1.gguf")


def continuation(peer, prompt):
    prompt_ids = peer.tokenize(prompt)
    ids, margins = [], []
    peer.start()
    logits = peer.feed(prompt_ids)
    while True:
        first, second = heapq.nlargest(2, range(len(logits)), key=logits.__getitem__)
        ids.append(first)
        margins.append(round(logits[first] - logits[second], 4))
        if len(ids) == NEW_TOKENS or peer.is_end(first):
            return {"prompt": prompt, "prompt_ids": prompt_ids, "ids": ids, "margins": margins}
        logits = peer.feed([first])


def main():
    peer = LlamaCpp(model_path())
    answers = [continuation(peer, prompt) for prompt in PROMPTS]
    target = pathlib.Path(__file__).resolve().parent.parent / "tests/data/smollm2_continuations.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)
    target.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
