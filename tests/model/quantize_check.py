"""`tinyvllm quantize` on GGUF files, read back by the `gguf` package.

    quantize_check.py TINYVLLM TYPES.json

TYPES.json says which type llama.cpp's llama-quantize (August 2026) gives every tensor of the models
below. With LLAMA_CPP=DIR, a folder that holds llama-quantize, it is made anew and must be the same.
"""

import json
import math
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

import gguf
import numpy as np

TINYVLLM, TYPES_JSON = sys.argv[1], pathlib.Path(sys.argv[2])
PEER = os.environ.get("LLAMA_CPP")
KIND = gguf.GGMLQuantizationType
FILE_TYPES = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K F16 BF16".split()
# architecture, layers, hidden, heads, kv_heads, ffn, tied, experts. Only rows are as wide as they would be; there
# are few of them, because a tensor's type depends on its name and width.
MODELS = {
    "plain": ("llama", 22, 256, 8, 1, 512, False, 0),
    "tied": ("qwen2", 24, 256, 8, 2, 512, True, 0),
    "rows that do not fit": ("llama", 9, 288, 4, 4, 768, False, 0),
    "tied rows that do not fit": ("llama", 9, 288, 4, 4, 768, True, 0),
    "eight experts": ("llama", 10, 256, 8, 2, 256, False, 8),
    "sixteen experts": ("qwen3moe", 10, 256, 8, 2, 256, False, 16),
    "eighty layers": ("llama", 80, 256, 8, 2, 256, False, 0),
    "fused": ("phi3", 12, 256, 8, 8, 256, False, 0),
}
# Upper limits of the relative error on normal numbers: F16 and BF16 by their mantissas, the others as measured on
# large tensors (tests/ops/quantize_check.py compares with the peer) and a little more.
ERRORS = dict(F32=0, F16=2**-11, BF16=2**-8, Q8_0=0.0056, Q6_K=0.018, Q5_K=0.036, Q5_1=0.035, Q5_0=0.042,
              Q4_K=0.073, Q4_1=0.073, Q4_0=0.084, Q3_K=0.15, Q2_K=0.28)


def tensor_shapes(arch, layers, hidden, heads, kv_heads, ffn, tied, experts):
    shapes = {"token_embd": (6, hidden), "output_norm": (hidden,)}
    if not tied:
        shapes["output"] = (6, hidden)
    layer = {"attn_norm": (hidden,), "ffn_norm": (hidden,), "attn_output": (4, hidden)}
    if arch == "phi3":
        layer |= {"attn_qkv": (4, hidden), "ffn_up": (4, hidden), "ffn_down": (4, ffn)}
    else:
        layer |= {"attn_q": (2 * heads, hidden), "attn_k": (2 * kv_heads, hidden),
                  "attn_v": (2 * kv_heads, hidden)}
    if experts:
        layer |= {"ffn_gate_inp": (experts, hidden), "ffn_gate_exps": (experts, 2, hidden),
                  "ffn_up_exps": (experts, 2, hidden), "ffn_down_exps": (experts, 2, ffn)}
    elif arch != "phi3":
        layer |= {"ffn_gate": (4, hidden), "ffn_up": (4, hidden), "ffn_down": (4, ffn)}
    for i in range(layers):
        shapes |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": shape for name, shape in shapes.items()}


def make_model(path, spec, edit=lambda name, x: x):
    arch, layers, hidden, heads, kv_heads, ffn, _, experts = spec
    writer = gguf.GGUFWriter(path, arch)
    sizes = dict(block_count=layers, context_length=256, embedding_length=hidden, feed_forward_length=ffn,
                 expert_count=experts, expert_used_count=min(experts, 2), expert_feed_forward_length=ffn)
    for key, value in sizes.items():
        writer.add_uint32(f"{arch}.{key}", value)
    writer.add_uint32(f"{arch}.attention.head_count", heads)
    writer.add_uint32(f"{arch}.attention.head_count_kv", kv_heads)
    writer.add_uint32(f"{arch}.rope.dimension_count", hidden // heads)
    writer.add_float32(f"{arch}.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_array("odd.things", [1.5, 2.5])
    writer.add_tokenizer_model("none")
    rng = np.random.default_rng(len(str(path)))
    for name, shape in tensor_shapes(*spec).items():
        writer.add_tensor(name, edit(name, (rng.standard_normal(shape) * 0.02).astype(np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def quantize(source, target, kind, *flags, ok=True):
    command = [TINYVLLM, "quantize", str(source), str(target), kind, "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) == ok, f"{' '.join(command)}: {done.stderr}"
    return json.loads(done.stdout) if ok else done.stderr


def kinds_by_role(path):
    """'blk.attn_v.weight' → 'Q6_K×2 Q4_K×3 …', layer by layer."""
    rows = {}
    for tensor in gguf.GGUFReader(path).tensors:
        parts = tensor.name.split(".")
        layer = int(parts.pop(1)) if parts[0] == "blk" else 0
        rows.setdefault(".".join(parts), {})[layer] = tensor.tensor_type.name
    runs = {}
    for role, by_layer in sorted(rows.items()):
        sequence = []
        for layer in sorted(by_layer):
            if sequence and sequence[-1][0] == by_layer[layer]:
                sequence[-1][1] += 1
            else:
                sequence.append([by_layer[layer], 1])
        runs[role] = " ".join(f"{kind}×{count}" for kind, count in sequence)
    return runs


def to_json(types):
    """One line per model and file type."""
    line = lambda value: json.dumps(value, ensure_ascii=False)
    models = []
    for model, kinds in types.items():
        rows = ",\n".join(f"  {line(kind)}: {line(roles)}" for kind, roles in kinds.items())
        models.append(f" {line(model)}: {{\n{rows}\n }}")
    return "{\n" + ",\n".join(models) + "\n}\n"


def check_types(folder):
    expected = {} if PEER else json.loads(TYPES_JSON.read_text(encoding="utf-8"))
    for name, spec in MODELS.items():
        source = make_model(folder / "model.gguf", spec)
        for kind in FILE_TYPES:
            if PEER:
                target = folder / "peer.gguf"
                subprocess.run([f"{PEER}/llama-quantize", source, target, kind], capture_output=True, check=True)
                expected.setdefault(name, {})[kind] = kinds_by_role(target)
            report = quantize(source, folder / "out.gguf", kind)
            found = kinds_by_role(folder / "out.gguf")
            assert found == expected[name][kind], f"{name}, {kind}: {found}, expected {expected[name][kind]}"
            assert report["file_bytes"] == (folder / "out.gguf").stat().st_size
    if PEER:
        stored = json.loads(TYPES_JSON.read_text(encoding="utf-8")) if TYPES_JSON.exists() else None
        if stored != expected:
            TYPES_JSON.write_text(to_json(expected), encoding="utf-8")
            sys.exit(f"{TYPES_JSON} was not what llama-quantize does, and is now")


def numbers(tensor):
    return gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)


def check_numbers(folder):
    """Numbers close to the original, metadata as it was, for files of every type and back to F32."""
    source = make_model(folder / "model.gguf", MODELS["plain"])
    original = gguf.GGUFReader(source)
    tensors = {t.name: numbers(t) for t in original.tensors}
    for kind, flags in [(k, []) for k in FILE_TYPES] + [(k, ["--pure"]) for k in ("Q2_K", "Q3_K", "Q4_K")]:
        quantize(source, folder / "out.gguf", kind, *flags, "--threads", "3")
        reader = gguf.GGUFReader(folder / "out.gguf")
        squares = {}  # by type, because single tensors are small
        for tensor in reader.tensors:
            if flags and len(tensor.shape) == 2:
                assert tensor.tensor_type.name == kind, f"--pure: {tensor.name} is {tensor.tensor_type}"
            x = tensors[tensor.name]
            sums = squares.setdefault(tensor.tensor_type.name, np.zeros(2))
            sums += np.sum((numbers(tensor) - x) ** 2), np.sum(x**2)
        for name, (error, total) in squares.items():
            relative = math.sqrt(error / total)
            assert relative <= ERRORS[name], f"{kind}: {name} is off by {relative}, expected {ERRORS[name]}"
        for key, field in original.fields.items():
            if not key.startswith("GGUF."):
                found = reader.fields[key]
                assert (found.types, found.contents()) == (field.types, field.contents()), f"{kind}: {key}"
        assert reader.fields["general.quantization_version"].contents() == 2
        enum = gguf.LlamaFileType
        names = ["MOSTLY_" + kind, "MOSTLY_" + kind + "_M"]
        assert reader.fields["general.file_type"].contents() in [enum[n] for n in names if n in enum.__members__]
        back = quantize(folder / "out.gguf", folder / "back.gguf", "F32")
        assert set(back["dtypes"]) == {"F32"}
        same = {t.name: numbers(t) for t in gguf.GGUFReader(folder / "back.gguf").tensors}
        for tensor in reader.tensors:
            assert (same[tensor.name] == numbers(tensor)).all(), f"{kind}: {tensor.name} read as other numbers"


def check_refusals(folder):
    """What cannot be done says so, names the tensor, and leaves what was there before."""
    target = folder / "out.gguf"
    target.write_text("before")

    def spoil(value):
        def edit(name, x):
            if name == "blk.3.ffn_up.weight":
                x[3, 7] = value
            return x

        return edit

    bad = make_model(folder / "nan.gguf", MODELS["plain"], spoil(np.nan))
    assert "'blk.3.ffn_up.weight' holds numbers that are not finite" in quantize(bad, target, "Q4_0", ok=False)
    bad = make_model(folder / "large.gguf", MODELS["plain"], spoil(1e5))
    assert "'blk.3.ffn_up.weight' holds numbers beyond" in quantize(bad, target, "F16", ok=False)
    good = make_model(folder / "model.gguf", MODELS["plain"])
    assert "Q4_K_M" in quantize(good, target, "Q4_Z", ok=False)
    assert "not a regular file" in quantize(good, "/dev/null", "Q4_0", ok=False)
    quantize(good, folder / "none" / "out.gguf", "Q4_0", ok=False)
    assert target.read_text() == "before"
    quantize(bad, folder / "large-bf16.gguf", "BF16")
    quantize(good, good, "Q8_0")  # onto itself


def check_interruption(folder):
    """Ctrl-C, a kill and a full disk leave neither a new file nor a changed one."""
    source = folder / "big.gguf"
    writer = gguf.GGUFWriter(source, "llama")
    writer.add_uint32("llama.block_count", 1)
    writer.add_tensor("big.weight", np.tile(np.linspace(-1, 1, 8192, dtype=np.float32), (8192, 1)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    work = folder / "work"
    work.mkdir()
    target = work / "out.gguf"
    target.write_text("before")
    command = [TINYVLLM, "quantize", str(source), str(target), "Q2_K", "--threads", "1"]
    for end in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        assert process.poll() is None, "it was done before it could be interrupted"
        process.send_signal(end)
        _, stderr = process.communicate()
        assert target.read_text() == "before"
        if end == signal.SIGINT:
            assert process.returncode == 130 and "was not written" in stderr, (process.returncode, stderr)
            assert len(list(work.iterdir())) == 1

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files)
    assert done.returncode == 1 and "cannot write" in done.stderr, done.stderr
    assert target.read_text() == "before" and len(list(work.iterdir())) == 1


def check_random_weights(folder):
    """A model of random weights answers the same from memory and from a file, and not the same to every prompt: its
    head is the embedding, which is read again after it was packed."""
    target = folder / "random.gguf"
    random = ["--load-format", "dummy"]
    subprocess.run([TINYVLLM, "quantize", "smollm2-135m", str(target), "Q8_0", *random], check=True, capture_output=True)

    def answer(model, prompt, *flags):
        command = [TINYVLLM, "run", model, prompt, *flags, "--raw", "--json", "--ignore-eos", "-n", "4", "--temperature", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["token_ids"]

    one, other = (answer(str(target), prompt) for prompt in ("one two", "three four five"))
    assert one != other
    assert answer("smollm2-135m", "one two", "--dtype", "Q8_0", *random) == one


with tempfile.TemporaryDirectory() as name:
    temporary = pathlib.Path(name)
    check_types(temporary)
    check_numbers(temporary)
    check_refusals(temporary)
    check_interruption(temporary)
    check_random_weights(temporary)
print(f"{len(FILE_TYPES)} file types of {len(MODELS)} models: types as llama.cpp's, numbers close, nothing half-written")
