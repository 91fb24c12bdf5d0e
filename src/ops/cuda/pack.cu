// Rows as files have them to planes (packed.h), and planes to halves. A thread per 32 columns: this
// runs once per weight, behind a copy over the bus that takes ten times as long.
#include <cuda_bf16.h>
#include <vector>

#include "ops/cuda/unpack.cuh"

namespace tinyvllm::ops::cuda {
namespace {

using Bytes = const uint8_t*;

__device__ float half_at(Bytes b) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(b[0] | b[1] << 8)));
}

// Each type says, for column e of a block: its code, and the scale and min that go with it.
template <DType>
struct Block;

template <>
struct Block<DType::kQ4_0> {
  static constexpr int kColumns = 32, kBytes = 18;
  static __device__ uint32_t code(Bytes b, int e) { return b[2 + e % 16] >> (e / 16 * 4) & 15; }
  static __device__ float2 affine(Bytes b, int) { return {half_at(b), -8 * half_at(b)}; }
};
template <>
struct Block<DType::kQ4_1> {
  static constexpr int kColumns = 32, kBytes = 20;
  static __device__ uint32_t code(Bytes b, int e) { return b[4 + e % 16] >> (e / 16 * 4) & 15; }
  static __device__ float2 affine(Bytes b, int) { return {half_at(b), half_at(b + 2)}; }
};
template <>
struct Block<DType::kQ5_0> {
  static constexpr int kColumns = 32, kBytes = 22;
  static __device__ uint32_t code(Bytes b, int e) {
    return (b[6 + e % 16] >> (e / 16 * 4) & 15) | (b[2 + e / 8] >> (e % 8) & 1) << 4;
  }
  static __device__ float2 affine(Bytes b, int) { return {half_at(b), -16 * half_at(b)}; }
};
template <>
struct Block<DType::kQ5_1> {
  static constexpr int kColumns = 32, kBytes = 24;
  static __device__ uint32_t code(Bytes b, int e) {
    return (b[8 + e % 16] >> (e / 16 * 4) & 15) | (b[4 + e / 8] >> (e % 8) & 1) << 4;
  }
  static __device__ float2 affine(Bytes b, int) { return {half_at(b), half_at(b + 2)}; }
};
template <>
struct Block<DType::kQ8_0> {
  static constexpr int kColumns = 32, kBytes = 34;
  static __device__ uint32_t code(Bytes b, int e) { return b[2 + e]; }
  static __device__ float2 affine(Bytes b, int) { return {half_at(b), 0}; }
};

// Two bits of column e where 32 bytes serve columns j, j + 32, j + 64 and j + 96 of each 128.
__device__ uint32_t pair_at(Bytes pairs, int e) {
  return pairs[e / 128 * 32 + e % 32] >> (e % 128 / 32 * 2) & 3;
}
// A nibble where 32 bytes serve columns j and j + 32 of each 64.
__device__ uint32_t nibble_at(Bytes nibbles, int e) {
  return nibbles[e / 64 * 32 + e % 32] >> (e % 64 / 32 * 4) & 15;
}
// Eight 6-bit scales and eight 6-bit minima in 12 bytes: those of columns 32 j….
__device__ float2 scale_and_min(Bytes b, int j) {
  const int low = j % 4;
  const int scale = j < 4 ? b[low] & 63 : (b[8 + low] & 15) | b[low] >> 6 << 4;
  const int min = j < 4 ? b[4 + low] & 63 : b[8 + low] >> 4 | b[4 + low] >> 6 << 4;
  return {static_cast<float>(scale), static_cast<float>(min)};
}

template <>
struct Block<DType::kQ2_K> {
  static constexpr int kColumns = 256, kBytes = 84;
  static __device__ uint32_t code(Bytes b, int e) { return pair_at(b + 16, e); }
  static __device__ float2 affine(Bytes b, int e) {
    const int s = b[e / 16];
    return {half_at(b + 80) * (s & 15), -half_at(b + 82) * (s >> 4)};
  }
};
template <>
struct Block<DType::kQ3_K> {
  static constexpr int kColumns = 256, kBytes = 110;
  static __device__ uint32_t code(Bytes b, int e) {
    return pair_at(b + 32, e) | (b[e % 32] >> (e / 32) & 1) << 2;
  }
  static __device__ float2 affine(Bytes b, int e) {
    const int s = e / 16;
    const int low = b[96 + s % 8] >> (s / 8 * 4) & 15;
    const int high = b[104 + s % 4] >> (s / 4 * 2) & 3;
    const float scale = half_at(b + 108) * ((low | high << 4) - 32);
    return {scale, -4 * scale};
  }
};
template <>
struct Block<DType::kQ4_K> {
  static constexpr int kColumns = 256, kBytes = 144;
  static __device__ uint32_t code(Bytes b, int e) { return nibble_at(b + 16, e); }
  static __device__ float2 affine(Bytes b, int e) {
    const float2 s = scale_and_min(b + 4, e / 32);
    return {half_at(b) * s.x, -half_at(b + 2) * s.y};
  }
};
template <>
struct Block<DType::kQ5_K> {
  static constexpr int kColumns = 256, kBytes = 176;
  static __device__ uint32_t code(Bytes b, int e) {
    return nibble_at(b + 48, e) | (b[16 + e % 32] >> (e / 32) & 1) << 4;
  }
  static __device__ float2 affine(Bytes b, int e) { return Block<DType::kQ4_K>::affine(b, e); }
};
template <>
struct Block<DType::kQ6_K> {
  static constexpr int kColumns = 256, kBytes = 210;
  static __device__ uint32_t code(Bytes b, int e) {
    const int quarter = e % 128 / 32;
    const uint32_t low = b[e / 128 * 64 + quarter % 2 * 32 + e % 32] >> (quarter / 2 * 4) & 15;
    return low | pair_at(b + 128, e) << 4;
  }
  static __device__ float2 affine(Bytes b, int e) {
    const float scale = half_at(b + 208) * static_cast<int8_t>(b[192 + e / 16]);
    return {scale, -32 * scale};
  }
};

constexpr int kThreads = 256;
constexpr int kMost = 32;  // a power of two; they fit a kernel's arguments

// Matrices that are packed by one kernel: files have hundreds, and to enqueue one takes the host as
// long as the bus takes for a quarter of a megabyte.
struct Packs {
  Bytes rows[kMost];
  Packed to[kMost];
  unsigned end[kMost];  // of its thread blocks
};

__host__ __device__ int64_t spans_of(const Packed& to) { return to.out * to.in / kSpan; }

template <DType kType, Form kForm>
__global__ void pack_kernel(const __grid_constant__ Packs packs) {
  using From = Block<kType>;
  const int which = piece_of(packs.end, blockIdx.x);
  const unsigned begin = which == 0 ? 0 : packs.end[which - 1];
  const Packed& to = packs.to[which];
  Bytes rows = packs.rows[which];
  const int64_t at = static_cast<int64_t>(blockIdx.x - begin) * kThreads + threadIdx.x;
  if (at >= spans_of(to)) return;
  const int64_t column = at * kSpan;  // of the whole matrix: rows are whole blocks
  Bytes block = rows + column / From::kColumns * From::kBytes;
  const int first = static_cast<int>(column % From::kColumns);

  uint32_t low[kForm == Form::k8 ? 8 : 4] = {};
  uint32_t high[2] = {};
  for (int i = 0; i < kSpan; ++i) {
    const uint32_t code = From::code(block, first + i);
    const int j = i % 16;
    if constexpr (kForm == Form::k8) {
      low[i / 4] |= code << (8 * (i % 4));
    } else {
      low[j / 4] |= (code & 15) << (8 * (j % 4) + 4 * (i / 16));
    }
    if constexpr (kForm == Form::k5) high[0] |= (code >> 4) << i;
    if constexpr (kForm == Form::k6) high[i / 16] |= (code >> 4) << (2 * j);
  }
  constexpr int kLow = kForm == Form::k8 ? 8 : 4;
  auto* low_to = static_cast<uint32_t*>(const_cast<void*>(to.low)) + at * kLow;
  for (int i = 0; i < kLow; ++i) low_to[i] = low[i];
  constexpr int kHigh = kForm == Form::k5 ? 1 : kForm == Form::k6 ? 2 : 0;
  auto* high_to = static_cast<uint32_t*>(const_cast<void*>(to.high)) + at * kHigh;
  for (int i = 0; i < kHigh; ++i) high_to[i] = high[i];
  const int groups = kSpan / to.group;
  auto* scales = static_cast<__half2*>(const_cast<void*>(to.scales)) + at * groups;
  for (int g = 0; g < groups; ++g) {
    const float2 a = From::affine(block, first + g * to.group);
    scales[g] = __halves2half2(to_half(a.x), to_half(a.y));
  }
}

__device__ float as_float(float v) { return v; }
__device__ float as_float(__half v) { return __half2float(v); }
__device__ float as_float(__nv_bfloat16 v) { return __bfloat162float(v); }

template <class From>
__global__ void halve_kernel(const From* rows, Packed to) {
  const int64_t row = blockIdx.y;
  const int64_t col = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (col >= to.stride) return;
  auto* low = static_cast<__half*>(const_cast<void*>(to.low));
  const float v = col < to.in ? as_float(rows[row * to.in + col]) : 0.f;
  low[row * to.stride + col] = to_half(v);
}

template <Form kForm>
__global__ void unpack_kernel(Packed from, __half* to, int64_t spans) {
  const int64_t at = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (at >= spans) return;
  Codes<kForm> codes;
  codes.load(from, 0, at);  // rows are whole spans, one after the other
  __half2 values[kSpan / 2];
#pragma unroll
  for (int i = 0; i < kSpan; i += 2) {
    values[i / 2] = __halves2half2(to_half(codes.value(i)), to_half(codes.value(i + 1)));
  }
  auto* out = reinterpret_cast<uint4*>(to + at * kSpan);
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = reinterpret_cast<const uint4*>(values)[i];
}

unsigned blocks_for(int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}

template <DType kType, Form kForm>
void run_pack(const UploadedRows* const* rows, size_t count, Stream stream) {
  for (size_t begin = 0; begin < count; begin += kMost) {
    Packs packs{};
    unsigned blocks = 0;
    for (size_t i = 0; i < kMost; ++i) {
      if (begin + i < count) {
        const UploadedRows& from = *rows[begin + i];
        packs.rows[i] = reinterpret_cast<Bytes>(from.data);
        packs.to[i] = from.to;
        blocks += blocks_for(spans_of(from.to));
      }
      packs.end[i] = blocks;
    }
    if (blocks > 0) pack_kernel<kType, kForm><<<blocks, kThreads, 0, stream>>>(packs);
  }
}

template <DType kType, Form kForm>
void load_pack() {
  load_kernel(pack_kernel<kType, kForm>);
}

// Rows are a grid's second dimension, which ends at 65535.
template <class From>
void run_halve(const UploadedRows* const* rows, size_t count, Stream stream) {
  constexpr int64_t kMostRows = 65535;
  for (size_t i = 0; i < count; ++i) {
    const Packed& to = rows[i]->to;
    const auto* from = reinterpret_cast<const From*>(rows[i]->data);
    for (int64_t begin = 0; begin < to.out; begin += kMostRows) {
      const Packed part = rows_of(to, begin, std::min(kMostRows, to.out - begin));
      const dim3 grid(blocks_for(to.stride), static_cast<unsigned>(part.out));
      halve_kernel<<<grid, kThreads, 0, stream>>>(from + begin * to.in, part);
    }
  }
}

template <class From>
void load_halve() {
  load_kernel(halve_kernel<From>);
}

struct Kind {
  DType dtype;
  Form form;
  int group;
  void (*pack)(const UploadedRows* const* rows, size_t count, Stream stream);
  void (*load)();
};

template <class From>
constexpr Kind floats(DType dtype) {
  return {dtype, Form::kHalf, 1, run_halve<From>, load_halve<From>};
}
template <DType kType, Form kForm>
constexpr Kind blocks(int group) {
  return {kType, kForm, group, run_pack<kType, kForm>, load_pack<kType, kForm>};
}

constexpr Kind kKinds[] = {
    floats<float>(DType::kF32),          floats<__half>(DType::kF16),
    floats<__nv_bfloat16>(DType::kBF16), blocks<DType::kQ8_0, Form::k8>(32),
    blocks<DType::kQ4_0, Form::k4>(32),  blocks<DType::kQ4_1, Form::k4>(32),
    blocks<DType::kQ5_0, Form::k5>(32),  blocks<DType::kQ5_1, Form::k5>(32),
    blocks<DType::kQ2_K, Form::k4>(16),  blocks<DType::kQ3_K, Form::k4>(16),
    blocks<DType::kQ4_K, Form::k4>(32),  blocks<DType::kQ5_K, Form::k5>(32),
    blocks<DType::kQ6_K, Form::k6>(16),
};

const Kind* find(DType dtype) {
  for (const Kind& kind : kKinds) {
    if (kind.dtype == dtype) return &kind;
  }
  return nullptr;
}

}  // namespace

bool can_pack(DType dtype) { return find(dtype) != nullptr; }

Packed packed_form(DType dtype, int64_t out, int64_t in) {
  const Kind* kind = find(dtype);
  Packed p;
  p.form = kind->form;
  p.group = kind->group;
  p.out = out;
  p.in = in;
  p.stride = kind->form == Form::kHalf ? (in + 7) / 8 * 8 : in;
  return p;
}

void pack(const UploadedRows* rows, size_t count, Stream stream) {
  std::vector<const UploadedRows*> alike;
  for (const Kind& kind : kKinds) {
    alike.clear();
    for (size_t i = 0; i < count; ++i) {
      if (rows[i].dtype == kind.dtype && rows[i].to.low != nullptr) alike.push_back(&rows[i]);
    }
    kind.pack(alike.data(), alike.size(), stream);
  }
}

void load_packing() {
  for (const Kind& kind : kKinds) kind.load();
}

void unpack(const Packed& from, void* halves, Stream stream) {
  const int64_t spans = spans_of(from);
  const auto run = [&](auto kernel) {
    kernel<<<blocks_for(spans), kThreads, 0, stream>>>(from, static_cast<__half*>(halves), spans);
  };
  switch (from.form) {
    case Form::kHalf:
      return;  // already is
    case Form::k8:
      return run(unpack_kernel<Form::k8>);
    case Form::k4:
      return run(unpack_kernel<Form::k4>);
    case Form::k5:
      return run(unpack_kernel<Form::k5>);
    case Form::k6:
      return run(unpack_kernel<Form::k6>);
  }
}

}  // namespace tinyvllm::ops::cuda
