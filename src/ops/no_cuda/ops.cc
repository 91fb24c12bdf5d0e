// A build without CUDA: no device can be made that would lead here.
#include "ops/cuda/ops.h"

namespace tinyvllm::ops::cuda {
namespace {

[[noreturn]] void not_built() { check_failed(__FILE__, __LINE__, "a build with CUDA", ""); }

}  // namespace

void norm(ExecContext&, const Norm&, const Tensor&, const Tensor&) { not_built(); }
void norm_add(ExecContext&, const Norm&, const Tensor&, const Tensor&) { not_built(); }
void head_norm(ExecContext&, const Norm&, const Tensor&) { not_built(); }
Result<const void*> first_not_finite(Device&) { not_built(); }
Result<Embedding> make_embedding(Device&, const TensorView&) { not_built(); }
void embedding(ExecContext&, const Embedding&, const Batch&, float, const Tensor&) { not_built(); }
void gather_logit_rows(ExecContext&, const Batch&, const Tensor&, const Tensor&) { not_built(); }
void load_weight_kernels() { not_built(); }
Status expect_weights(Device&, std::span<const TensorView>) { not_built(); }
Result<Linear> make_linear(Device&, const LinearParts&) { not_built(); }
const char* linear_reason(const ExecContext&, const Linear&, const Tensor&) { not_built(); }
void linear(ExecContext&, const Norm*, const Linear&, Epilogue, const Tensor&, const Tensor&) {
  not_built();
}
int widest_head(DType) { return 0; }
void rope_kv_write(ExecContext&, const Rope&, const Batch&, const KvLayer&, const Tensor&,
                   const Tensor&, const Tensor&) {
  not_built();
}
const char* attention_reason(const ExecContext&, const AttentionParams&, const Batch&,
                             const KvLayer&, const Tensor&) {
  not_built();
}
void attention(ExecContext&, const AttentionParams&, const Batch&, const KvLayer&, const Tensor&,
               const Tensor&) {
  not_built();
}
void copy_kv_block(ExecContext&, char*, const char*, size_t) { not_built(); }
void softmax(ExecContext&, const Tensor&, const Tensor&) { not_built(); }
void top_k(ExecContext&, const Tensor&, int, std::span<Ranked>) { not_built(); }
Status prepare_experts(Device&, Experts&) { not_built(); }
void moe_add(ExecContext&, const Norm&, const Linear&, const Experts&, const MoeParams&,
             const Tensor&, const Tensor&) {
  not_built();
}

}  // namespace tinyvllm::ops::cuda
