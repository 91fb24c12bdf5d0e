// What ops reached beside what the machine was measured to allow. The least time of an op is that
// of its bytes at the memory's speed or of its arithmetic at the cores' speed, whichever is longer:
// that one binds it. Used by live profiles and by the analyzer alike.
//
//   Roofline roofline;
//   roofline.add("linear", DType::kQ4_0, Phase::kDecode, {1, seconds, bytes, flops});
//   roofline.add_wall(seconds_of_the_steps);
//   puts(to_text(roofline.table(limits)).c_str());
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/dtype.h"
#include "telemetry/ledger.h"
#include "telemetry/limits.h"

namespace tinyvllm {

struct OpWork {
  int64_t calls = 0;
  double seconds = 0;
  double bytes = 0;
  double flops = 0;
};

// kCache: it moved its bytes faster than memory can, so that they came from a cache and only the
// arithmetic is held against it. kUnknown: there are no limits to compare with.
enum class Bound { kUnknown, kMemory, kCompute, kCache };
const char* bound_name(Bound bound);  // "memory"

struct RooflineRow {
  std::string op;  // "linear_add"
  DType dtype = DType::kF32;
  Phase phase = Phase::kDecode;
  OpWork work;
  double share = 0;  // of the wall time
  double gb_per_s = 0;
  double gflop_per_s = 0;
  Bound bound = Bound::kUnknown;
  double limit_seconds = 0;  // that the same calls would take at the limit
  double limit_percent = 0;  // of the limit that was reached
};

struct RooflineTable {
  MachineLimits limits;
  std::vector<RooflineRow> rows;  // longest first
  double wall_seconds = 0;        // of all steps
  double op_seconds = 0;          // of that, inside ops
  double limit_seconds = 0;       // what the steps would take with every op at its limit and
                                  // nothing between them
  double unexplained_seconds() const { return wall_seconds - op_seconds; }
};

class Roofline {
 public:
  void add(std::string_view op, DType dtype, Phase phase, const OpWork& work);
  void add_wall(double seconds) { wall_seconds_ += seconds; }

  // Limits that are 0 are not known. Without any wall time the ops are all there is.
  RooflineTable table(const MachineLimits& limits) const;

 private:
  std::map<std::tuple<std::string, DType, Phase>, OpWork> work_;
  double wall_seconds_ = 0;
};

// For a terminal, a row a line.
std::string to_text(const RooflineTable& table);

}  // namespace tinyvllm
