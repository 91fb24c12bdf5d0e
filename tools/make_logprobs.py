#!/usr/bin/env python3
"""Makes tests/data/smollm2_logprobs.json: how likely llama.cpp finds every token of five texts.

    LLAMA_CPP=folder/with/libllama.so/and/llama-quantize tools/make_logprobs.py

The model's 4-bit weights are written out as F32 first: llama.cpp rounds activations to 8 bits before it
multiplies them with quantized weights, and in a model this small that rounding is so loud (0.07 nats on average,
also between llama.cpp and itself when it is fed one token at a time instead of all) that nothing else could be
heard. With F32 weights it computes what the file says, and runs of it agree to 0.001 nats.

For each text its token ids and, for every token but the first, what llama.cpp gave it after those before it: its
log-probability, which token it would have chosen, by how many nats that choice was ahead of the second, and what
it gives the token when it multiplies the 4-bit weights as they are.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from llama_cpp_peer import LlamaCpp
from make_continuations import model_path

TEXTS = {
    "english": """The lighthouse keeper counted the steps every evening, although he had known for thirty years that there
were one hundred and eighty-four of them. At the top he wiped the lenses, wound the clockwork, and looked north, where
the ferries came from. Nobody had asked him to keep a diary, but he wrote one all the same: the wind, the height of the
tide, the names of the ships, and now and then a sentence about the gulls. When the lamp was made electric, he was told
that he could go home. He thanked the engineer, made him a cup of tea, and climbed the stairs once more to see whether
the new light was as steady as the old one. It was, he wrote, a little too white.
""",
    "french": """Le marché ouvre à six heures, bien avant que la ville ne se réveille. Les maraîchers déchargent leurs
caisses de tomates, de courgettes et d'abricots, puis ils boivent un café debout, les mains autour de la tasse. Vers
sept heures arrivent les premiers clients : une dame âgée qui choisit ses pommes une à une, un cuisinier pressé qui
achète tout le basilic, deux étudiants qui n'ont presque pas dormi. On parle du temps, du prix du beurre et du match
d'hier soir. À midi, il ne reste que des feuilles de salade sur le trottoir, et la place redevient silencieuse.
""",
    "german": """Im Jahr 1923 kostete ein Laib Brot in Berlin mehrere Milliarden Mark. Die Menschen trugen ihr Geld in
Körben zum Bäcker, und wer am Morgen seinen Lohn bekam, gab ihn noch vor dem Mittag aus, weil er am Abend nur noch die
Hälfte wert war. Viele Familien verloren alles, was sie in langen Jahren gespart hatten. Erst als im November eine neue
Währung eingeführt wurde, beruhigte sich die Lage. Historiker sind sich bis heute nicht einig, ob die Regierung die
Inflation verhindern konnte, oder ob sie nach dem verlorenen Krieg keine andere Wahl hatte.
""",
    "chinese": """春天来了，公园里的花都开了。早上，老人们在树下打太极拳，孩子们在草地上放风筝。我喜欢坐在湖边的长椅上看书，
有时候也会带一些面包喂鸭子。中午的时候，天气变得很暖和，很多人在草地上吃午饭。下午，我常常去附近的图书馆，
那里很安静，可以学习汉语和历史。晚上回家以后，我给妈妈打电话，告诉她今天看到了什么。
""",
    "python": '''import heapq
from collections import defaultdict


class Graph:
    """A directed graph with non-negative edge weights."""

    def __init__(self):
        self.edges = defaultdict(list)

    def add_edge(self, source, target, weight=1.0):
        if weight < 0:
            raise ValueError(f"negative weight: {weight}")
        self.edges[source].append((target, weight))

    def shortest_path(self, start, goal):
        queue = [(0.0, start, [start])]
        visited = set()
        while queue:
            distance, node, path = heapq.heappop(queue)
            if node == goal:
                return distance, path
            if node in visited:
                continue
            visited.add(node)
            for neighbor, weight in self.edges[node]:
                if neighbor not in visited:
                    heapq.heappush(queue, (distance + weight, neighbor, path + [neighbor]))
        return float("inf"), []
''',
}




def log_softmax(logits):
    top = logits.max()
    return logits - top - np.log(np.exp(logits - top).sum())


def score(peer, ids):
    """Log-probabilities of every token but the first, llama.cpp's first choices, and their margins."""
    logprobs, best, margins = [], [], []
    peer.start()
    for token, following in zip(ids, ids[1:]):
        given = log_softmax(np.array(peer.feed([token]), np.float64))
        first, second = np.argsort(-given, kind="stable")[:2]
        logprobs.append(round(given[following], 5))
        best.append(int(first))
        margins.append(round(given[first] - given[second], 4))
    return logprobs, best, margins


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else model_path()
    with tempfile.TemporaryDirectory() as folder:
        expanded = os.path.join(folder, "f32.gguf")
        quantize = os.path.join(os.environ["LLAMA_CPP"], "llama-quantize")
        subprocess.run([quantize, "--allow-requantize", path, expanded, "F32"], check=True, capture_output=True)
        exact, rounded = LlamaCpp(expanded), LlamaCpp(path)
    scores = []
    for name, text in TEXTS.items():
        ids = exact.tokenize(text)
        logprobs, best, margins = score(exact, ids)
        scores.append({"name": name, "text": text, "ids": ids, "logprobs": logprobs, "best": best, "margins": margins,
                       "as_quantized": score(rounded, ids)[0]})
        print(f"{name}: {len(ids)} tokens", file=sys.stderr)
    target = pathlib.Path(__file__).resolve().parent.parent / "tests/data/smollm2_logprobs.json"
    target.write_text("[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in scores) + "\n]\n",
                      encoding="utf-8")


if __name__ == "__main__":
    main()
