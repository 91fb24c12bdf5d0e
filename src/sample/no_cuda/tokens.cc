// A build without CUDA: there is no card, so nobody asks it for tokens.
#include "sample/cuda/tokens.h"

namespace tinyvllm::cuda_sampler {

struct Tokens::Impl {};
Tokens::Tokens(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokens::~Tokens() = default;
Result<std::unique_ptr<Tokens>> Tokens::create(Device&, int, int64_t) {
  return error("this build has no CUDA");
}
void Tokens::choose_largest(const Tensor&, const int32_t*, int64_t) {}
void Tokens::sample(const Tensor&, const block_sampler::DeviceRow*, int64_t, bool, void*, bool) {}
const int32_t* Tokens::on_device() const { return nullptr; }
Status Tokens::bring(const Tensor&, std::span<const int64_t>) { return Status(); }
Result<Tokens::Choice> Tokens::collect() { return error("this build has no CUDA"); }

}  // namespace tinyvllm::cuda_sampler
