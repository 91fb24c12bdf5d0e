"""The tokenizers to compare on: published ones, and small ones trained here in the shape of others.

Each judge leaves what tinyvllm reads in a folder, and answers for the other implementation.
"""
import io
import json
import lzma
import os
import shutil
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import gguf
import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from strings import CODE, PROSE, make_strings

DATA = Path(__file__).parent.parent / "data" / "tokenizers"
SMOLLM2 = Path.home() / ".cache/tinyvllm/models/SmolLM2-135M-Instruct.Q4_1.gguf"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = GPT4O.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_V3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
               r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_LETTERS = (
    r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}"
    r"\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}"
    r"\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}"
    r"\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}"
    r"\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}"
    r"\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}"
    r"\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}"
    r"\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}"
    r"\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}"
    r"\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}"
    r"\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}"
    r"\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}"
    r"\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+")
DEEPSEEK_PUNCTUATION = r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"
DEEPSEEK_CJK = r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+"
CJK_AND_KANA = r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+"
BLOOM = r" ?[^(\s|[.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C}])]+"


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


class SentencePieceJudge:
    """A tokenizer.model, or a GGUF file made from one. It never parses special tokens and never shows them."""

    special_modes = (False,)
    shown_modes = (False,)

    def __init__(self, name, path, processor):
        self.name, self.path, self.processor = name, path, processor
        self.vocab_size = processor.vocab_size()
        self.lookalikes = [processor.id_to_piece(i) for i in range(min(12, self.vocab_size))]

    def encode(self, strings, special, bos):
        return self.processor.encode(strings)

    def decode(self, sequences, shown):
        return self.processor.decode(sequences)


# Published.

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
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level()])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([token for i, token in enumerate(tokens) if types[i] == 3])
    return TokenizersJudge("smollm2", SMOLLM2, tokenizer)


def smollm2_chat_template():
    return gguf.GGUFReader(SMOLLM2).fields["tokenizer.chat_template"].contents()


# Trained here.

def corpus():
    return make_strings(4000, seed=1)


def plain_corpus():
    """Without the rare characters: a vocabulary of single characters is soon full."""
    letters = set("".join(PROSE.values()) + "".join(CODE))
    return [line for text in corpus() for line in text.splitlines() if line.strip() and set(line) <= letters]


def byte_level(prefix=False, regex=True):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def bpe(pre, vocab_size=3000, special=("<|endoftext|>",), normalizer=None, **options):
    tokenizer = tokenizers.Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(pre) if len(pre) > 1 else pre[0]
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def save(folder, name, tokenizer):
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    return TokenizersJudge(name, path, tokenizers.Tokenizer.from_file(str(path / "tokenizer.json")))


def template(bos, tokenizer):
    return processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                         special_tokens=[(bos, tokenizer.token_to_id(bos))])


def gpt2(folder):
    tokenizer = bpe([byte_level()])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return save(folder, "gpt2", tokenizer)


def roberta(folder):
    tokenizer = bpe([byte_level(prefix=True)], special=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return save(folder, "roberta", tokenizer)


def llama3(folder):
    tokenizer = bpe([split(LLAMA3), byte_level(regex=False)], special=["<|begin_of_text|>", "<|eot_id|>"])
    state = json.loads(tokenizer.to_str())
    state["model"]["ignore_merges"] = True
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(state))
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                    template("<|begin_of_text|>", tokenizer)])
    return save(folder, "llama3", tokenizer)


def qwen3(folder):
    tokenizer = bpe([split(QWEN2), byte_level(regex=False)], normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("<think>", normalized=False)])
    return save(folder, "qwen3", tokenizer)


def deepseek(folder):
    pre = [split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split(DEEPSEEK_PUNCTUATION), split(r"\s+$"),
           split(DEEPSEEK_CJK), pre_tokenizers.Digits(True), byte_level(regex=False)]
    tokenizer = bpe(pre, special=["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"], normalizer=normalizers.Sequence([]))
    tokenizer.post_processor = template("<｜begin▁of▁sentence｜>", tokenizer)
    tokenizer.add_tokens([AddedToken("ø", normalized=False), AddedToken("<|EOT|>", normalized=True)])
    return save(folder, "deepseek", tokenizer)


def deepseek_v3(folder):
    pre = [split(r"\p{N}{1,3}"), split(CJK_AND_KANA), split(DEEPSEEK_V3), byte_level(regex=False)]
    return save(folder, "deepseek_v3", bpe(pre))


def by_pattern(name, pattern, **options):
    return lambda folder: save(folder, name, bpe([split(pattern), byte_level(regex=False)], **options))


def falcon(folder):
    pre = [pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(False), split("[0-9][0-9][0-9]")]
    return save(folder, "falcon", bpe(pre))


def sentencepiece_bpe(vocab_size=2500, special=("<unk>", "<s>", "</s>"), **options):
    """The model inside the tokenizer.json of Llama 2, Gemma and Phi-3: merges over characters, bytes for the rest."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True, **options))
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(special) + alphabet, limit_alphabet=400,
                                  show_progress=False)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = split("▁+[^▁]*|[^▁]+")
    tokenizer.train_from_iterator(corpus(), trainer)
    state = json.loads(tokenizer.to_str())
    state["pre_tokenizer"] = None
    state["added_tokens"] = state["added_tokens"][:len(special)]  # the bytes are ordinary tokens
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def gemma(folder):
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    tokenizer = sentencepiece_bpe(special=special)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(2, 12)] +
                         [AddedToken("▁" * n, normalized=False) for n in range(2, 12)] +
                         [AddedToken("<table>", normalized=False), AddedToken("\t\t", normalized=False)])
    tokenizer.post_processor = template("<bos>", tokenizer)
    return save(folder, "gemma", tokenizer)


def phi3(folder):
    tokenizer = sentencepiece_bpe()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(token, rstrip=True, normalized=False, special=True) for token in
                                  ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")])
    tokenizer.add_tokens([AddedToken("</s>", rstrip=True, normalized=False),
                          AddedToken("word", single_word=True, lstrip=True), AddedToken("Stra", single_word=True),
                          AddedToken("dogs", normalized=True, rstrip=True, lstrip=True)])
    tokenizer.post_processor = template("<s>", tokenizer)
    return save(folder, "phi3", tokenizer)


def llama2_new(folder):
    """Llama 2 as newer converters write it: Metaspace in place of the normalizer."""
    tokenizer = sentencepiece_bpe()
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = template("<s>", tokenizer)
    return save(folder, "llama2_new", tokenizer)


def charsmap(name):
    """The compiled rules of one of SentencePiece's normalizers, out of a model trained with it."""
    from sentencepiece import sentencepiece_model_pb2 as format
    proto = format.ModelProto()
    proto.ParseFromString(train_sentencepiece(normalization_rule_name=name))
    return proto.normalizer_spec.precompiled_charsmap


def without_plain_mode(judge):
    """Scores let the package turn plain text into control tokens, encode_special_tokens or not; ours never does."""
    judge.special_modes = (True,)
    return judge


def t5(folder):
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap("nmt_nfkc")),
                                                 normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=2000, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>",
                                      show_progress=False)
    tokenizer.train_from_iterator(plain_corpus(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    return without_plain_mode(save(folder, "t5", tokenizer))


def xlm(folder):
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                                 normalizers.Replace(Regex(" {2,}"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                       pre_tokenizers.Metaspace("▁", prepend_scheme="always")])
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=1500, special_tokens=["<s>", "<unk>"], unk_token="<unk>",
                                      show_progress=False)
    tokenizer.train_from_iterator(plain_corpus(), trainer)
    return without_plain_mode(save(folder, "xlm", tokenizer))


def gpt1(folder):
    """Words with an end mark, unknown characters, and every odd step that is left."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                                 normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()])
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=300,
                                  show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return save(folder, "gpt1", tokenizer)


def behaviors(folder):
    """Every way to treat a match, in a chain; no decoder at all."""
    pre = [split(r"[aeiou]", "merged_with_next"), split(r"\d", "contiguous"), split(r"[.,;]", "merged_with_previous"),
           split(r"[^\W\d_]+|\b", "isolated", invert=True), split(r"\R|\h{4}", "removed"), byte_level(regex=False)]
    tokenizer = bpe(pre, normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.Replace(Regex(r"(?m:x.y)"), "z")]))
    tokenizer.decoder = None
    return save(folder, "behaviors", tokenizer)


def words(folder):
    tokenizer = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("-"), pre_tokenizers.BertPreTokenizer(),
                                                       pre_tokenizers.FixedLength(4)])
    tokenizer.train_from_iterator(corpus(), trainers.WordLevelTrainer(vocab_size=800, special_tokens=["[UNK]"],
                                                                      show_progress=False))
    return save(folder, "words", tokenizer)


# SentencePiece.

def train_sentencepiece(**options):
    model = io.BytesIO()
    defaults = {"vocab_size": 2000, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(plain_corpus()), model_writer=model, **(defaults | options))
    return model.getvalue()


def spm(name, **options):
    def make(folder):
        model = train_sentencepiece(**options)
        path = folder / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "tokenizer.model").write_bytes(model)
        return SentencePieceJudge(name, path, sentencepiece.SentencePieceProcessor(model_proto=model))
    return make


def llama2_model(folder):
    """Llama 2's tokenizer.model, put together again from its tokenizer.json: a merge's score is minus its rank."""
    from sentencepiece import sentencepiece_model_pb2 as format
    vocab = json.loads(lzma.open(DATA / "llama2" / "tokenizer.json.xz").read())["model"]["vocab"]
    proto = format.ModelProto()
    for id, piece in enumerate(sorted(vocab, key=vocab.get)):
        type = 2 if id == 0 else 3 if id < 3 else 6 if id < 259 else 1
        proto.pieces.add(piece=piece, score=float(259 - id) if type == 1 else 0, type=type)
    proto.trainer_spec.model_type = format.TrainerSpec.BPE
    proto.trainer_spec.vocab_size = len(proto.pieces)
    proto.trainer_spec.byte_fallback = True
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.remove_extra_whitespaces = False
    path = folder / "llama2-model"
    path.mkdir(parents=True, exist_ok=True)
    (path / "tokenizer.model").write_bytes(proto.SerializeToString())
    return SentencePieceJudge("llama2 tokenizer.model", path,
                              sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString()))


def write_gguf(path, model, tokens, types, **extra):
    """A GGUF file with a vocabulary and nothing else."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for key, value in extra.items():
        getattr(writer, f"add_{key}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def spm_gguf(name, model_type, **options):
    """A SentencePiece model as a GGUF file ("llama" or "t5")."""
    def make(folder):
        from sentencepiece import sentencepiece_model_pb2 as format
        model = train_sentencepiece(model_type="bpe" if model_type == "llama" else "unigram", **options)
        proto = format.ModelProto()
        proto.ParseFromString(model)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.gguf"
        extra = {"precompiled_charsmap": proto.normalizer_spec.precompiled_charsmap} if model_type == "t5" else {}
        write_gguf(path, model_type, [piece.piece.encode() for piece in proto.pieces], [piece.type for piece in proto.pieces],
                   token_scores=[piece.score for piece in proto.pieces], add_bos_token=False, add_eos_token=False,
                   add_space_prefix=proto.normalizer_spec.add_dummy_prefix,
                   remove_extra_whitespaces=proto.normalizer_spec.remove_extra_whitespaces,
                   unk_token_id=proto.trainer_spec.unk_id, bos_token_id=proto.trainer_spec.bos_id,
                   eos_token_id=proto.trainer_spec.eos_id, **extra)
        return SentencePieceJudge(name, path, sentencepiece.SentencePieceProcessor(model_proto=model))
    return make


def bpe_gguf(pre_name, pre, normalizer=None, ignore_merges=False):
    """Byte-level BPE as a GGUF file, against the tokenizer.json that the name of its pre-tokenizer stands for."""
    def make(folder):
        tokenizer = bpe(pre, normalizer=normalizer, ignore_merges=ignore_merges)
        state = json.loads(tokenizer.to_str())
        tokens = sorted(state["model"]["vocab"], key=state["model"]["vocab"].get)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"gguf-{pre_name}.gguf"
        merges = [" ".join(merge) for merge in state["model"]["merges"]]
        special = {token["content"] for token in state["added_tokens"]}
        write_gguf(path, "gpt2", tokens, [3 if token in special else 1 for token in tokens], tokenizer_pre=pre_name,
                   token_merges=merges, add_bos_token=False, eos_token_id=0)
        return TokenizersJudge(f"gguf {pre_name}", path, tokenizer)
    return make


MAKERS = {
    "qwen2_5": lambda folder: published(folder, "qwen2_5"),
    "llama2": lambda folder: published(folder, "llama2"),
    "llama2-model": llama2_model,
    "smollm2": smollm2,
    "gpt2": gpt2, "roberta": roberta, "llama3": llama3, "qwen3": qwen3, "deepseek": deepseek, "deepseek_v3": deepseek_v3,
    "falcon": falcon, "gemma": gemma, "phi3": phi3, "llama2_new": llama2_new, "t5": t5, "xlm": xlm, "gpt1": gpt1,
    "behaviors": behaviors, "words": words,
    "tekken": by_pattern("tekken", TEKKEN, ignore_merges=True),
    "gpt4o": by_pattern("gpt4o", GPT4O),
    "cl100k": by_pattern("cl100k", CL100K),
    "kimi": by_pattern("kimi", KIMI),
    "bloom": by_pattern("bloom", BLOOM),
    "spm-bpe": spm("spm-bpe", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                   remove_extra_whitespaces=False, user_defined_symbols=["<tool>", "▁▁▁", "dog", "\t"]),
    "spm-bpe-nfkc": spm("spm-bpe-nfkc", model_type="bpe", normalization_rule_name="nmt_nfkc"),
    "spm-bpe-split": spm("spm-bpe-split", model_type="bpe", byte_fallback=True, split_digits=True, add_dummy_prefix=False,
                         allow_whitespace_only_pieces=True, normalization_rule_name="identity",
                         remove_extra_whitespaces=False),
    "spm-unigram": spm("spm-unigram", model_type="unigram", normalization_rule_name="nmt_nfkc_cf",
                       user_defined_symbols=["<tool>", "dog"]),
    "spm-unigram-bytes": spm("spm-unigram-bytes", model_type="unigram", byte_fallback=True, normalization_rule_name="nfkc",
                             remove_extra_whitespaces=False),
    "spm-suffix": spm("spm-suffix", model_type="unigram", treat_whitespace_as_suffix=True),
    "gguf-llama": spm_gguf("gguf-llama", "llama", byte_fallback=True, normalization_rule_name="identity",
                           remove_extra_whitespaces=False),
    "gguf-t5": spm_gguf("gguf-t5", "t5"),
    "gguf-gpt-2": bpe_gguf("gpt-2", [byte_level()]),
    "gguf-llama-bpe": bpe_gguf("llama-bpe", [split(LLAMA3), byte_level(regex=False)], ignore_merges=True),
    "gguf-qwen2": bpe_gguf("qwen2", [split(QWEN2), byte_level(regex=False)], normalizer=normalizers.NFC()),
    "gguf-qwen35": bpe_gguf("qwen35", [split(QWEN35), byte_level(regex=False)], normalizer=normalizers.NFC()),
    "gguf-starcoder": bpe_gguf("starcoder", [pre_tokenizers.Digits(True), byte_level()]),
    "gguf-falcon": bpe_gguf("falcon", [pre_tokenizers.Punctuation("contiguous"), byte_level(), pre_tokenizers.Digits(False),
                                       split("[0-9][0-9][0-9]")]),
    "gguf-default": bpe_gguf("default", [split(r"[\p{P}\$\+<=>\^~\|]+"), split(GPT2), split(r"\p{N}+"),
                                         split("[0-9][0-9][0-9]"), byte_level(regex=False)]),
    "gguf-deepseek-llm": bpe_gguf("deepseek-llm", [
        split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split(DEEPSEEK_PUNCTUATION), split(r"\s+$"),
        split(DEEPSEEK_CJK), pre_tokenizers.Digits(False), byte_level(regex=False)]),
    "gguf-deepseek-coder": bpe_gguf("deepseek-coder", [
        split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(DEEPSEEK_CJK), pre_tokenizers.Digits(True),
        byte_level(regex=False)]),
    "gguf-deepseek-v3": bpe_gguf("deepseek-v3", [split(r"\p{N}{1,3}"), split(CJK_AND_KANA), split(DEEPSEEK_V3),
                                                 byte_level(regex=False)]),
    "gguf-tekken": bpe_gguf("tekken", [split(TEKKEN), byte_level(regex=False)], ignore_merges=True),
    "gguf-gpt-4o": bpe_gguf("gpt-4o", [split(GPT4O), byte_level(regex=False)]),
    "gguf-kimi-k2": bpe_gguf("kimi-k2", [split(KIMI), byte_level(regex=False)]),
    "gguf-superbpe": bpe_gguf("superbpe", [split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"), byte_level(regex=False)]),
    "gguf-tiny_aya": bpe_gguf("tiny_aya", [split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(GPT4O), byte_level(regex=False)]),
    "gguf-bloom": bpe_gguf("bloom", [split(BLOOM), byte_level(regex=False)]),
}


def make(folder, names=()):
    for name in names or MAKERS:
        yield MAKERS[name](Path(folder))
