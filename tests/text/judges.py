"""The tokenizers to compare on: published ones, and small ones trained here in the shape of others.

Each judge writes what tinyvllm reads into a folder, and answers for the other implementation.
"""
import json
import lzma
import os
import shutil
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import gguf
import tokenizers

DATA = Path(__file__).parent.parent / "data" / "tokenizers"
SMOLLM2 = Path.home() / ".cache/tinyvllm/models/SmolLM2-135M-Instruct.Q4_1.gguf"


class TokenizersJudge:
    """A tokenizer.json, or a GGUF file with a tokenizer.json that says the same."""

    special_modes = (False, True)
    shown_modes = (False, True)

    def __init__(self, name, path, tokenizer):
        self.name, self.path, self.tokenizer = name, path, tokenizer
        self.vocab_size = tokenizer.get_vocab_size()
        self.lookalikes = [token.content for token in tokenizer.get_added_tokens_decoder().values()][:200]

    def encode(self, strings, special, bos):
        self.tokenizer.encode_special_tokens = not special
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(strings, add_special_tokens=bos)]

    def decode(self, sequences, shown):
        return self.tokenizer.decode_batch(sequences, skip_special_tokens=not shown)


def published(folder, name):
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    text = lzma.open(DATA / name / "tokenizer.json.xz").read()
    (path / "tokenizer.json").write_bytes(text)
    shutil.copy(DATA / name / "tokenizer_config.json", path)
    return TokenizersJudge(name, path, tokenizers.Tokenizer.from_str(text.decode()))


def smollm2(folder):
    """SmolLM2's GGUF file against a tokenizer.json made from its metadata."""
    fields = gguf.GGUFReader(SMOLLM2).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    special = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i, token in enumerate(tokens) if types[i] == 3]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                                byte_level]},
        "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": fields["tokenizer.ggml.merges"].contents()},
    }
    return TokenizersJudge("smollm2", SMOLLM2, tokenizers.Tokenizer.from_str(json.dumps(tokenizer)))


MAKERS = {
    "qwen2_5": lambda folder: published(folder, "qwen2_5"),
    "llama2": lambda folder: published(folder, "llama2"),
    "smollm2": smollm2,
}


def make(folder, names=()):
    for name in names or MAKERS:
        yield MAKERS[name](Path(folder))
