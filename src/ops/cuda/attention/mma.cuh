// The tensor cores' 16×8×16 product of halves, and the loads that feed it.
#pragma once

#include <cstdint>
#include <cuda_fp16.h>

namespace tinyvllm::ops::cuda {

// c += a b;  a: 16×16, b: 16×8, c: 16×8. Of c a lane holds rows lane/4 and lane/4 + 8, columns
// 2 (lane % 4) and the next one.
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8×8 matrices; lane i names row i % 8 of matrix i / 8.
__device__ inline void load_matrices(uint32_t (&r)[4], const __half* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}
__device__ inline void load_transposed(uint32_t (&r)[4], const __half* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

// 16, 8 or 4 bytes to shared memory behind our back; zeros where there is nothing to read.
template <int kBytes>
__device__ void copy_async(void* to, const void* from, bool there) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(at), "l"(from),
                 "r"(bytes));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(at), "l"(from),
                 "n"(kBytes), "r"(bytes));
  }
}
__device__ inline void copies_commit() { asm volatile("cp.async.commit_group;\n"); }
template <int kLeft>
__device__ void copies_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
}

__device__ inline uint32_t as_register(__half2 h) { return *reinterpret_cast<const uint32_t*>(&h); }
__device__ inline uint32_t pack_halves(float a, float b) {
  return as_register(__floats2half2_rn(a, b));
}

// Two of four signed bytes, the first two or the last two, as halves that are kByteOffset too
// large: 1024 + n has n in its last bits.
constexpr float kByteOffset = 1024 + 128;
template <int kFirst>
__device__ __half2 offset_halves(uint32_t bytes) {
  const uint32_t both = __byte_perm(bytes ^ 0x80808080, 0x64646464, kFirst == 0 ? 0x4140 : 0x4342);
  return *reinterpret_cast<const __half2*>(&both);
}

}  // namespace tinyvllm::ops::cuda
