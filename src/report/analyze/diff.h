// What changed between two runs: per op and phase, and per kind of step. Time on a shared machine
// is noisy in bursts and drifts, so neighbouring samples say nearly the same thing: each run is cut
// into blocks of neighbouring steps, a block counts once (its median), and the confidence interval
// comes from how much blocks differ among themselves. The level is shared out over all comparisons,
// so that many of them do not make a difference by chance. A shift that nearly all ops share is the
// machine's (its clock, its other users) or something under all of them: it is told as one, and
// only what stands out from it is named.
#pragma once

#include <string>
#include <vector>

#include "report/analyze/sections.h"
#include "report/analyze/trace.h"

namespace tinyvllm {

enum class Verdict { kSame, kFaster, kSlower, kAsAll, kOtherWork, kTooFew };

struct Change {
  std::string phase;  // "decode"
  std::string what;   // "linear", or "step of 16 tokens"
  bool is_step = false;
  int64_t calls_a = 0, calls_b = 0;
  double ns_a = 0, ns_b = 0;              // a typical call
  double percent = 0, low = 0, high = 0;  // from a to b, with its interval
  double cost_ns = 0;                     // over all calls of b; negative: saved
  Verdict verdict = Verdict::kSame;
};

struct Diff {
  std::vector<Change> changes;  // what costs or saves most first
  bool different = false;
  double common_percent = 0;  // a shift that nearly all ops share; 0: none
};

Diff diff_traces(const Trace& a, const Trace& b);

TableSection to_section(const Diff& diff, size_t top);

}  // namespace tinyvllm
