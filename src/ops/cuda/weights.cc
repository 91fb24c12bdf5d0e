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

Result<Matrix> upload_matrix(Device& device, const TensorView& view) {
  if (!can_pack(view.dtype)) {
    return error("weights of type ", dtype_name(view.dtype), " have no kernel on ", device.name());
  }
  Matrix matrix;
  Packed& packed = matrix.packed;
  packed = packed_form(view.dtype, view.shape[0], view.shape[1]);
  const int64_t low = aligned(packed.out * low_bytes(packed));
  const int64_t high = aligned(packed.out * high_bytes(packed));
  const int64_t scales = packed.out * scale_bytes(packed);
  TRY_ASSIGN(matrix.memory, device.allocate(static_cast<size_t>(low + high + scales), "weights"));
  char* data = static_cast<char*>(matrix.memory.data());
  packed.low = data;
  if (high > 0) packed.high = data + low;
  if (scales > 0) packed.scales = data + low + high;
  if (view.dtype == DType::kF16 && packed.stride == packed.in) {
    TRY(device.upload(data, view.data, view.bytes()));
    return matrix;
  }
  TRY_ASSIGN(const Buffer raw, device.allocate(view.bytes(), "weights on their way"));
  TRY(device.upload(raw.data(), view.data, view.bytes()));
  pack(view.dtype, raw.data(), packed, static_cast<CudaDevice&>(device).stream());
  return matrix;
}

Result<Linear> make_linear(Device& device, const LinearParts& parts) {
  auto weights = std::make_unique<CudaLinear>();
  weights->in = parts.weights.front().shape[1];
  weights->dtype = parts.weights.front().dtype;
  for (const TensorView& view : parts.weights) {
    TRY_ASSIGN(Matrix matrix, upload_matrix(device, view));
    const Packed& p = matrix.packed;
    weights->out += p.out;
    weights->bytes += static_cast<size_t>(p.out * (low_bytes(p) + high_bytes(p) + scale_bytes(p)));
    weights->parts.push_back(std::move(matrix));
  }
  TRY_ASSIGN(weights->bias, make_bias(device, parts, weights->out));
  return Linear(std::move(weights));
}

}  // namespace tinyvllm::ops::cuda
