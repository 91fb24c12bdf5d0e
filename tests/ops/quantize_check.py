"""The quantizers, read back by the `gguf` package, against what ggml's own leave as error.

    quantize_check.py QUANTIZE_DUMP

ggml's errors are written down below (August 2026, no importance matrix). With LLAMA_CPP=DIR, a folder
that holds its libggml-base.so, they are measured anew and must agree with what is written.
"""

import ctypes
import os
import subprocess
import sys

import gguf
import numpy as np

DUMP = sys.argv[1]
TYPES = "Q8_0 Q6_K Q5_K Q5_1 Q5_0 Q4_K Q4_1 Q4_0 Q3_K Q2_K".split()
ROW = 1024
# Root mean square error over root mean square value, in the order of TYPES.
PEER = {
    "normal": [0.0053535, 0.01775, 0.036183, 0.037919, 0.042645, 0.071304, 0.078078, 0.085869, 0.15093, 0.29685],
    "heavy tails": [0.0083637, 0.025485, 0.047177, 0.048625, 0.065861, 0.092961, 0.10017, 0.12849, 0.19035, 0.34862],
    "uneven columns": [0.0099096, 0.029253, 0.052321, 0.054004, 0.072824, 0.1001, 0.1114, 0.13316, 0.18128, 0.37444],
    "uniform": [0.0037631, 0.013494, 0.027607, 0.029367, 0.031245, 0.054558, 0.060612, 0.065189, 0.12556, 0.23307],
    "positive": [0.0028904, 0.010197, 0.011084, 0.0055638, 0.023021, 0.022103, 0.011455, 0.046162, 0.085295, 0.096146],
    "offset": [0.0022931, 0.0081398, 0.0011878, 0.00043985, 0.020699, 0.0013644, 0.00081138, 0.023296, 0.011051, 0.0067956],
}
ALLOWED = 1.02


def datasets():
    rng = np.random.default_rng(6)
    shape = (128, ROW)
    sets = {
        "normal": rng.standard_normal(shape),
        "heavy tails": rng.standard_t(3, shape),
        "uneven columns": rng.standard_normal(shape) * np.exp(rng.standard_normal((1, ROW))),
        "uniform": rng.uniform(-1, 1, shape),
        "positive": rng.uniform(0.5, 1, shape),
        "offset": -1 + 0.01 * rng.standard_normal(shape),
    }
    return {name: (0.02 * x).astype(np.float32) for name, x in sets.items()}


def quantize(kind, x):
    command = [DUMP, kind.name, str(x.shape[-1])]
    done = subprocess.run(command, input=x.tobytes(), capture_output=True, check=True)
    return gguf.dequantize(np.frombuffer(done.stdout, dtype=np.uint8), kind).reshape(x.shape)


def peer_quantize(library, kind, x):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.zeros(x.size // elements * size, dtype=np.uint8)
    library.ggml_quantize_chunk(kind.value, x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p),
                                ctypes.c_int64(0), ctypes.c_int64(x.shape[0]), ctypes.c_int64(x.shape[1]), None)
    return gguf.dequantize(out, kind).reshape(x.shape)


def error(approximate, x):
    difference = approximate.astype(np.float64) - x
    return np.sqrt(np.mean(difference**2) / np.mean(x.astype(np.float64) ** 2))


def check_errors(library):
    worst = 0.0
    for name, x in datasets().items():
        for index, type_name in enumerate(TYPES):
            kind = gguf.GGMLQuantizationType[type_name]
            peer = PEER[name][index]
            if library:
                measured = error(peer_quantize(library, kind, x), x)
                assert abs(measured / peer - 1) < 1e-3, f"{name}, {type_name}: ggml leaves {measured}, not {peer}"
            ratio = error(quantize(kind, x), x) / peer
            assert ratio <= ALLOWED, f"{name}, {type_name}: {ratio:.4f} times ggml's error"
            worst = max(worst, ratio)
    return worst


def check_exact():
    """What a type can hold exactly comes back exactly: zeros, constants, one number among zeros."""
    for type_name in TYPES:
        kind = gguf.GGMLQuantizationType[type_name]
        x = np.zeros((4, 512), dtype=np.float32)
        x[1] = -0.25  # in one type's codes exact only where it is an extreme
        x[2, 17] = 0.5
        x[3, :256] = 1e-38  # too small for any F16 scale
        found = quantize(kind, x)
        assert np.isfinite(found).all(), f"{type_name}: not finite"
        assert (found[0] == 0).all() and np.abs(found[3]).max() < 1e-7, f"{type_name}: zeros"
        assert np.abs(found - x).max() <= 0.25 * 0.001, f"{type_name}: off by {np.abs(found - x).max()}"
        large = np.where(np.arange(512) % 7 == 0, np.float32(65504), np.float32(-65504))
        assert np.isfinite(quantize(kind, large.reshape(1, -1))).all(), f"{type_name}: the largest numbers"


def check_halves():
    rng = np.random.default_rng(7)
    x = (rng.standard_normal((1, 4096)) * 10.0 ** rng.integers(-9, 4, (1, 4096))).astype(np.float32)
    for name in ("F16", "BF16", "F32"):
        kind = gguf.GGMLQuantizationType[name]
        expected = gguf.quantize(x, kind).view(np.uint8).tobytes()
        done = subprocess.run([DUMP, name, "4096"], input=x.tobytes(), capture_output=True, check=True)
        assert done.stdout == expected, f"{name}: not the bytes that gguf writes"


peer_library = None
if folder := os.environ.get("LLAMA_CPP"):
    peer_library = ctypes.CDLL(os.path.join(folder, "libggml-base.so"))
worst_ratio = check_errors(peer_library)
check_exact()
check_halves()
print(f"{len(TYPES)} types on {len(PEER)} kinds of numbers: at most {worst_ratio:.4f} times ggml's error")
