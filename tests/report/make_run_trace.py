"""Makes a log of a run as tinyvllm writes it: a prompt step, then decode steps, with the noise of a real machine
(every op its own, bursts that last some steps, now and then a sample several times too long).

    make_run_trace.py OUT.jsonl [--seed N] [--steps N] [--layers N] [--slow OP|all=FACTOR]
"""
import argparse
import json
import random

# op: (microseconds, n, k, dtype) of one row; n and k only of products
OPS = {"attn_norm": (2.0, 0, 0, "F32"), "qkv": (21.0, 960, 576, "Q4_1"), "rope": (3.0, 0, 0, "F32"),
       "attention": (14.0, 0, 0, "F16"), "o": (13.0, 576, 576, "Q4_1"), "ffn_norm": (2.0, 0, 0, "F32"),
       "gate_up": (66.0, 3072, 576, "Q4_1"), "down": (34.0, 576, 1536, "Q4_1")}
PROMPT = 64


class Log:
    def __init__(self, path, random_source, slow):
        self.file, self.random, self.slow = open(path, "w"), random_source, slow
        self.now, self.spans, self.burst, self.records = 0.0, 0, 0.0, 0

    def write(self, kind, data, name="", parent=None, span=None):
        json.dump({"timestamp": round(self.now, 3), "span_id": span, "parent_span_id": parent, "span_name": name or kind,
                   "event": {"type": kind, "data": data}}, self.file, separators=(",", ":"))
        self.file.write("\n")
        self.records += 1

    def span(self):
        self.spans += 1
        return self.spans

    def noise(self):
        outlier = self.random.uniform(2, 6) if self.random.random() < 0.01 else 1
        return outlier * self.random.lognormvariate(0, 0.04) * (1 + self.burst)

    def op(self, scope, name, layer, step, phase, rows, parent):
        base, n, k, dtype = OPS.get(name, (300.0, 49152, 576, "Q4_1"))
        lasted = round(base * (1 + 0.8 * (rows - 1)) * self.noise() * self.slow.get(name, self.slow.get("all", 1)), 3)
        self.now += lasted + 0.3
        data = {"op": "linear" if n else name, "kernel": f"{'linear' if n else name}_{dtype.lower()}_avx2"}
        if n:
            data |= {"batch": 1, "m": rows, "n": n, "k": k, "tA": 0, "tB": 1}
        data |= {"rows": rows, "dtype": dtype, "phase": phase, "layer": layer, "step": step,
                 "bytes": n * k * 5 // 8 + 4 * rows * 576, "flops": 2 * rows * n * k or 1000 * rows, "threads": 2}
        self.write("GpuOpCompleted", {"op_name": f"{scope}/{name}", "backend": "cpu-avx2", "duration_us": lasted,
                                      "data": data}, name, parent, self.span())
        return lasted

    def step(self, number, layers, prefill):
        begin, rows = self.now, PROMPT if prefill else 1
        phase, scope = ("prefill", "Prompt Processing") if prefill else ("decode", "Generation Loop")
        self.burst = 0.8 * self.burst + self.random.gauss(0, 0.01)
        span, forward = self.span(), self.span()
        self.write("StepPlan", {"step": number, "prefill_tokens": rows if prefill else 0, "decode_tokens": 0 if prefill else 1,
                                "sequences": 1, "budget": 2048, "waiting": 0, "running": 1, "preempted": 0,
                                "schedule_us": 4.5}, parent=span)
        self.now += 4.5
        forward_begin = self.now
        for layer in range(layers):
            block, block_begin = self.span(), self.now
            for name in OPS:
                self.op(f"{scope}/block_{layer}", name, layer, number, phase, rows, block)
            self.write("InternalKernelCompleted", {
                "parent_op_name": "generation_loop", "internal_kernel_name": f"block_{layer}_total",
                "duration_us": round(self.now - block_begin, 3), "step": number, "layer": layer}, "layer", forward, block)
        self.op(scope, "generation_step_output", -1, number, phase, 1, forward)
        forward_us = round(self.now - forward_begin, 3)
        self.write("GpuOpCompleted", {"op_name": f"{scope}/cb_gpu", "backend": "cpu-avx2", "duration_us": forward_us,
                                      "data": {"step": number, "phase": phase}}, "forward", span, forward)
        self.now += 20
        self.write("InternalKernelCompleted", {"parent_op_name": "decoding", "internal_kernel_name": "token_decode",
                                               "duration_us": 15, "step": number}, parent=span)  # on another thread
        self.now += 10
        self.write("InternalKernelCompleted", {"parent_op_name": "sampling", "internal_kernel_name": "next_token_wait",
                                               "duration_us": 20, "step": number}, parent=span)
        self.write("StepCompleted", {"step": number, "duration_us": round(self.now - begin, 3), "phase": phase, "schedule_us": 4.5,
                                     "forward_us": forward_us, "sample_us": 20, "deliver_us": 10}, "step", 1, span)
        self.write("KvBlocks", {"step": number, "used": 4 + number // 16, "cached": 0, "free": 96, "total": 100, "preempted": 0})


def make(path, seed=1, steps=64, layers=6, slow=None):
    log = Log(path, random.Random(seed), slow or {})
    root = log.span()
    log.write("TraceStarted", {"format": 1, "level": "op", "model": "made", "backend": "cpu-avx2", "threads": 2}, "run", None, root)
    log.write("MachineLimits", {"device": "cpu", "threads": 2, "read_gb_per_s": 25, "gflop_per_s": 180, "int8_gop_per_s": 500})
    log.write("ModelWeights", {"total_bytes": 96600000, "breakdown": {"attention": 20000000, "ffn": 70000000}})
    log.write("RequestAdded", {"request_id": "r1", "prompt_tokens": PROMPT, "max_tokens": steps, "n": 1})
    added = log.now
    log.step(0, layers, True)
    first = log.now
    for number in range(1, steps + 1):
        log.step(number, layers, False)
    log.write("RequestFinished", {
        "request_id": "r1", "reason": "length", "prompt_tokens": PROMPT, "output_tokens": steps + 1, "cached_tokens": 0, "queue_us": 1,
        "prefill_us": first - added, "ttft_us": first - added, "decode_us": log.now - first, "e2e_us": log.now - added, "preemptions": 0})
    log.write("TraceCalibration", {"ns_per_record": 150, "ns_per_span": 90, "records_per_step": 60, "overhead_percent": 0.8})
    log.write("TraceEnded", {"records": log.records + 1, "dropped": 0, "wall_us": round(log.now, 3)})
    log.file.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--slow", default="")
    flags = parser.parse_args()
    slow = {flags.slow.split("=")[0]: float(flags.slow.split("=")[1])} if flags.slow else {}
    make(flags.out, flags.seed, flags.steps, flags.layers, slow)


if __name__ == "__main__":
    main()
