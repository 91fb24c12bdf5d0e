"""tinyvllm as others use it: installed into an empty folder, found by CMake, and run by both examples.

    install_check.py BUILD_FOLDER EXAMPLES_FOLDER CXX_COMPILER
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD, EXAMPLES, COMPILER = sys.argv[1:]
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
MODEL = pathlib.Path(CACHE) / "tinyvllm/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done


def refused(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    return done.stderr if done.returncode == 1 else None


def check_headers(folder):
    """The installed headers include nothing but themselves and the standard library."""
    for header in folder.glob("*.h"):
        for included in re.findall(r'#include "([^"]+)"', header.read_text()):
            if not included.startswith("tinyvllm/") or not (folder.parent / included).exists():
                sys.exit(f"{header.name} includes {included}, which is not installed")


with tempfile.TemporaryDirectory() as temporary:
    prefix = pathlib.Path(temporary) / "prefix"
    built = pathlib.Path(temporary) / "examples"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    check_headers(prefix / "include/tinyvllm")
    run("cmake", "-S", EXAMPLES, "-B", built, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}")
    run("cmake", "--build", built)
    question = "Why is the sky blue?"
    answer = run(built / "one_prompt", MODEL, question).stdout
    expected = run(prefix / "bin/tinyvllm", "run", "-m", MODEL, "-p", question, "-n", 64).stdout
    assert answer == expected and len(answer) > 50, f"{answer!r} is not {expected!r}"
    assert run(built / "one_prompt", MODEL, question, "cpu").stdout == answer
    assert refused(built / "one_prompt", MODEL, question, "gpu") == "error: device: expected cpu or cuda, found 'gpu'\n"
    without = refused("env", "CUDA_VISIBLE_DEVICES=", built / "one_prompt", MODEL, question, "cuda")
    assert without is not None and "CUDA" in without and "use --device cpu" in without, without
    many = run(built / "hundred_requests", MODEL)
    assert len(many.stdout.splitlines()) >= 100, many.stdout
    answers, steps = map(int, re.search(r"(\d+) answers in (\d+) steps", many.stderr).groups())
    assert answers == 100 and steps < 100, f"{answers} answers in {steps} steps: they did not run together"
