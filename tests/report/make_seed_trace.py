"""Makes a log, in the record shape of another program, whose analysis is the one given.

    make_seed_trace.py ANALYSIS.txt OUT.jsonl
"""
import itertools
import json
import pathlib
import random
import re
import sys

from seed_samples import GAPS, Series, add_up, together

STATS = re.compile(r"^ *(?P<name>.+): count=(?P<count>\d+) \| total=(?P<total>[\d.]+)ms \| avg=(?P<avg>[\d.]+)ms \| "
                   r"min=(?P<min>[\d.]+)ms \| max=(?P<max>[\d.]+)ms \| p95_ms=(?P<p95>[\d.]+)ms, p99_ms=(?P<p99>[\d.]+)ms$")


def us(text):
    return round(float(text) * 1000)


class Line:
    """One line of a section: a name and, in whole microseconds, what it says of the samples."""

    def __init__(self, match):
        self.name, self.count, self.avg = match["name"], int(match["count"]), us(match["avg"])
        self.total = us(match["total"])
        self.min, self.max, self.p95, self.p99 = (us(match[key]) for key in ("min", "max", "p95", "p99"))

    def totals(self, place=0):
        """Sums that print as this line's, best first; `place` among lines that print the same total."""
        near = [self.total - place] + [self.total + d for d in (0, 1, -1, 2, -2, 3, -3, 4, -4, -5)]
        return [t for t in near if t >= 0 and abs(t / self.count - self.avg) < 0.5] or [self.total]

    def ends(self, place=0):
        series = Series(self.count, self.totals(place), self.min, self.max)
        series.pin(0, self.min)
        series.pin(self.count - 1, self.max)
        return series

    def series(self, place=0, gaps=(0, 0)):
        series = self.ends(place)
        series.percentile(99, self.p99, gaps[1], self.p95)  # in a short series p95 leans on the upper neighbour too
        series.percentile(95, self.p95, gaps[0])
        return series


def read_sections(text):
    """Heading → lines."""
    sections = {}
    for block in text.strip().split("\n\n"):
        heading, *lines = block.splitlines()
        sections[heading.rstrip(":")] = lines
    return sections


def stat_lines(lines):
    return {match["name"]: Line(match) for match in map(STATS.match, lines) if match}


def series_of(lines):
    """A series for each line; lines with the same total get sums that keep their order."""
    made, places = {}, {}
    for name, line in lines.items():
        place = places[line.total] = places.get(line.total, -1) + 1
        made[name] = line.series(place)
    return made


def series_in(whole, lines):
    """The same, where the lines together must also be as the line `whole` says. Two samples lie around a
    percentile; how far apart they are in each series is searched for."""
    best = {}
    for percent, value in ((95, whole.p95), (99, whole.p99)):
        for gaps in itertools.product(GAPS, repeat=len(lines)):
            series = [line.ends() for line in lines.values()]
            for one, line, gap in zip(series, lines.values(), gaps):
                one.percentile(percent, getattr(line, f"p{percent}"), gap)
            try:
                together(series, percent, value)
            except ValueError:
                continue
            best[percent] = gaps
            break
        else:
            raise ValueError(f"{whole.name}: p{percent} cannot be made of its lines")
    series = {name: line.series(0, gaps) for (name, line), gaps in zip(lines.items(), zip(best[95], best[99]))}
    agree(whole, list(series.values()))
    return series


def rest_of(whole, visible, known):
    """The samples of `whole` that no visible line shows, as one series; None when there are none."""
    count = whole.count - sum(s.count for s in known.values())
    if count == 0:
        return None
    total = whole.total - sum(s.total() for s in known.values())
    rest = Series(count, [total], whole.min, whole.max)
    if all(line.min > whole.min for line in visible.values()):
        rest.pin(0, whole.min)
    if all(line.max < whole.max for line in visible.values()):
        rest.pin(count - 1, whole.max)
    return rest


def agree(whole, series):
    if len(series) == 1:
        return  # the same line once more
    add_up(series, whole.total)
    together(series, 95, whole.p95)
    together(series, 99, whole.p99)


def deal(samples, hands):
    """Shares samples out to so many hands that the sums come out about equal."""
    dealt = [[] for _ in range(hands)]
    for i, sample in enumerate(sorted(samples, reverse=True)):
        turn, place = divmod(i, hands)
        dealt[place if turn % 2 == 0 else -1 - place].append(sample)
    return dealt


def internal_kernels(sections):
    """(parent, kernel) → samples. Blocks that no line shows share what their parent's line has left."""
    parents = stat_lines(sections["Internal kernel by parent"])
    lines = {name: line for name, line in stat_lines(sections["Internal kernel by parent/op"]).items()}
    kernels = stat_lines(sections["Kernel aggregate (all parents)"])
    parent_of = {"next_token_wait": "sampling", "next_token_ready_latency": "sampling", "token_decode": "decoding"}
    for name, line in kernels.items():
        lines.setdefault(f"{parent_of.get(name, 'generation_loop')} :: {name}", line)
    series = series_of({name: line for name, line in lines.items() if not name.startswith("sampling ")})
    sampling = {name: line for name, line in lines.items() if name.startswith("sampling ")}
    series.update(series_in(parents["sampling"], sampling))
    blocks = [f"generation_loop :: block_{n}_total" for n in range(24)]
    hidden = [name for name in blocks if name not in series]
    count = lines[blocks[0]].count
    left = parents["generation_loop"].total - sum(
        s.total() for name, s in series.items() if name.startswith("generation_loop"))
    shares = [left * (i + 1) // len(hidden) - left * i // len(hidden) for i in range(len(hidden))]
    least = min(lines[name].min for name in blocks if name in lines)
    for name, share in zip(hidden, shares):
        series[name] = Series(count, [share], least, 20 * share // count)
    agree(parents["generation_loop"], [s for name, s in series.items() if name.startswith("generation_loop ")])
    agree(stat_lines(sections["Event type summary"])[f"InternalKernelCompleted (count={sum(s.count for s in series.values())})"],
          list(series.values()))
    return {tuple(name.split(" :: ")): s.pick() for name, s in series.items()}


# Which kernel type a product of a given shape runs as.
def type_of_shape(shape):
    if shape["batch"] != "1":
        return "gemv_addmm (D)"
    return "gemv (C)" if shape["n"] == "151936" else "gemv_addmm (C)"


def shape_lines(lines):
    """(shape, its line); a heading and the line of its only backend come in turns."""
    for heading, line in zip(lines[::2], lines[1::2]):
        yield dict(part.split("=") for part in heading.strip().rstrip(":").split(" | ")), Line(STATS.match(line))


class Calls:
    """Samples to be dealt out to op names, each call with the shape it had."""

    def __init__(self, series, names, shapes=(None,)):
        self.series, self.names, self.shapes = series, names, shapes

    def records(self):
        hands = max(len(self.names), len(self.shapes))
        for i, samples in enumerate(deal(self.series.pick(), hands)):
            for sample in samples:
                yield self.names[i % len(self.names)], self.shapes[i % len(self.shapes)], sample


def scoped(part):
    return [f"{scope}/block_{n}/op_{n}/{part}" for scope in ("Prompt Processing", "Generation Loop") for n in range(24)]


def calls_of_type(whole, names, shapes):
    """The calls of one kernel type: visible names or visible shapes, and the rest."""
    shown = {name: line for name, line in names.items() if name.endswith("/" + whole.name) or name == whole.name}
    series = series_of(shown)
    if shown:
        shape = next((shape for shape, _ in shapes), None)
        calls = [Calls(s, [name], (shape,)) for name, s in series.items()]
    else:
        shown = dict(enumerate(line for _, line in shapes))
        series = series_of(shown)
        calls = [Calls(s, scoped(whole.name), (shape,)) for s, (shape, _) in zip(series.values(), shapes)]
    if not shown:
        return [Calls(whole.series(), scoped(whole.name))]
    rest = rest_of(whole, shown, series)
    if rest:
        hidden = [dict(shapes[0][0], n="64", k=str(1000 + i)) for i in range(300)] if shapes else (None,)
        calls.append(Calls(rest, [n for n in scoped(whole.name) if n not in shown], hidden))
    agree(whole, [c.series for c in calls])
    if len(shapes) == 1:
        agree(shapes[0][1], [c.series for c in calls])
    return calls


def calls_of_scope(lines, ending, count, total):
    """Waits or command buffers: visible ones, and `count` more that took `total` altogether."""
    series = series_of(lines)
    calls = [Calls(s, [name]) for name, s in series.items()]
    if count:
        shortest = min(line.total for line in lines.values())
        names = [f"Generation Loop/block_{i % 24}/part_{i // 24}/{ending}" for i in range(total // (shortest * 3 // 4) + 1)]
        greatest = max(line.max for line in lines.values())
        calls.append(Calls(Series(count, [total], 0, min(greatest, 700)), names))
    return calls


def gpu_ops(sections):
    """(op_name, shape or None, microseconds) of every op."""
    names = stat_lines(sections["GPU kernel durations (excluding waits)"])
    shapes = list(shape_lines(sections.get("Matmul shape backend summary", [])))
    calls, matmuls = [], []
    for kernel, line in stat_lines(sections["GPU kernel aggregate (by kernel type)"]).items():
        own = [(shape, of) for shape, of in shapes if type_of_shape(shape) == kernel]
        made = calls_of_type(line, names, own)
        calls += made
        matmuls += made if own else []
    for line in stat_lines(sections.get("Matmul backend summary", [])).values():
        agree(line, [c.series for c in matmuls])

    waits, buffers = (stat_lines(sections[title]) for title in ("GPU wait breakdown", "Command buffer GPU timing"))
    whole = next(line for name, line in stat_lines(sections["Event type summary"]).items() if name.startswith("GpuOp"))
    known = [c.series for c in calls] + list(series_of(waits).values()) + list(series_of(buffers).values())
    count = whole.count - sum(s.count for s in known)
    total = whole.total - sum(s.total() for s in known)
    calls += calls_of_scope(waits, "cb_wait", count // 2, total * 2 // 3)
    calls += calls_of_scope(buffers, "cb_gpu", count - count // 2, total - total * 2 // 3)
    agree(whole, [c.series for c in calls])
    for call in calls:
        yield from call.records()


def events(sections):
    """(type, data) of every record. The first mention of a name decides which of two equal lines comes first, so
    every name is mentioned in the order of the lines before the rest comes in any order."""
    first, rest = [], []
    for (parent, kernel), samples in internal_kernels(sections).items():
        for i, sample in enumerate(random.sample(samples, len(samples))):
            (rest if i else first).append(("InternalKernelCompleted", {
                "parent_op_name": parent, "internal_kernel_name": kernel, "duration_us": sample}))
    seen = set()
    for name, shape, sample in gpu_ops(sections):
        data = {"op_name": name, "backend": "Metal", "duration_us": sample}
        if shape:
            data["data"] = dict(shape, backend="gemv")
        (rest if name in seen else first).append(("GpuOpCompleted", data))
        seen.add(name)
    contents = {
        "GpuKernelDispatched": {"kernel_name": "sdpa", "op_name": "sdpa", "thread_groups": [14, 1, 1]},
        "ResourceCacheAccess": {"cache_key": "sdpa", "hit": True, "bytes": 4096},
        "KernelBackendSelected": {"op_name": "sdpa", "backend": "Metal", "reason": "OnlyAvailable"},
        "TensorPreparationStats": {"cache_hits": 3, "cache_misses": 1, "times": {"prepare_us": 12}},
        "ResourceCacheSummary": {"cache": "sdpa", "hits": 24, "misses": 0, "hit_rate": 1.0, "size": 1},
        "HostMemory": {"totals": {"bytes": 988097536}, "pools": {"kv": 12582912}},
        "GgufFileMmap": {"size_bytes": 988097536},
        "ModelWeights": {"total_bytes": 988097536, "breakdown": {"attention": 88080384}},
        "ForwardStep": {"total_bytes": 1048576, "breakdown": {"logits": 303872}},
    }
    for line in sections["Event type summary"]:
        name, count = re.match(r" *(\w+) \(count=(\d+)\)", line).groups()
        for i in range(int(count) if name in contents else 0):
            (rest if i else first).append((name, contents[name]))
    random.shuffle(rest)
    return first + rest


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    random.seed(3)
    with out.open("w") as file:
        for i, (kind, data) in enumerate(events(read_sections(source.read_text()))):
            json.dump({"timestamp": 7 * i, "span_id": None, "parent_span_id": None, "span_name": "",
                       "event": {"type": kind, "data": data}}, file, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()
