#include "ops/cuda/weights.h"

#include "device/cuda/cuda_device.h"
#include "ops/cuda/host.h"
#include "ops/cuda/ops.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm::ops::cuda {
namespace {

constexpr int64_t kPlaneAlignment = 256;

int64_t aligned(int64_t bytes) {
  return (bytes + kPlaneAlignment - 1) / kPlaneAlignment * kPlaneAlignment;
}

Result<Buffer> make_bias(Device& device, const LinearParts& parts, int64_t out) {
  if (parts.biases.empty()) return Buffer();
  std::vector<float> values(static_cast<size_t>(out));
  float* to = values.data();
  for (const TensorView& bias : parts.biases) {
    reference::dequantize(bias.dtype, bias.data, bias.shape.elements(), to);
    to += bias.shape.elements();
  }
  const size_t bytes = values.size() * sizeof(float);
  TRY_ASSIGN(Buffer buffer, device.allocate(bytes, "the biases of a linear"));
  TRY(device.upload(buffer.data(), values.data(), bytes));
  return buffer;
}

}  // namespace

namespace {

// Of a matrix: its planes, one behind the other.
struct Planes {
  int64_t low;
  int64_t high;
  int64_t scales;
  size_t bytes() const { return static_cast<size_t>(low + high + scales); }
};
Planes planes_of(const Packed& p) {
  return {aligned(p.out * low_bytes(p)), aligned(p.out * high_bytes(p)),
          aligned(p.out * scale_bytes(p))};
}

size_t bytes_of(const Packed& p) {
  return static_cast<size_t>(p.out * (low_bytes(p) + high_bytes(p) + scale_bytes(p)));
}

// Memory for a matrix of that form.
Result<Matrix> allocate_matrix(Device& device, const Packed& form) {
  Matrix matrix{form, {}};
  Packed& packed = matrix.packed;
  const Planes planes = planes_of(packed);
  TRY_ASSIGN(Buffer memory, device.allocate(planes.bytes(), "weights"));
  char* data = static_cast<char*>(memory.data());
  matrix.memory = std::make_shared<const Buffer>(std::move(memory));
  packed.low = data;
  if (planes.high > 0) packed.high = data + planes.low;
  if (planes.scales > 0) packed.scales = data + planes.low + planes.high;
  return matrix;
}

// Whether a matrix has the file's rows as they are.
bool is_file_form(DType dtype, const Packed& packed) {
  return dtype == DType::kF16 && packed.stride == packed.in;
}

// The file's rows into rows of a matrix.
Status upload_rows(Device& device, const TensorView& view, const Packed& packed) {
  if (view.bytes() == 0) return Status();
  auto& card = static_cast<CudaDevice&>(device);
  const bool as_is = is_file_form(view.dtype, packed);
  void* raw = const_cast<void*>(packed.low);
  if (!as_is) {
    TRY_ASSIGN(raw, card.scratch(view.bytes()));
  }
  const UploadedRows rows{view.dtype,
                          static_cast<const char*>(raw),
                          static_cast<int64_t>(view.bytes()),
                          static_cast<int64_t>(row_bytes(view.dtype, view.shape[1])),
                          reinterpret_cast<uint64_t>(view.data),
                          as_is ? Packed() : packed};
  return card.upload_weights(raw, view.data, view.bytes(), [=, &card](bool is_last) {
    if (!card.arrived().has_value()) card.arrived() = std::vector<UploadedRows>();
    auto& arrived = *std::any_cast<std::vector<UploadedRows>>(&card.arrived());
    arrived.push_back(rows);
    if (!is_last) return;
    CUstream_st* const stream = card.behind_weights();
    look_for_not_finite(arrived.data(), arrived.size(), card.first_not_finite(), stream);
    pack(arrived.data(), arrived.size(), stream);
    arrived.clear();
  });
}

Packed form_of(const TensorView& view) {
  return packed_form(view.dtype, view.shape[0], view.shape[1]);
}

Status check_packable(const Device& device, const TensorView& view) {
  if (can_pack(view.dtype)) return Status();
  return error("weights of type ", dtype_name(view.dtype), " have no kernel on ", device.name());
}

bool same_form(const Packed& a, const Packed& b) {
  return a.form == b.form && a.group == b.group && a.stride == b.stride;
}

}  // namespace

Result<Matrix> upload_matrix(Device& device, const TensorView& view) {
  TRY(check_packable(device, view));
  return upload_matrix(device, std::span(&view, 1));
}

// One below the other.
Result<Matrix> upload_matrix(Device& device, std::span<const TensorView> views) {
  Packed form = packed_form(views.front().dtype, 0, views.front().shape[1]);
  for (const TensorView& view : views) form.out += view.shape[0];
  TRY_ASSIGN(Matrix matrix, allocate_matrix(device, form));
  int64_t row = 0;
  for (const TensorView& view : views) {
    TRY(upload_rows(device, view, rows_of(matrix.packed, row, view.shape[0])));
    row += view.shape[0];
  }
  return matrix;
}

Result<const void*> first_not_finite(Device& device) {
  auto& card = static_cast<CudaDevice&>(device);
  constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t first = kNone;
  card.stream();  // all that follows the uploads is enqueued
  TRY(card.enqueued());
  TRY(card.download(&first, card.first_not_finite(), sizeof first));
  TRY(card.upload(card.first_not_finite(), &kNone, sizeof kNone));
  card.release_scratch();
  return first == kNone ? nullptr : reinterpret_cast<const void*>(first);
}

std::optional<GateUp> gate_and_up(const CudaLinear& w) {
  const Packed& first = w.parts.front().packed;
  if (w.parts.size() == 1 && w.out % 2 == 0) {
    return GateUp{rows_of(first, 0, w.out / 2), rows_of(first, w.out / 2, w.out / 2)};
  }
  if (w.parts.size() != 2) return std::nullopt;
  const Packed& second = w.parts.back().packed;
  if (first.form != second.form || first.group != second.group || first.out != second.out) {
    return std::nullopt;
  }
  return GateUp{first, second};
}

void load_weight_kernels() {
  load_looking();
  load_packing();
}

// Every matrix of a file is used, and once (a head that is the embedding is the same tensor), or
// the model is refused; so their bytes are needed, if nothing else is.
Status expect_weights(Device& device, std::span<const TensorView> weights) {
  CudaDevice::ExpectedWeights expected;
  bool is_foreseen = true;
  for (const TensorView& view : weights) {
    const Shape& shape = view.shape;
    if (shape.rank > 1 && can_pack(view.dtype)) {
      const Packed form = packed_form(view.dtype, shape.rows(), shape.row_elements());
      expected.bytes += planes_of(form).bytes();
      expected.least_bytes += bytes_of(form);
      if (shape.rank > 2) is_foreseen = false;  // experts, which come in an order of their own
      if (is_foreseen) expected.order.push_back({view.data, view.bytes()});
      expected.pack = expected.pack || !is_file_form(view.dtype, form);
    } else {  // a norm or a bias, as floats
      expected.bytes += static_cast<size_t>(aligned(shape.elements() * int64_t{sizeof(float)}));
    }
  }
  return static_cast<CudaDevice&>(device).expect_weights(expected);
}

Result<Linear> make_linear(Device& device, const LinearParts& parts) {
  auto weights = std::make_unique<CudaLinear>();
  weights->in = parts.weights.front().shape[1];
  weights->dtype = parts.weights.front().dtype;
  // Neighbours of one form become one matrix, and so one product.
  const std::span<const TensorView> views = parts.weights;
  for (const TensorView& view : views) TRY(check_packable(device, view));
  for (size_t begin = 0; begin < views.size();) {
    size_t end = begin + 1;
    while (end < views.size() && same_form(form_of(views[begin]), form_of(views[end]))) end += 1;
    Matrix matrix;
    if (parts.on_device != nullptr) {
      matrix = *static_cast<const Matrix*>(parts.on_device.get());
    } else {
      TRY_ASSIGN(matrix, upload_matrix(device, views.subspan(begin, end - begin)));
    }
    begin = end;
    weights->out += matrix.packed.out;
    weights->bytes += bytes_of(matrix.packed);
    weights->parts.push_back(std::move(matrix));
  }
  TRY_ASSIGN(weights->bias, make_bias(device, parts, weights->out));
  return Linear(std::move(weights));
}

}  // namespace tinyvllm::ops::cuda
