// Where time went: a whole, measured by itself, and the parts it is made of. What the parts leave
// over is a part, too, by name. From the shares and from what each part could take at least follows
// what to do about it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "report/document.h"

namespace tinyvllm {

struct TimedPart {
  enum Kind { kPrefill, kDecode, kSampling, kScheduling, kText, kOther };
  std::string name;
  std::vector<double> ms;  // of each time it ran
  double least_ms = 0;     // of all of them, at the machine's limits; 0: it has none
  std::string bound = {};  // what that limit is: "memory", "multiplying"
  Kind kind = kOther;

  double total_ms() const;
};

struct Breakdown {
  std::vector<TimedPart> parts;
  double total_ms = 0;

  double unaccounted_ms() const;
  // Parts that add up to more than the whole count something twice.
  Status check() const;
};

// Largest part first: total, count, average, median, share, and share of its limit.
Table to_table(const Breakdown& breakdown);

struct Bottleneck {
  std::string part;
  double ms = 0;
  double share = 0;
  std::string finding;  // one line: what the numbers say
  std::vector<std::string> suggestions;
};
Bottleneck find_bottleneck(const Breakdown& breakdown);

}  // namespace tinyvllm
