"""Writes the seeds of the file-format targets, small and sound, with the formats' own packages.

    .venv/bin/python fuzz/make_corpus.py      → fuzz/corpus/{gguf,safetensors,model_json}/
"""

import json
import pathlib
import tempfile

import gguf
import numpy as np
from safetensors.numpy import save

CORPUS = pathlib.Path(__file__).parent / "corpus"
SEPARATOR = "\x1e"  # between the files of a folder, see model_json.cc
Q = gguf.GGMLQuantizationType
T = gguf.GGUFValueType


def put(target, name, content):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def gguf_file(arch, fill, tensors, **options):
    with tempfile.NamedTemporaryFile() as file:
        writer = gguf.GGUFWriter(file.name, arch, **options)
        fill(writer)
        for name, shape, kind in tensors:
            data = np.zeros(shape, dtype=np.float32)
            writer.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return pathlib.Path(file.name).read_bytes()


def llama(w):
    for key, value in dict(block_count=1, context_length=64, embedding_length=32,
                           feed_forward_length=64, vocab_size=4).items():
        w.add_uint32(f"llama.{key}", value)
    w.add_head_count(2)
    w.add_head_count_kv(1)
    w.add_rope_freq_base(1e4)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(2.0)
    w.add_rope_dimension_count(16)


def vocabulary(w, model):
    w.add_tokenizer_model(model)
    w.add_tokenizer_pre("default")
    w.add_token_list(["<unk>", "<s>", "</s>", "▁a"])
    w.add_token_scores([0.0, 0.0, 0.0, -1.0])
    w.add_token_types([2, 3, 3, 1])
    w.add_token_merges(["a b"])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_pad_token_id(0xFFFFFFFF)
    w.add_add_bos_token(True)
    w.add_add_space_prefix(False)
    w.add_chat_template("{{ messages }}")


def every_type(w):
    for kind, value in [(T.UINT8, 1), (T.INT8, -1), (T.UINT16, 2), (T.INT16, -2), (T.UINT32, 3), (T.INT32, -3),
                        (T.FLOAT32, 0.5), (T.BOOL, True), (T.STRING, "s"), (T.UINT64, 4), (T.INT64, -4), (T.FLOAT64, 0.25)]:
        w.add_key_value(f"one.{kind.name}", value, kind)
        w.add_key_value(f"many.{kind.name}", [value, value], T.ARRAY, sub_type=kind)


def make_gguf():
    put("gguf", "empty", gguf_file("none", lambda w: None, []))
    put("gguf", "types", gguf_file("none", every_type, []))

    def with_text(w):
        llama(w)
        vocabulary(w, "llama")

    dense = [("token_embd.weight", (4, 32), Q.Q8_0), ("blk.0.attn_q.weight", (32, 32), Q.Q4_0),
             ("blk.0.ffn_up.weight", (2, 32), Q.F16), ("output_norm.weight", (32,), Q.F32)]
    put("gguf", "dense", gguf_file("llama", with_text, dense))
    put("gguf", "untied", gguf_file("llama", llama, [("token_embd.weight", (4, 8), Q.F16), ("output.weight", (4, 8), Q.BF16)]))

    def mixture(w):
        w.add_custom_alignment(64)
        w.add_block_count(2)
        w.add_embedding_length(32)
        w.add_feed_forward_length([64, 32])
        w.add_head_count([2, 4])
        w.add_head_count_kv([1, 0])
        w.add_key_length(16)
        w.add_value_length(8)
        w.add_kv_lora_rank(4)
        w.add_rope_dimension_count(8)
        w.add_expert_count(2)
        w.add_expert_used_count(1)
        w.add_sliding_window(16)
        vocabulary(w, "t5")
        w.add_precompiled_charsmap(b"\x00\x01")
        w.add_remove_extra_whitespaces(True)

    put("gguf", "mixture", gguf_file("deepseek2", mixture, [("blk.1.ffn_up_exps.weight", (2, 2, 32), Q.Q5_1), ("v.patch.weight", (2, 2), Q.F32), ("blk.0.ssm_a", (2,), Q.F32)]))
    file = bytearray(gguf_file("llama", llama, dense))
    file[4] = 2
    put("gguf", "version2", bytes(file))
    put("gguf", "split", b"\x1e\x1e\x1e\x1e".join(split_parts()))


def split_parts():
    """Two parts, as llama.cpp's tools write them."""
    with tempfile.TemporaryDirectory() as folder:
        writer = gguf.GGUFWriter(f"{folder}/x.gguf", "llama", split_max_tensors=1)
        writer.add_block_count(1)
        for i in range(2):
            writer.add_tensor(f"blk.{i}.ffn_up.weight", np.zeros((2, 4), dtype=np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return [path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())]


def make_safetensors():
    half, single = np.zeros((2, 3), np.float16), np.zeros(4, np.float32)
    put("safetensors", "one", save({"a": single}))
    put("safetensors", "two", save({"model.layers.0.w": half, "b": single}, {"format": "pt"}))
    put("safetensors", "scalar", save({"s": np.array(1, np.float32)}))
    put("safetensors", "video", save({"v": np.zeros((1, 2, 1, 2, 1), np.float16)}))
    header = json.dumps({"x": dict(dtype="BF16", shape=[2], data_offsets=[0, 4])}).encode()
    put("safetensors", "bf16", len(header).to_bytes(8, "little") + header + bytes(4))
    put("safetensors", "empty", (2).to_bytes(8, "little") + b"{}")


def folder(config, generation="", tokenizer_config="", tokenizer="", template="", index=""):
    parts = [config, generation, tokenizer_config, tokenizer, template, index]
    return SEPARATOR.join(json.dumps(p) if p != "" else "" for p in parts).encode()


def make_model_json():
    llama_config = dict(
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, vocab_size=256, eos_token_id=[1, 2],
        max_position_embeddings=512, rope_theta=1e4, rope_scaling=dict(rope_type="llama3", factor=8.0),
        torch_dtype="bfloat16", sliding_window=None, tie_word_embeddings=True, use_cache=True)
    put("model_json", "llama", folder(
        llama_config, dict(temperature=0.6, top_p=0.9, top_k=20, min_p=0.0, repetition_penalty=1.1, eos_token_id=[1, 3]),
        dict(chat_template="{{ x }}", model_max_length=10**30), dict(model=dict(type="BPE")), dict(chat_template="t")))
    put("model_json", "minimal", folder(dict(model_type="gpt2", n_layer=1, n_embd=8, n_head=2, eos_token_id=0)))
    put("model_json", "nested", folder(dict(
        model_type="gemma3", text_config=dict(num_hidden_layers=1, head_dim=8, num_attention_heads=2, hidden_size=24,
                                              layer_types=["sliding_attention"], rope_parameters=dict(rope_theta=1e6)),
        mixed=[1, "a", {"b": [True, False]}, [0.5, 1]], eos_token_id=-1, use_sliding_window=False, empty=[])))
    put("model_json", "mixture", folder(dict(
        model_type="deepseek_v3", num_hidden_layers=2, num_attention_heads=4, hidden_size=32, kv_lora_rank=8,
        qk_rope_head_dim=4, v_head_dim=8, n_routed_experts=4, num_experts_per_tok=2, intermediate_size=[16, 32])))
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    names = {"model.embed_tokens.weight": one, "lm_head.weight": one, "model.norm.weight": one,
             "model.layers.0.mlp.experts.0.up_proj.weight": one, "visual.patch.weight": two,
             "model.layers.0.self_attn.q_proj.weight": two}
    put("model_json", "sharded", folder(dict(model_type="qwen2"), index=dict(metadata={}, weight_map=names)))
    names.pop("model.norm.weight")
    put("model_json", "surplus_tensor", folder(dict(model_type="qwen2"), index=dict(weight_map=names)))
    put("model_json", "surplus_shard", folder(dict(model_type="qwen2"), index=dict(weight_map={"a": one})))
    put("model_json", "tokenizer_only", folder("", tokenizer=dict(model=dict(type="Unigram"))))
    put("model_json", "python", b'{"model_type": "mamba2", "limit": [0.0, Infinity], "max": 1000000000000000019884624838656}')


make_gguf()
make_safetensors()
make_model_json()
