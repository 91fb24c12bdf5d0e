# The commands people type. `make help` lists them; CMake does the building.
.DEFAULT_GOAL := help
.PHONY: help run build release test test-long test-cuda bench bench-peer bench-regress lint format fuzz clean

PROMPT ?= Why is the sky blue?
SECONDS ?= 60

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

run: build  ## set up, build, fetch a small model, and answer a prompt (PROMPT="...")
	@tools/get_model smollm2
	@build/tinyvllm run smollm2 "$(PROMPT)"

build:  ## set up and build the release binary, build/tinyvllm
	@tools/setup
	@tools/configure release
	@cmake --build --preset release --target tinyvllm

release:  ## the same for every card from compute capability 8.0 on: sm_80, sm_90a and PTX, in build/dist
	@tools/setup
	@tools/configure dist
	@cmake --build --preset dist --target tinyvllm

test:  ## set up and run every test: this is what the continuous build runs
	@tools/test

test-long:  ## the comparisons with other implementations at full size
	@tools/test long

test-cuda:  ## the tests that need an NVIDIA card (TESTS=folder that tools/test_cuda --pack made elsewhere; SANITIZE=1: under compute-sanitizer)
	@tools/test_cuda $(if $(SANITIZE),--sanitize) $(TESTS)

bench: build  ## what the parts reach, beside what this machine can do
	@for name in files text sched sample ops; do echo "== bench $$name"; build/tinyvllm bench $$name || exit 1; done

bench-peer: build  ## tinyvllm and llama.cpp in turns on the same files (LLAMA_CPP=folder with llama-bench)
	@tools/get_model smollm2
	@LLAMA_CPP="$(LLAMA_CPP)" tools/bench_peer --yes

bench-regress: build  ## this tree and the last release (or COMMIT=…) in turns; fails on a confirmed slowdown
	@tools/get_model smollm2
	@tools/bench_regress $(COMMIT)

fuzz:  ## fuzz every parser for SECONDS each (default 60)
	@tools/setup
	@tools/fuzz $(SECONDS)

lint:  ## formatting, layers, clang-tidy
	@tools/setup
	@tools/lint

format:  ## clang-format everything in place
	@git ls-files '*.cc' '*.h' '*.cu' | xargs clang-format -i

clean:  ## remove what builds left behind
	@rm -rf build
