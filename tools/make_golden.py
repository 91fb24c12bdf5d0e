#!/usr/bin/env python3
"""Makes tests/data/golden: tiny random models and the logits that Hugging Face transformers gives them.

    python -m venv golden && golden/bin/pip install -r tools/requirements-golden.txt
    golden/bin/python tools/make_golden.py [NAME...]

For each case a folder with config.json as transformers 5 writes it, config.v4.json as transformers 4 did,
model.safetensors, model.gguf (names and row order as llama.cpp's converter has them) and golden.safetensors:
tensors prompt.N [tokens] (ids, as floats) and logits.N [tokens, vocabulary], computed on the CPU in float32.

Weights are drawn wide enough that attention has favourites and logits differ by several units, so that a wrong
rope, window or norm moves them far beyond the tolerance; `check_cases_differ` makes sure of that.
"""
import json
import math
import os
import pathlib
import shutil
import sys
import tempfile
import zlib

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/data/golden"
VOCAB = 65
CONTEXT = 96

# Sizes that no kernel likes: rows of no whole vector, heads wider than hidden / heads, several queries per K and V.
COMMON = dict(vocab_size=VOCAB, max_position_embeddings=CONTEXT, bos_token_id=None, eos_token_id=None,
              pad_token_id=None, attn_implementation="eager")
LLAMA = dict(hidden_size=28, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=10, rms_norm_eps=1e-5, tie_word_embeddings=False)
QWEN2 = dict(hidden_size=30, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
             rms_norm_eps=1e-6, tie_word_embeddings=True)
QWEN3MOE = dict(hidden_size=28, intermediate_size=40, moe_intermediate_size=12, num_experts=5, num_experts_per_tok=3,
                num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=12, rms_norm_eps=1e-6,
                tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
PHI3 = dict(hidden_size=32, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            rms_norm_eps=1e-5, tie_word_embeddings=False)


class Case:
    def __init__(self, kind, config, weights_of=None, prompts=(1, 9, 40)):
        self.kind = kind
        self.config = config
        self.weights_of = weights_of  # a case with the same tensors, whose file serves both
        self.prompts = prompts


CASES = {
    "llama": Case("Llama", dict(LLAMA, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
    "llama_linear": Case("Llama", dict(LLAMA, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0,
                                                              "factor": 3.0}), weights_of="llama"),
    "llama_llama3": Case("Llama", dict(LLAMA, rope_parameters={
        "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 48}), weights_of="llama"),
    "mistral": Case("Mistral", dict(LLAMA, sliding_window=7,
                                    rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
                    weights_of="llama"),
    "llama_bias": Case("Llama", dict(LLAMA, attention_bias=True, mlp_bias=True,
                                     rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
    "qwen2": Case("Qwen2", dict(QWEN2, rope_parameters={"rope_type": "default", "rope_theta": 1000.0})),
    "qwen2_yarn": Case("Qwen2", dict(QWEN2, rope_parameters={
        "rope_type": "yarn", "rope_theta": 30.0, "factor": 4.0, "beta_fast": 4.0, "beta_slow": 0.5,
        "original_max_position_embeddings": 60}), weights_of="qwen2"),
    "qwen3": Case("Qwen3", dict(hidden_size=28, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4,
                                num_key_value_heads=2, head_dim=14, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
    "qwen3moe": Case("Qwen3Moe", dict(QWEN3MOE, norm_topk_prob=True)),
    "qwen3moe_plain": Case("Qwen3Moe", dict(QWEN3MOE, norm_topk_prob=False), weights_of="qwen3moe"),
    "gemma3": Case("Gemma3", dict(
        hidden_size=28, intermediate_size=20, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=1,
        head_dim=12, rms_norm_eps=1e-6, query_pre_attn_scalar=12, sliding_window=7, sliding_window_pattern=3,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}})),
    # GGUF files do not say what queries are scaled by: with 62 layers it is not the head size.
    "gemma3_deep": Case("Gemma3", dict(
        hidden_size=8, intermediate_size=6, num_hidden_layers=62, num_attention_heads=2, num_key_value_heads=1,
        head_dim=6, rms_norm_eps=1e-6, query_pre_attn_scalar=4, sliding_window=7, sliding_window_pattern=3,
        layer_types=["full_attention" if i % 3 == 2 else "sliding_attention" for i in range(62)],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 1000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}})),
    "olmo2": Case("Olmo2", dict(hidden_size=30, intermediate_size=36, num_hidden_layers=2, num_attention_heads=3,
                                num_key_value_heads=1, rms_norm_eps=1e-6, tie_word_embeddings=False,
                                rope_parameters={"rope_type": "default", "rope_theta": 500.0})),
    # The first two prompts fit the original length, the third does not.
    "phi3": Case("Phi3", dict(PHI3, original_max_position_embeddings=24, rope_parameters={
        "rope_type": "longrope", "rope_theta": 100.0, "partial_rotary_factor": 0.75, "short_factor": [1.0, 1.1, 1.3],
        "long_factor": [1.2, 2.5, 4.0], "original_max_position_embeddings": 24}), prompts=(9, 24, 40)),
}

KEYS_V4 = {"num_local_experts": "num_experts", "dtype": "torch_dtype"}


def text_config(case):
    if case.kind == "Gemma3":
        return transformers.Gemma3TextConfig(**COMMON, **case.config)
    return getattr(transformers, case.kind + "Config")(**COMMON, **case.config)


def random_weights(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if parameter.ndim >= 2:  # rows that keep the variance of what they multiply, and a little more
            scale = 1.3 / math.sqrt(parameter.shape[-1])
            values = torch.randn(parameter.shape, generator=generator) * scale
        elif name.endswith("bias"):
            values = torch.randn(parameter.shape, generator=generator) * 0.5
        else:
            values = torch.rand(parameter.shape, generator=generator) + 0.5
            if type(model).__name__.startswith("Gemma"):
                # Many layers that each change much would amplify the rounding of float32.
                values *= 0.2 if model.config.num_hidden_layers > 10 and ".post_" in name else 1
                values -= 1  # stored as the difference from 1
        parameter.data.copy_(values)


def config_v4(config):
    """The same configuration in the words of transformers 4."""
    old = {KEYS_V4.get(key, key): value for key, value in config.items()}
    rope = old.pop("rope_parameters")
    if "full_attention" in rope:
        old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
        old.pop("layer_types")
        old["sliding_window_pattern"] = 3
    rope = dict(rope)
    old["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if "original_max_position_embeddings" in old:
        rope.pop("original_max_position_embeddings", None)
    old["rope_scaling"] = rope if rope.get("rope_type", "default") != "default" else None
    return old


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def save_folder(model, folder, weights_of):
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        config = json.loads(pathlib.Path(temporary, "config.json").read_text())
        shutil.copy(pathlib.Path(temporary, "model.safetensors"), folder / "model.safetensors")
    write_json(folder / "config.json", config)
    write_json(folder / "config.v4.json", config_v4(config))
    tensors = load_file(folder / "model.safetensors")
    if weights_of:
        shared = load_file(GOLDEN / weights_of / "model.safetensors")
        assert all(torch.equal(tensors[name], shared[name]) for name in tensors | shared)
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors").symlink_to(f"../{weights_of}/model.safetensors")
    return config, tensors


# ---- GGUF

BLOCK_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
}
SANDWICH_NAMES = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                  "post_feedforward_layernorm": "post_ffw_norm"}
OUTER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
GGUF_ARCHITECTURE = {"Mistral": "llama"}


def gguf_name(kind, name):
    stem, suffix = name.rsplit(".", 1)
    if stem in OUTER_NAMES:
        return f"{OUTER_NAMES[stem]}.{suffix}"
    _, _, layer, part = stem.split(".", 3)
    names = BLOCK_NAMES | SANDWICH_NAMES if kind in ("Gemma3", "Olmo2") else BLOCK_NAMES
    return f"blk.{layer}.{names[part]}.{suffix}"


def neighbours(rows, heads):
    """Rows of each head reordered so that what rotates together lies together: 0, n/2, 1, n/2+1, …"""
    by_head = rows.reshape(heads, 2, -1, *rows.shape[1:])
    return by_head.transpose(1, 2).reshape(rows.shape)


def gguf_tensors(kind, config, tensors):
    experts = {}
    for name, tensor in tensors.items():
        if ".experts." in name:
            layer, index, part = (name.split(".")[i] for i in (2, 5, 6))
            experts.setdefault((layer, part.removesuffix("_proj")), {})[int(index)] = tensor
            continue
        if kind in ("Llama", "Mistral") and ".q_proj" in name:
            tensor = neighbours(tensor, config["num_attention_heads"])
        if kind in ("Llama", "Mistral") and ".k_proj" in name:
            tensor = neighbours(tensor, config["num_key_value_heads"])
        if kind == "Gemma3" and name.endswith("norm.weight"):
            tensor = tensor + 1
        yield gguf_name(kind, name), tensor
    for (layer, part), members in experts.items():
        yield f"blk.{layer}.ffn_{part}_exps.weight", torch.stack([members[i] for i in range(len(members))])


def llama3_factors(rope, head_dim):
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        turns = rope["original_max_position_embeddings"] / wavelength
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = min(1, max(0, (turns - low) / (high - low)))
        yield 1 / ((1 - smooth) / rope["factor"] + smooth)


def add_rope(writer, config, rope, head_dim):
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    elif kind == "llama3":
        writer.add_tensor("rope_freqs.weight", np.array(list(llama3_factors(rope, head_dim)), np.float32))
    elif kind == "longrope":
        original = rope["original_max_position_embeddings"]
        stretch = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretch) / math.log(original)))
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))


def save_gguf(kind, config, tensors, path):
    architecture = GGUF_ARCHITECTURE.get(kind, kind.lower())
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config["rope_parameters"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if config.get("head_dim"):
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if kind in ("Llama", "Mistral"):
        writer.add_vocab_size(config["vocab_size"])
        writer.add_rope_dimension_count(head_dim)
    if kind == "Phi3":
        writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * head_dim))
        writer.add_sliding_window(config.get("sliding_window") or 0)
    if kind == "Qwen3Moe":
        writer.add_expert_count(config["num_local_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
        if not config["norm_topk_prob"]:
            writer.add_expert_weights_norm(False)
    if kind in ("Gemma3", "Mistral"):
        writer.add_sliding_window(config["sliding_window"])
    if kind == "Gemma3":
        writer.add_sliding_window_pattern(3)
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    add_rope(writer, config, rope, head_dim)
    for name, tensor in gguf_tensors(kind, config, tensors):
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- logits

def logits_of(model, prompts):
    with torch.no_grad():
        return [model(prompt[None].long()).logits[0].contiguous() for prompt in prompts]


def check_v4(folder, prompts, expected):
    """transformers itself reads the older spelling as the same model."""
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copy(folder / "config.v4.json", pathlib.Path(temporary, "config.json"))
        shutil.copy(folder / "model.safetensors", temporary)
        model = transformers.AutoModelForCausalLM.from_pretrained(temporary, attn_implementation="eager",
                                                                  dtype=torch.float32)
    for ours, theirs in zip(logits_of(model, prompts), expected):
        apart = float((ours - theirs).abs().max())
        assert apart < 1e-5, f"{folder.name}: config.v4.json is not the same model, off by {apart}"


def make(name, case):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(text_config(case), dtype=torch.float32).eval()
    random_weights(model, seed=zlib.crc32((case.weights_of or name).encode()))
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config, tensors = save_folder(model, folder, case.weights_of)
    save_gguf(case.kind, config, tensors, folder / "model.gguf")

    generator = torch.Generator().manual_seed(7)
    prompts = [torch.randint(VOCAB, (length,), generator=generator, dtype=torch.int32) for length in case.prompts]
    logits = logits_of(model, prompts)
    check_v4(folder, prompts, logits)
    golden = {f"prompt.{i}": prompt.float() for i, prompt in enumerate(prompts)}
    golden |= {f"logits.{i}": rows for i, rows in enumerate(logits)}
    save_file(golden, folder / "golden.safetensors")
    for file in folder.iterdir():
        file.chmod(0o644)
    spread = float(logits[-1].max() - logits[-1].min())
    size = sum(file.stat().st_size for file in folder.iterdir() if not file.is_symlink())
    print(f"{name:14} logits span {spread:6.2f}, {size / 1024:6.1f} KiB", file=sys.stderr)


def check_cases_differ(names):
    """A case that shares another's weights must not share its logits, or it would test nothing."""
    for name in names:
        other = CASES[name].weights_of
        if not other:
            continue
        ours, theirs = (load_file(GOLDEN / folder / "golden.safetensors")["logits.2"] for folder in (name, other))
        apart = float((ours - theirs).abs().max() / (theirs.max() - theirs.min()))
        assert apart > 0.02, f"{name} is within {apart} of {other}"


def main():
    pinned = dict(line.strip().split("==") for line in open(pathlib.Path(__file__).parent / "requirements-golden.txt")
                  if "==" in line)
    for module in (gguf, np, torch, transformers):
        version = getattr(module, "__version__", pinned.get(module.__name__)).split("+")[0]
        if version != pinned[module.__name__]:
            print(f"warning: {module.__name__} {version}, pinned is {pinned[module.__name__]}", file=sys.stderr)
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(CASES)
    for name in names:
        make(name, CASES[name])
    check_cases_differ(names)
    total = sum(file.stat().st_size for file in GOLDEN.rglob("*") if file.is_file() and not file.is_symlink())
    print(f"{GOLDEN}: {total / 1024:.0f} KiB", file=sys.stderr)


if __name__ == "__main__":
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    main()
