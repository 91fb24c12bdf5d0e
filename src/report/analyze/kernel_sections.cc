// The kernel sections: which samples each of them gathers, in what order and how many lines.
#include <algorithm>
#include <cctype>

#include "base/strings.h"
#include "report/analyze/sections.h"

namespace tinyvllm {
namespace {

bool holds(std::string_view text, std::string_view lower_part) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(text.begin(), text.end(), lower_part.begin(), lower_part.end(), same) !=
         text.end();
}

std::string to_lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Longest first; lines that tie stay as they first appeared.
void sort_and_cut(std::vector<StatLine>& lines, size_t top) {
  std::stable_sort(lines.begin(), lines.end(), [](const StatLine& a, const StatLine& b) {
    return a.stats.total_ns > b.stats.total_ns;
  });
  if (lines.size() > top) lines.resize(top);
}

using Groups = NameTable<Samples>;

StatSection by_total(std::string title, const Groups& groups, size_t top,
                     std::string_view filter = {}) {
  StatSection section{std::move(title), {}};
  for (const auto& [name, samples] : groups) {
    if (holds(name, filter)) section.lines.push_back({name, summarize(samples)});
  }
  sort_and_cut(section.lines, top);
  return section;
}

StatSection by_count(std::string title, const NameTable<int64_t>& counts, std::string_view prefix,
                     size_t top) {
  StatSection section{std::move(title), {}};
  for (const auto& [name, count] : counts) {
    section.lines.push_back({str_cat(prefix, name), {}, count});
  }
  std::stable_sort(section.lines.begin(), section.lines.end(),
                   [](const StatLine& a, const StatLine& b) { return *a.count > *b.count; });
  if (section.lines.size() > top) section.lines.resize(top);
  return section;
}

// All samples of a kind, under the name that `name_of(op_name, series)` gives them.
template <class NameOf>
Groups op_groups(const Trace& trace, OpKind kind, const NameOf& name_of) {
  Groups groups;
  for (const auto& [name, series] : trace.ops) {
    if (series.kind == kind) append(groups[name_of(name, series)], series.samples);
  }
  return groups;
}

std::string_view full_name(const std::string& name, const OpSeries&) { return name; }
std::string_view part_name(const std::string&, const OpSeries& series) { return series.part; }

// Only these two say how long something took; others that carry a duration repeat theirs.
Samples samples_of_type(const Trace& trace, std::string_view type) {
  Samples all;
  if (type == "GpuOpCompleted") {
    for (const auto& [name, series] : trace.ops) append(all, series.samples);
  } else if (type == "InternalKernelCompleted") {
    for (const auto& [parent, kernels] : trace.internals) {
      for (const auto& [kernel, samples] : kernels) append(all, samples);
    }
  }
  return all;
}

StatSection event_types(const Trace& trace) {
  std::vector<std::pair<int64_t, std::string_view>> types;
  for (const auto& [name, type] : trace.types) types.emplace_back(type.count, name);
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  StatSection section{"Event type summary", {}};
  for (const auto& [count, name] : types) {
    section.lines.push_back(
        {str_cat(name, " (count=", count, ")"), summarize(samples_of_type(trace, name))});
  }
  return section;
}

void add_internals(const Trace& trace, const AnalyzeOptions& options, std::string_view filter,
                   std::vector<StatSection>& out) {
  Groups parents, pairs, kernels;
  for (const auto& [parent, inner] : trace.internals) {
    for (const auto& [kernel, samples] : inner) {
      append(parents[parent], samples);
      append(pairs[str_cat(parent, " :: ", kernel)], samples);
      const bool sums_others = kernel.ends_with("_total") || kernel.ends_with("cb_wait");
      if (!sums_others) append(kernels[kernel], samples);
    }
  }
  out.push_back(by_total("Internal kernel by parent", parents, options.top));
  out.push_back(by_total("Internal kernel by parent/op", pairs, options.top));
  out.push_back(by_total("Kernel aggregate (all parents)", kernels, options.kernel_top, filter));
}

void add_matmuls(const Trace& trace, size_t top, std::string_view filter,
                 std::vector<StatSection>& out) {
  Groups backends, pairs;
  NameTable<Groups> shapes;
  for (const auto& [key, series] : trace.matmuls) {
    append(backends[str_cat("backend=", series.backend)], series.samples);
    append(pairs[str_cat(series.op, " @ ", series.backend)], series.samples);
    append(shapes[series.shape][str_cat("backend=", series.backend)], series.samples);
  }
  out.push_back(by_total("Matmul backend summary", backends, top, filter));
  out.push_back(by_total("Matmul op/backend summary", pairs, top, filter));
  StatSection by_shape{"Matmul shape backend summary", {}};
  for (const auto& [shape, groups] : shapes) {
    StatLine line{shape, {}};
    for (const auto& [backend, samples] : groups) {
      if (!holds(shape, filter) && !holds(backend, filter)) continue;
      line.inner.push_back({backend, summarize(samples)});
      line.stats.total_ns += line.inner.back().stats.total_ns;
    }
    sort_and_cut(line.inner, top);
    if (!line.inner.empty()) by_shape.lines.push_back(std::move(line));
  }
  sort_and_cut(by_shape.lines, top);
  out.push_back(std::move(by_shape));
}

StatSection syncs(const Trace& trace) {
  Samples all;
  for (const auto& [name, series] : trace.ops) {
    if (holds(name, "sync")) append(all, series.samples);
  }
  for (const auto& [parent, kernels] : trace.internals) {
    for (const auto& [kernel, samples] : kernels) {
      if (holds(kernel, "sync")) append(all, samples);
    }
  }
  return {"Sync operations", {{"sync kernels", summarize(std::move(all))}}};
}

}  // namespace

std::vector<StatSection> kernel_sections(const Trace& trace, const AnalyzeOptions& options) {
  const std::string filter = to_lower(options.kernel_filter);
  const size_t top = options.top;
  std::vector<StatSection> out;
  out.push_back(event_types(trace));
  out.push_back(by_count("Backend selection summary", trace.selected_backend, "backend=", top));
  out.push_back(by_count("Backend selection reasons", trace.selected_reason, "reason=", top));
  out.push_back(by_count("Backend selection by op/backend", trace.selected_op, "", top));
  add_internals(trace, options, filter, out);
  out.push_back(by_total("GPU kernel durations (excluding waits)",
                         op_groups(trace, OpKind::kKernel, full_name), top, filter));
  out.push_back(by_total("GPU kernel aggregate (by kernel type)",
                         op_groups(trace, OpKind::kKernel, part_name), top, filter));
  add_matmuls(trace, top, filter, out);
  out.push_back(by_total("GPU wait breakdown", op_groups(trace, OpKind::kWait, full_name), top));
  out.push_back(by_total("Command buffer GPU timing",
                         op_groups(trace, OpKind::kCommandBuffer, full_name), top));
  out.push_back(syncs(trace));
  return out;
}

}  // namespace tinyvllm
