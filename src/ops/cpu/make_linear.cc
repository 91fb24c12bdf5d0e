// Packs weights at load, on all threads, one group of 8 rows at a time.
#include <sys/mman.h>
#include <unistd.h>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/linear_weights.h"
#include "ops/cpu/ops.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm::ops::cpu {
namespace {

// Groups that one task packs: a few hundred kilobytes of a usual row.
constexpr int64_t kGroupsPerTask = 16;

Form form_for(DType weights) {
  if (!is_quantized(weights)) return Form::kFloat;
  if (dtype_info(weights).block_elements == 256) return Form::kQ8K;
  return weights == DType::kQ8_0 ? Form::kQ8Wide : Form::kQ8;
}

const char* reason_for(Form form) {
  switch (form) {
    case Form::kFloat:
      return "float rows are multiplied where the file has them";
    case Form::kQ8:
      return "blocks of 32 in interleaved rows times int8 activations";
    case Form::kQ8Wide:
      return "blocks of 32 bytes in interleaved rows times int8 activations";
    case Form::kQ8K:
      return "blocks of 256 in interleaved rows times int8 activations";
  }
  return "";
}

void pack(ThreadPool& pool, const TensorView& view, LinearPart& part, char* to) {
  const int64_t k = view.shape[1];
  const auto* from = static_cast<const char*>(view.data);
  const auto stride = static_cast<int64_t>(row_bytes(view.dtype, k));
  const int64_t tasks = (part.groups() + kGroupsPerTask - 1) / kGroupsPerTask;
  pool.parallel_for(tasks, [&](int64_t task, int) {
    const int64_t end = std::min(part.groups(), (task + 1) * kGroupsPerTask);
    for (int64_t g = task * kGroupsPerTask; g < end; ++g) {
      const auto rows = static_cast<int>(std::min<int64_t>(kRowGroup, part.rows - g * kRowGroup));
      interleave(view.dtype, from + g * kRowGroup * stride, rows, k, to + g * part.group_bytes);
    }
  });
  part.data = to;
}

// Whole pages inside the view; those at its ends may belong to a neighbour still in use.
void drop_pages(const TensorView& view) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(view.data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(view.data) + view.bytes()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Result<Buffer> make_bias(Device& device, const LinearParts& parts, int64_t out) {
  if (parts.biases.empty()) return Buffer();
  TRY_ASSIGN(Buffer buffer,
             device.allocate(static_cast<size_t>(out) * sizeof(float), "the biases of a linear"));
  auto* to = static_cast<float*>(buffer.data());
  for (const TensorView& bias : parts.biases) {
    reference::dequantize(bias.dtype, bias.data, bias.shape.elements(), to);
    to += bias.shape.elements();
  }
  return buffer;
}

// Whether every 8 rows of the first half, and the same of the second, are a group each.
bool halves_align(const LinearWeights& w) {
  const int64_t half = w.out / 2;
  for (int64_t row = 0; row < half; row += kRowGroup) {
    const int64_t end = std::min(row + kRowGroup, half);
    for (const int64_t offset : {int64_t{0}, half}) {
      const LinearPart* part = w.part_at(offset + row);
      if (part == nullptr || offset + end > part->row_begin + part->rows) return false;
    }
  }
  return w.out % 2 == 0;
}

}  // namespace

const LinearPart* LinearWeights::part_at(int64_t row) const {
  for (const LinearPart& part : parts) {
    const int64_t inside = row - part.row_begin;
    if (inside >= 0 && inside < part.rows) return inside % kRowGroup == 0 ? &part : nullptr;
  }
  return nullptr;
}

Result<Linear> make_linear(Device& device, ThreadPool& pool, const LinearParts& parts) {
  auto weights = std::make_unique<LinearWeights>();
  weights->in = parts.weights.front().shape[1];
  weights->dtype = parts.weights.front().dtype;
  size_t packed_bytes = 0;
  for (const TensorView& view : parts.weights) {
    LinearPart part;
    part.dtype = view.dtype;
    part.kernel = kernels(device).linear(view.dtype);
    if (part.kernel == nullptr) {
      return error("linear: weights of type ", dtype_name(view.dtype), " have no kernel on ",
                   device.name());
    }
    part.row_begin = weights->out;
    part.rows = view.shape[0];
    const size_t interleaved = interleaved_bytes(view.dtype, weights->in);
    part.form = form_for(view.dtype);
    part.group_bytes = static_cast<int64_t>(
        part.interleaved() ? interleaved : row_bytes(view.dtype, weights->in) * kRowGroup);
    part.data = static_cast<const char*>(view.data);
    const size_t bytes = static_cast<size_t>(part.groups()) * interleaved;
    packed_bytes += bytes;
    weights->bytes += part.interleaved() ? bytes : view.bytes();
    weights->out += part.rows;
    weights->groups += part.groups();
    weights->parts.push_back(part);
  }
  weights->halves_align = halves_align(*weights);
  weights->reason = reason_for(weights->parts.front().form);
  TRY_ASSIGN(weights->packed, device.allocate(packed_bytes, "packed weights"));
  TRY_ASSIGN(weights->bias, make_bias(device, parts, weights->out));

  auto* to = static_cast<char*>(weights->packed.data());
  for (size_t i = 0; i < parts.weights.size(); ++i) {
    LinearPart& part = weights->parts[i];
    if (!part.interleaved()) continue;
    pack(pool, parts.weights[i], part, to);
    to += part.groups() * part.group_bytes;
    if (parts.drop_sources) drop_pages(parts.weights[i]);
  }
  return Linear(std::move(weights));
}

}  // namespace tinyvllm::ops::cpu
