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

# Prompts after which llama.cpp is sure of itself. Both implementations round activations to 8 bits, and
# in a model this small that alone moves log-probabilities by 0.03 nats on average and 0.3 at times, also
# between two runs of llama.cpp with different attention kernels.
PROMPTS = [
    "The cat sat on the mat. The dog sat on the rug. The cat sat on the mat. The dog sat",
    "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n",
    "Je suis, tu es, il est, nous",
    "un, deux, trois, quatre, cinq,",
    "你好，你好，你好，",
    "星期一，星期二，星期三，",
    "int a = 0;\nint b = 1;\nint c = 2;\nint d = 3;\nint e =",
    "1, 1, 2, 3, 5, 8, 13, 21,",
    "2, 4, 6, 8, 10, 12,",
    "100, 99, 98, 97, 96,",
]
NEW_TOKENS = 32


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
