"""Peak memory of a prompt of 512 tokens: the weights once, 64 MB of activations, and the KV cache.

    memory_check.py TINYVLLM [--long]

A packed copy of the weights must replace the file's pages, not stand beside them; the program, its vocabulary and
everything else have to fit into what activations leave over. The long run does the same with 1.1B parameters.
"""
import json
import os
import subprocess
import sys
import tempfile

PROMPT = 512
ACTIVATIONS = 64e6


def peak_bytes(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {message}")
    return usage.ru_maxrss * 1024


def check(tinyvllm, model):
    done = subprocess.run([tinyvllm, "inspect", model, "--json"], capture_output=True, text=True, check=True)
    info = json.loads(done.stdout)
    kv = (PROMPT + 1) * info["kv_bytes_per_token"]
    peak = peak_bytes([tinyvllm, "bench", "model", model, "--prompt", str(PROMPT), "--decode", "1", "--batch", "1",
                       "--repeat", "1", "--no-limits"])
    allowed = info["file_bytes"] + kv + ACTIVATIONS
    print(f"{model}: peak {peak / 1e6:.0f} MB, allowed {allowed / 1e6:.0f} MB: file {info['file_bytes'] / 1e6:.0f} + "
          f"KV {kv / 1e6:.0f} + activations {ACTIVATIONS / 1e6:.0f}")
    return peak <= allowed


def main():
    tinyvllm = sys.argv[1]
    good = check(tinyvllm, "smollm2")
    if "--long" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tinyllama-1.1b-Q4_0.gguf")
            subprocess.run([tinyvllm, "quantize", "tinyllama-1.1b", path, "Q4_0", "--load-format", "dummy"],
                           capture_output=True, check=True)
            good = check(tinyvllm, path) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
