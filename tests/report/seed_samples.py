"""Finds whole microseconds that have given statistics: count, total, least, greatest, p95 and p99 of
single series, and p95 and p99 of several series together.

A series is kept as bounds, low[i] <= i-th smallest sample <= high[i], that every demand narrows; at the
end a series of the right sum is picked between them. A percentile lies between two neighbours, and how far
these are apart (`gap`) is free: where equal ones contradict something else, wider gaps are tried.
"""
import bisect
import copy
import itertools
import math

GAPS = [*range(0, 20), *range(20, 120, 2)]


class Series:
    def __init__(self, count, totals, least, greatest):
        """`totals`: the sums that would do, the best one first."""
        self.count, self.totals = count, totals
        self.low, self.high = [least] * count, [greatest] * count

    def at_least(self, index, value):
        self.low = [max(a, value) if i >= index else a for i, a in enumerate(self.low)]

    def at_most(self, index, value):
        self.high = [min(b, value) if i <= index else b for i, b in enumerate(self.high)]

    def pin(self, index, value):
        self.at_least(index, value)
        self.at_most(index, value)

    def percentile(self, percent, value, gap=0, least=0):
        below, above, weight = neighbours(self.count, percent)
        if above > below and self.low[above] > value:  # known already: the greatest of a short series
            gap = (self.low[above] - value) / (1 - weight)
            return self.pin(below, max(self.low[below], least, round(self.low[above] - gap)))
        lower = math.floor(value - gap * weight + 0.5)
        self.pin(below, lower)
        self.pin(above, lower + gap if above > below else value)

    def feasible(self):
        return all(a <= b for a, b in zip(self.low, self.high)) and (
            sum(self.low) <= max(self.totals) and sum(self.high) >= min(self.totals))

    def split(self, above, lower, upper):
        """Exactly `above` samples are at least `upper`, all others at most `lower`."""
        narrowed = copy.copy(self)
        narrowed.at_least(self.count - above, upper)
        narrowed.at_most(self.count - above - 1, lower)
        return narrowed

    def choices(self, lower, upper):
        """How many samples may lie at `upper` or above, while none lies between: a range. More of them raise
        both the least and the greatest sum that can be."""
        first, last = sum(a > lower for a in self.low), sum(b >= upper for b in self.high)
        counts = range(first, last + 1)
        high_enough = lambda n: sum(self.split(n, lower, upper).high) >= min(self.totals)
        too_high = lambda n: sum(self.split(n, lower, upper).low) > max(self.totals)
        return (first + bisect.bisect_left(counts, True, key=high_enough),
                first + bisect.bisect_left(counts, True, key=too_high) - 1)

    def total(self):
        """The first of the totals that can be."""
        return next(t for t in self.totals if sum(self.low) <= t <= sum(self.high))

    def pick(self):
        """Samples between the bounds, with that total."""
        total = self.total()
        part = (total - sum(self.low)) / max(1, sum(self.high) - sum(self.low))
        samples = [a + int(part * (b - a)) for a, b in zip(self.low, self.high)]
        rest = total - sum(samples)  # int() rounds down, so this is missing
        for i in reversed(range(self.count)):
            more = min(rest, self.high[i] - samples[i])
            samples[i] += more
            rest -= more
        return samples


def add_up(series, total, tolerance=4, most=3):
    """Shifts totals a little, where there is a choice, so that they add up to about `total`."""
    excess = sum(s.total() for s in series) - total
    for s in reversed(series):
        if abs(excess) <= tolerance:
            return
        now, shift = s.total(), max(-most, min(most, excess - math.copysign(tolerance, excess)))
        new = min((t for t in s.totals if sum(s.low) <= t <= sum(s.high)), key=lambda t: abs(now - shift - t))
        s.totals = [new]
        excess -= now - new


def neighbours(count, percent):
    """The two indices that a percentile lies between, and how far it is from the lower one."""
    rank = percent / 100 * (count - 1)
    return math.floor(rank), math.ceil(rank), rank - math.floor(rank)


def try_together(series, percent, value, gap):
    """The series narrowed so that `value` is their percentile as one, or None."""
    count = sum(s.count for s in series)
    below, above, weight = neighbours(count, percent)
    lower = math.floor(value - gap * weight + 0.5)
    upper = lower + max(gap, 1)  # with no gap both neighbours are `lower`, and at most the rest is above
    choices = [s.choices(lower, upper) for s in series]
    wanted = count - above if gap else min(count - above - 1, sum(most for _, most in choices))
    room = wanted - sum(least for least, _ in choices)
    slack = sum(most - least for least, most in choices)
    if any(least > most for least, most in choices) or not 0 <= room <= slack:
        return None
    takes = [least + (most - least) * room // max(1, slack) for least, most in choices]
    for i, (_, most) in enumerate(choices):  # what rounding down left over
        takes[i] += min(most - takes[i], wanted - sum(takes))
    made = [s.split(take, lower, upper) for s, take in zip(series, takes)]
    equal = 1 if gap else count - below - wanted
    places = [(lower, range(1, equal + 1))] * equal + [(upper, (0,))] * (gap > 0)
    pinned = set()
    for exact, offsets in places:  # somebody must have the neighbours themselves
        for i, offset in itertools.product(range(len(made)), offsets):
            index = made[i].count - takes[i] - offset
            trial = copy.copy(made[i])
            if (i, index) in pinned or not 0 <= index < trial.count:
                continue
            trial.pin(index, exact)
            if trial.feasible():
                made[i] = trial
                pinned.add((i, index))
                break
        else:
            return None
    return made


def together(series, percent, value):
    """Makes `value` the percentile of all series as one."""
    lows, highs = (sorted(itertools.chain(*lists)) for lists in ([s.low for s in series], [s.high for s in series]))
    below, above, weight = neighbours(len(lows), percent)
    for gap in GAPS:
        lower = math.floor(value - gap * weight + 0.5)
        if not (lows[below] <= lower <= highs[below] and lows[above] <= lower + gap <= highs[above]):
            continue
        made = try_together(series, percent, value, gap)
        if made:
            for old, new in zip(series, made):
                old.low, old.high = new.low, new.high
            return
    raise ValueError(f"p{percent}={value} of {len(series)} series cannot be")
