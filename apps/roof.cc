#include "apps/roof.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "apps/decode_meter.h"
#include "ops/limits.h"

namespace tinyvllm {
namespace {

constexpr size_t kFirstCacheBytes = size_t{16}
                                    << 10;  // of each core; half of the smallest there is

// Seconds; none at a rate that nobody has measured.
double over(double work, double rate) { return rate > 0 ? work / rate : 0; }

}  // namespace

Roof::Bound Roof::least(const OpCall& call) const {
  const std::string_view op = call.op;
  const bool linear = op.find("linear") != std::string_view::npos;
  const bool from_memory = linear || op == "attention" || op == "embedding";
  if (!from_memory && cache_bytes_per_s <= 0) return {0, "-"};
  // A linear's activations stay in the caches; what has to come is its weights.
  const double weights =
      static_cast<double>(row_bytes(call.dtype, call.in)) * static_cast<double>(call.out);
  const double bytes = linear ? std::min(weights, call.bytes) : call.bytes;
  const double rate = is_quantized(call.dtype) ? limits.int8_ops_per_s : limits.flops_per_s;
  const double moving = over(bytes, from_memory ? weights_bytes_per_s : cache_bytes_per_s);
  const double multiplying = over(call.flops, rate);
  if (multiplying > moving) return {multiplying, "multiplying"};
  return {moving, from_memory ? "memory" : "caches"};
}

Roof::Bound Roof::least(const std::vector<OpCall>& calls) const {
  std::map<const char*, double> by;
  Bound all;
  for (const OpCall& call : calls) {
    const Bound one = least(call);
    all.seconds += one.seconds;
    by[one.by] += one.seconds;
  }
  const auto most = std::max_element(
      by.begin(), by.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != by.end()) all.by = most->first;
  return all;
}

Result<Roof> make_roof(Runtime& runtime, const MachineLimits& limits, size_t weight_bytes) {
  Roof roof{limits, limits.read_bytes_per_s, 0};
  const auto read_rate = [&](size_t bytes) {
    return ops::measure_cached_read(runtime.device(), runtime.pool(), bytes);
  };
  const size_t first_caches = kFirstCacheBytes * static_cast<size_t>(runtime.pool().size());
  TRY_ASSIGN(roof.cache_bytes_per_s, read_rate(first_caches));
  if (weight_bytes > 0 && weight_bytes < runtime.device().spec().last_cache_bytes) {
    TRY_ASSIGN(const double rate, read_rate(std::max(weight_bytes, first_caches)));
    roof.weights_bytes_per_s = std::max(rate, limits.read_bytes_per_s);
  }
  return roof;
}

Figure roofline(const Roof& roof, const std::vector<Series>& points) {
  const double bandwidth = roof.weights_bytes_per_s / 1e9;
  const auto line = [&](const char* name, double rate) {
    const double peak = rate / 1e9;
    return Series{name, {{0.05, 0.05 * bandwidth}, {peak / bandwidth, peak}, {1000, peak}}};
  };
  std::vector<Series> series{line("float limit", roof.limits.flops_per_s)};
  if (roof.limits.int8_ops_per_s != roof.limits.flops_per_s) {
    series.push_back(line("int8 limit", roof.limits.int8_ops_per_s));
  }
  series.insert(series.end(), points.begin(), points.end());
  return Figure{to_svg(Chart{"Roofline", {"FLOP for each byte", true}, {"GFLOP/s", true}, series})};
}

WorkLimit::WorkLimit(const Roof& roof, const ModelInfo& info, const ModelSummary& summary)
    : roof_(roof), weight_bytes_(static_cast<double>(info.weight_bytes)) {
  const auto parameters = [&](Component component) {
    return static_cast<double>(summary.components[static_cast<size_t>(component)].parameters);
  };
  double ffn = parameters(Component::kFeedForward);
  if (summary.experts.value_or(0) > 0) {
    ffn *= static_cast<double>(summary.experts_used.value_or(1)) /
           static_cast<double>(*summary.experts);
  }
  prompt_flops_ = 2 * (parameters(Component::kAttention) + ffn);
  head_flops_ = 2 * static_cast<double>(info.hidden * info.vocab_size);
  rate_ =
      is_quantized_name(main_dtype(summary)) ? roof.limits.int8_ops_per_s : roof.limits.flops_per_s;
  kv_bytes_ = kv_bytes_read(info.kv_groups, 1);
}

double WorkLimit::least_prefill_s(int requests, int prompt) const {
  const double tokens = static_cast<double>(requests) * prompt;
  return std::max(over(weight_bytes_, roof_.weights_bytes_per_s),
                  over(tokens * prompt_flops_ + requests * head_flops_, rate_));
}

double WorkLimit::least_decode_s(int requests, int prompt, int tokens) const {
  double seconds = 0;
  for (int i = 1; i < tokens; ++i) {
    const double read = weight_bytes_ + requests * kv_bytes_ * (prompt + i);
    seconds += std::max(over(read, roof_.weights_bytes_per_s),
                        over(requests * (prompt_flops_ + head_flops_), rate_));
  }
  return seconds;
}

double WorkLimit::max_tok_s(int requests, int prompt, int tokens) const {
  return over(static_cast<double>(requests) * tokens,
              least_prefill_s(requests, prompt) + least_decode_s(requests, prompt, tokens));
}

std::string main_dtype(const ModelSummary& summary) {
  const auto most = std::max_element(
      summary.dtypes.begin(), summary.dtypes.end(),
      [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  return most == summary.dtypes.end() ? "?" : most->first;
}

bool is_quantized_name(const std::string& dtype) {
  return dtype.starts_with("Q") || dtype.starts_with("IQ");
}

}  // namespace tinyvllm
