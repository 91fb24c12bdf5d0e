#include "sample/cpu/kernel_table.h"

namespace tinyvllm::cpu_sampler {

namespace baseline {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
#endif

const Kernels& kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return avx2::kKernels;
#endif
  CHECK(isa == Isa::kBaseline) << "no kernels for " << isa_name(isa);
  return baseline::kKernels;
}

}  // namespace tinyvllm::cpu_sampler
