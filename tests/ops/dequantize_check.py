"""The scalar dequantizers, block by block and bit by bit, against the `gguf` package.

    dequantize_check.py DEQUANTIZE_DUMP

Also the names, numbers and block sizes of all types that both know.
"""

import subprocess
import sys

import gguf
import numpy as np

DUMP = sys.argv[1]
BLOCKS = 400
COMPUTED = "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K".split()
# Where the F16 scales of a block lie.
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def check_sizes():
    lines = subprocess.run([DUMP], capture_output=True, text=True, check=True).stdout.split("\n")
    ours = {int(w[0]): (w[1], int(w[2]), int(w[3])) for w in map(str.split, lines) if w}
    for kind, (elements, size) in gguf.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":
            size = 36  # the package still has the 40 bytes of before its two scales were halves
        assert ours[kind.value] == (kind.name, elements, size), f"{kind}: {ours[kind.value]}"
    return len(gguf.GGML_QUANT_SIZES)


def random_blocks(name, rng):
    """Any bytes are a block; the scales are made finite, a few of them zero, subnormal or negative."""
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in SCALES.get(name, []):
        scale = rng.standard_normal(BLOCKS).astype(np.float16)
        scale[:4] = [0.0, -0.0, 6e-8, -65504.0]
        blocks[:, at : at + 2] = scale.view(np.uint8).reshape(-1, 2)
    return kind, blocks


def check_type(name, rng):
    kind, blocks = random_blocks(name, rng)
    with np.errstate(invalid="ignore"):
        expected = gguf.dequantize(blocks.reshape(-1), kind).reshape(-1).astype(np.float32)
    done = subprocess.run([DUMP, name], input=blocks.tobytes(), capture_output=True, check=True)
    found = np.frombuffer(done.stdout, dtype=np.float32)
    assert found.shape == expected.shape, f"{name}: {found.shape} numbers, expected {expected.shape}"
    # Bit for bit, so that a zero's sign counts; a NaN is any NaN.
    same = (found.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(found) & np.isnan(expected))
    if not same.all():
        at = int(np.argmin(same))
        elements = gguf.GGML_QUANT_SIZES[kind][0]
        sys.exit(f"{name}: block {at // elements}, element {at % elements}: {found[at]}, "
                 f"expected {expected[at]}; {np.count_nonzero(~same)} of {same.size} differ")


count = check_sizes()
for type_name in COMPUTED:
    check_type(type_name, np.random.default_rng(sum(map(ord, type_name))))
print(f"{count} types have the right sizes; {len(COMPUTED)} dequantize bit for bit like gguf")
