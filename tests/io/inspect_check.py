"""What `tinyvllm inspect` prints, against the packages that define the formats.

    inspect_check.py TINYVLLM

Writes small models with the `gguf` and `safetensors` packages (a dense one, a mixture with layers of
different sizes, an architecture nobody knows, split files, Hugging Face folders), reads them back with
those packages, and compares every tensor and every number; then the same for SmolLM2 where it is fetched.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

TINYVLLM = sys.argv[1]


def inspect(path):
    command = [TINYVLLM, "inspect", str(path), "--tensors", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return json.loads(done.stdout)


def expect(found, key, expected):
    assert found[key] == expected, f"{found['path']}: {key} is {found[key]}, expected {expected}"


def dtype_counts(tensors):
    counts = {}
    for tensor in tensors:
        counts[tensor["dtype"]] = counts.get(tensor["dtype"], 0) + 1
    return counts


def check_totals(found, expected):
    """`expected`: the tensors as the format's own package reads them, sorted by name."""
    got = [{key: t[key] for key in expected[0]} for t in found["tensors"]]
    assert sorted(got, key=lambda t: t["name"]) == expected, f"{found['path']}: tensors differ"
    expect(found, "dtypes", dtype_counts(expected))
    expect(found, "parameters", sum(math.prod(t["shape"]) for t in expected))
    parts = found["components"].values()
    assert sum(p["bytes"] for p in parts) == sum(t["bytes"] for t in expected)
    assert sum(p["tensors"] for p in parts) == len(expected)


def gguf_tensors(reader):
    tensors = [
        {
            "name": t.name,
            "dtype": t.tensor_type.name,
            "shape": [int(n) for n in reversed(t.shape)],
            "bytes": int(t.n_bytes),
            "offset": int(t.data_offset),
        }
        for t in reader.tensors
    ]
    return sorted(tensors, key=lambda t: t["name"])


def check_gguf(path):
    found = inspect(path)
    reader = gguf.GGUFReader(path)
    field = lambda key: (f := reader.get_field(key)) and f.contents()
    arch = field("general.architecture")
    check_totals(found, gguf_tensors(reader))
    expect(found, "architecture", arch)
    expect(found, "layers", field(f"{arch}.block_count"))
    expect(found, "context_length", field(f"{arch}.context_length"))
    expect(found, "has_chat_template", bool(field("tokenizer.chat_template")))
    expect(found, "file_bytes", pathlib.Path(path).stat().st_size)
    return found


def write_gguf(path, arch, tensors, **values):
    writer = gguf.GGUFWriter(path, arch)
    for key, value in values.items():
        key = f"{arch}.{key.replace('__', '.')}"
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([f"t{i}" for i in range(32)])
    for name, (shape, kind) in tensors.items():
        data = np.ones(shape, dtype=np.float32)
        writer.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


Q = gguf.GGMLQuantizationType


def dense(folder):
    tensors = {
        "token_embd.weight": ((32, 64), Q.Q8_0),
        "output.weight": ((32, 64), Q.F16),
        "output_norm.weight": ((64,), Q.F32),
        "blk.0.attn_q.weight": ((64, 64), Q.Q4_0),
        "blk.0.ffn_up.weight": ((128, 64), Q.Q5_1),
    }
    path = write_gguf(folder / "dense.gguf", "llama", tensors, block_count=1, context_length=256,
                      embedding_length=64, feed_forward_length=128, attention__head_count=4,
                      attention__head_count_kv=2, rope__freq_base=10000.0)
    found = check_gguf(path)
    for key, value in dict(heads=4, kv_heads=2, head_dim=16, ffn_dim=128, vocab_size=32).items():
        expect(found, key, value)
    expect(found, "kv_bytes_per_token", 1 * 2 * (16 + 16) * 2)
    expect(found, "kv_bytes", {str(n): n * 128 for n in (256, 512, 1024, 2048, 4096)})
    # Everything, but of the embedding one row of 64 elements.
    every = sum(t["bytes"] for t in found["tensors"])
    expect(found, "bytes_per_token", every - 31 * (64 // 32 * 34))
    expect(found, "tied_head", False)


def mixture(folder):
    tensors = {
        "token_embd.weight": ((32, 64), Q.F16),
        "blk.0.attn_k.weight": ((32, 64), Q.F16),
        "blk.1.ffn_up_exps.weight": ((4, 96, 64), Q.F16),
    }
    path = write_gguf(folder / "mixture.gguf", "strange", tensors, block_count=2,
                      context_length=4096, embedding_length=64, feed_forward_length=[128, 96],
                      attention__head_count=4, attention__head_count_kv=[2, 0],
                      attention__key_length=24, attention__value_length=8, expert_count=4,
                      expert_used_count=1)
    found = check_gguf(path)
    expect(found, "ffn_dim", 128)
    expect(found, "kv_bytes_per_token", 2 * (24 + 8) * 2)  # the second layer keeps nothing
    expect(found, "tied_head", True)
    expect(found, "bytes_per_token", 32 * 64 * 2 + 32 * 64 * 2 + 96 * 64 * 2)


def split(folder):
    """Three parts, opened by any of them, as llama.cpp's tools write them."""
    writer = gguf.GGUFWriter(folder / "parts.gguf", "llama", split_max_tensors=2)
    writer.add_block_count(4)
    writer.add_context_length(128)
    for i in range(5):
        writer.add_tensor(f"blk.{i}.ffn_up.weight", np.full((4, 32), i, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    paths = sorted(folder.glob("parts-*.gguf"))
    assert len(paths) == 3, paths
    expected = sorted((t for p in paths for t in gguf_tensors(gguf.GGUFReader(p))),
                      key=lambda t: t["name"])
    for path in paths:
        found = inspect(path)
        check_totals(found, expected)
        expect(found, "layers", 4)
        expect(found, "file_bytes", sum(p.stat().st_size for p in paths))


def hf_tensors(paths):
    sizes = {"F32": 4, "F16": 2, "BF16": 2}
    tensors = []
    for path in paths:
        with safe_open(path, "numpy") as file:
            for name in file.keys():
                part = file.get_slice(name)
                shape, dtype = list(part.get_shape()), part.get_dtype()
                tensors.append({"name": name, "dtype": dtype, "shape": shape,
                                "bytes": math.prod(shape) * sizes[dtype]})
    return sorted(tensors, key=lambda t: t["name"])


def folder_of(folder, shards, tied):
    folder.mkdir()
    weights = {
        "model.embed_tokens.weight": np.ones((32, 64), np.float16),
        "model.norm.weight": np.ones(64, np.float32),
        "model.layers.0.self_attn.q_proj.weight": np.ones((96, 64), np.float16),
        "model.layers.0.mlp.up_proj.weight": np.ones((128, 64), np.float16),
    }
    if not tied:
        weights["lm_head.weight"] = np.ones((32, 64), np.float32)
    config = dict(model_type="qwen3", num_hidden_layers=1, hidden_size=64, num_attention_heads=4,
                  num_key_value_heads=2, head_dim=24, intermediate_size=128, vocab_size=32,
                  max_position_embeddings=1024, rope_theta=1e6, tie_word_embeddings=tied)
    (folder / "config.json").write_text(json.dumps(config))
    # An integer of 31 digits is what transformers writes for "no limit".
    (folder / "tokenizer_config.json").write_text(
        json.dumps(dict(model_max_length=10**30, chat_template="{{ messages }}")))
    (folder / "tokenizer.json").write_text(json.dumps(dict(version="1.0", model=dict(type="BPE"))))
    names = list(weights)
    files = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    if shards == 1:
        files = ["model.safetensors"]
    for i, file in enumerate(files):
        save_file({n: weights[n] for n in names[i::shards]}, folder / file)
    if shards > 1:
        index = {n: files[i % shards] for i, n in enumerate(names)}
        (folder / "model.safetensors.index.json").write_text(json.dumps(dict(weight_map=index)))

    found = inspect(folder)
    paths = [folder / file for file in files]
    check_totals(found, hf_tensors(paths))
    expected = dict(architecture="qwen3", layers=1, heads=4, kv_heads=2, head_dim=24, ffn_dim=128,
                    vocab_size=32, context_length=1024, has_chat_template=True, tied_head=tied,
                    tokenizer="BPE (tokenizer.json)", kv_bytes_per_token=2 * (24 + 24) * 2,
                    file_bytes=sum(p.stat().st_size for p in paths))
    for key, value in expected.items():
        expect(found, key, value)
    every = sum(t["bytes"] for t in found["tensors"])
    expect(found, "bytes_per_token", every if tied else every - 31 * 64 * 2)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        dense(folder)
        mixture(folder)
        split(folder)
        folder_of(folder / "single", 1, tied=True)
        folder_of(folder / "sharded", 3, tied=False)
    if subprocess.run([TINYVLLM, "inspect", "smollm2"], capture_output=True).returncode == 0:
        found = check_gguf(inspect("smollm2")["path"])
        expected = dict(parameters=134515008, bytes_per_token=96576768, kv_bytes_per_token=23040)
        for key, value in expected.items():
            expect(found, key, value)
    else:
        print("smollm2 is not fetched: its file was not compared")
    print("inspect agrees with the gguf and safetensors packages")


main()
