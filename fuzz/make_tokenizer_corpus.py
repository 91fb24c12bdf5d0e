#!/usr/bin/env python3
"""Writes the seeds of the tokenizer fuzz targets into fuzz/corpus/: small files of every kind that is
read, one feature or a few each, so that the fuzzer starts inside the parsers and not at their doors.

    .venv/bin/python fuzz/make_tokenizer_corpus.py
"""
import base64
import io
import json
import tempfile
from pathlib import Path

import gguf
import sentencepiece

CORPUS = Path(__file__).parent / "corpus"
SEPARATOR = b"\x1e" * 4
TEXT = "Hi <s>there</s>  a b ab ▁ab\n12 345 é e\u0301 漢字 ﬁ ① <|x|> ABC".encode()


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


# tokenizer.json

def bpe(byte_level=True, **options):
    letters = ["a", "b", "c", "h", "e", "Ġ", "Ċ", "1", "2", "▁", "é", "<0x41>", "<0xE6>", "<unk>", "<s>", "</s>"]
    vocab = {token: i for i, token in enumerate(letters + ["ab", "Ġa", "▁a", "▁ab", "he"])}
    return {"type": "BPE", "vocab": vocab, "merges": ["a b", "Ġ a", ["▁", "a"], ["▁", "ab"], "h e"], **options}


def unigram(**options):
    vocab = [["<unk>", 0.0], ["<s>", 0.0], ["▁", -2.5], ["a", -3.25], ["b", -3.5], ["▁a", -2.75], ["ab", -4.0], ["<0x41>", -9.1]]
    return {"type": "Unigram", "unk_id": 0, "vocab": vocab, **options}


def added(content, **flags):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True} | flags


SPECIAL = [added("<s>"), added("</s>", rstrip=True), added("<|x|>", special=False, lstrip=True, rstrip=True),
           added("ab", special=False, normalized=True, single_word=True), added("new", normalized=True)]


def sequence(kind, *items):
    return {"type": "Sequence", kind: list(items)}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def template(*pieces):
    single = [{"Sequence": {"id": "A", "type_id": 0}} if piece == "$A" else {"SpecialToken": {"id": piece, "type_id": 0}}
              for piece in pieces]
    return {"type": "TemplateProcessing", "single": single, "pair": [],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [14], "tokens": ["<s>"]},
                               "</s>": {"id": "</s>", "ids": [15], "tokens": ["</s>"]}}}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ODD = r"[\p{Lu}&&[^\p{Han}\d]]++|(?>a|b)*?|\p{^L}{2}?|[^\W_[x-z]-]{,3}+|\b\B|\h\R|(?<=a)b(?<!c)|\x41\x{e9}\u0041\t|^.$|[\]\\-]|\A\Z\z|(?m-i:.)"


def tokenizer(**parts):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": SPECIAL, "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": bpe()} | parts


def small_charsmap():
    """A few rules of characters, compiled by SentencePiece itself."""
    from sentencepiece import sentencepiece_model_pb2 as format
    proto = format.ModelProto()
    proto.ParseFromString(sentencepiece_model(rules="41\t61\n42 43\t62\ne9\t65\nfb01\t66 69\n", vocab_size=40))
    return proto.normalizer_spec.precompiled_charsmap


def json_seeds():
    norm = sequence("normalizers", {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"},
                    {"type": "StripAccents"}, {"type": "Nmt"}, {"type": "Strip", "strip_left": True, "strip_right": True},
                    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
                    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Prepend", "prepend": "▁"})
    spm_decoder = sequence("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                           {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1})
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    return {
        "gpt2": tokenizer(pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL, post_processor=BYTE_LEVEL),
        "llama3": tokenizer(pre_tokenizer=sequence("pretokenizers", split(CL100K), BYTE_LEVEL | {"use_regex": False}),
                            decoder=BYTE_LEVEL, model=bpe(ignore_merges=True),
                            post_processor=sequence("processors", BYTE_LEVEL, template("<s>", "$A", "</s>"))),
        "llama2": tokenizer(normalizer=norm, decoder=spm_decoder, post_processor=template("<s>", "$A"),
                            model=bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True)),
        "odd-pattern": tokenizer(pre_tokenizer=sequence("pretokenizers", split(ODD, "Contiguous"), split("a", "Removed", True))),
        "behaviors": tokenizer(pre_tokenizer=sequence(
            "pretokenizers", split("a", "MergedWithPrevious", kind="String"), split("b", "MergedWithNext", True, "String"),
            {"type": "Digits", "individual_digits": False}, {"type": "Punctuation"}, {"type": "Whitespace"},
            {"type": "FixedLength", "length": 3}, {"type": "CharDelimiterSplit", "delimiter": "-"}, BYTE_LEVEL,
            {"type": "Digits", "individual_digits": True})),
        "bert-splits": tokenizer(pre_tokenizer=sequence("pretokenizers", {"type": "BertPreTokenizer"}, {"type": "WhitespaceSplit"},
                                                        {"type": "Punctuation", "behavior": "Contiguous"}),
                                 decoder={"type": "BPEDecoder", "suffix": "</w>"},
                                 model=bpe(end_of_word_suffix="</w>", continuing_subword_prefix="##", unk_token="<unk>")),
        "roberta": tokenizer(post_processor={"type": "RobertaProcessing", "sep": ["</s>", 15], "cls": ["<s>", 14],
                                             "trim_offsets": True, "add_prefix_space": True},
                             decoder={"type": "Replace", "pattern": {"Regex": "a+"}, "content": "x"}),
        "t5": tokenizer(normalizer={"type": "Precompiled",
                                    "precompiled_charsmap": base64.b64encode(small_charsmap()).decode()},
                        pre_tokenizer=metaspace, decoder=metaspace, model=unigram(byte_fallback=True)),
        "xlm": tokenizer(pre_tokenizer=metaspace | {"prepend_scheme": "always"}, model=unigram(),
                         normalizer={"type": "ByteLevel"}, decoder=metaspace | {"prepend_scheme": "never"}),
        "words": tokenizer(model={"type": "WordLevel", "vocab": {"[UNK]": 0, "Hi": 1, "a": 2}, "unk_token": "[UNK]"},
                           pre_tokenizer={"type": "Whitespace"}),
        "old": {"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["#version: 0.2", "a b"], "dropout": 0.0}},
        "old-unigram": {"model": {"unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5], ["ab", -2.0]]}},
    }


CONFIG = json.dumps({"eos_token": "</s>", "bos_token": {"content": "<s>"}, "add_bos_token": True, "add_eos_token": False,
                     "tokenizer_class": "LlamaTokenizer", "model_max_length": 10 ** 30,
                     "added_tokens_decoder": {"14": added("<s>"), "15": added("</s>", special=False)}}).encode()


# tokenizer.model

def sentencepiece_model(rules=None, **options):
    model = io.BytesIO()
    lines = ["ab abc bca cab <s> hello there", "the cat sat on the mat", "éa bé 12 345", "abc abc ab a b c"] * 4
    defaults = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2, "normalization_rule_name": "identity"}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
        if rules:
            table.write(rules)
            table.flush()
            options["normalization_rule_tsv"] = table.name
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **(defaults | options))
    return model.getvalue()


def model_seeds():
    rules = "41\t61\n42 43\t62\ne9\t65\nfb01\t66 69\n3000\t20\n"
    return {
        "unigram": sentencepiece_model(),
        "unigram-rules": sentencepiece_model(rules=rules, user_defined_symbols=["<x>", "cat"]),
        "unigram-suffix": sentencepiece_model(treat_whitespace_as_suffix=True, unk_surface="?"),
        "bpe": sentencepiece_model(model_type="bpe", remove_extra_whitespaces=False, add_dummy_prefix=False),
        "bpe-bytes": sentencepiece_model(model_type="bpe", byte_fallback=True, vocab_size=320, user_defined_symbols=["▁▁", "<x>"]),
        "bpe-rules": sentencepiece_model(model_type="bpe", rules=rules),
    }


def model_config(model):
    """Tokens that were added after training follow the model's own; some of its own become control tokens."""
    size = sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
    tokens = {"4": added("a", special=True), str(size): added("<|x|>"), str(size + 1): added("ABC", special=False)}
    return json.dumps({"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>", "added_tokens_decoder": tokens}).encode()


# A vocabulary in GGUF

def gguf_file(model, tokens, types, **extra):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        writer = gguf.GGUFWriter(str(path), "llama")
        writer.add_tokenizer_model(model)
        writer.add_token_list(tokens)
        if types:
            writer.add_token_types(types)
        for key, value in extra.items():
            getattr(writer, f"add_{key}")(value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def gguf_seeds():
    tokens = list(bpe()["vocab"])
    types = [3 if token in ("<s>", "</s>") else 4 if token == "he" else 1 for token in tokens]
    merges = ["a b", "Ġ a", "▁ a", "▁ ab", "h e"]
    seeds = {}
    for pre in ["default", "gpt-2", "llama-bpe", "qwen2", "smollm", "deepseek-llm", "deepseek-v3", "tekken", "falcon", "gpt-4o",
                "kimi-k2", "superbpe", "tiny_aya", "bailingmoe", "klingon"]:
        seeds[f"gpt2-{pre}"] = gguf_file("gpt2", tokens, types, tokenizer_pre=pre, token_merges=merges, bos_token_id=14,
                                         eos_token_id=15, eot_token_id=15, add_bos_token=pre != "gpt-2", add_eos_token=True)
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + ["▁", "a", "b", "ab", "▁ab", "<x>"]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 5 + [4]
    scores = [-float(i) for i in range(len(pieces))]
    seeds["llama"] = gguf_file("llama", pieces, kinds, token_scores=scores, bos_token_id=1, eos_token_id=2, add_space_prefix=True)
    seeds["llama-untyped"] = gguf_file("llama", pieces, None, token_scores=scores, bos_token_id=1, eos_token_id=2)
    seeds["t5"] = gguf_file("t5", pieces, kinds, token_scores=scores, precompiled_charsmap=small_charsmap(),
                            remove_extra_whitespaces=True, eos_token_id=2)
    return seeds


def main():
    for name, parts in json_seeds().items():
        data = json.dumps(parts, ensure_ascii=False).encode()
        write("tokenizer_json", name, data + SEPARATOR + TEXT + SEPARATOR + CONFIG + SEPARATOR + b'{"eos_token": "</s>"}')
    for name, data in model_seeds().items():
        write("tokenizer_model", name, data + SEPARATOR + TEXT + SEPARATOR + model_config(data))
    for name, data in gguf_seeds().items():
        write("tokenizer_gguf", name, data)
    for choice in range(7):
        for flags in range(4):
            stops = b"\x02" + b"\x02ab" + b"\x03\xe6\xbc\xa2"
            write("detokenizer", f"{choice}-{flags}", bytes([choice << 2 | flags]) + stops +
                  "Hi a漢 ab é 👩‍💻".encode() + b"\xe6\xbc\xff\xf8\xf9\xfaab\xfb\xfc\xfd\x80")


main()
