#include "text/template/sandbox.h"

#include <algorithm>
#include <cstring>

namespace tinyvllm::jinja {
namespace {

constexpr size_t kBlockBytes = 16 << 10;
constexpr size_t kAlignment = 8;

}  // namespace

void* Heap::allocate(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  require(bytes);
  if (bytes > room_) {
    // Blocks double, so a large render makes few of them; what is left of the old one is let go.
    const size_t block = std::max(bytes, std::clamp(used_, kBlockBytes, size_t{4} << 20));
    blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[block]));
    free_ = blocks_.back().get();
    room_ = block;
  }
  void* place = free_;
  free_ += bytes;
  room_ -= bytes;
  used_ += bytes;
  return place;
}

std::string_view Heap::copy(std::string_view text) {
  char* place = static_cast<char*>(allocate(text.size()));
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

void Heap::out_of_memory() const {
  fail("the template needs more than ", limit_, " bytes of memory");
}

void Sandbox::out_of_steps() const {
  fail("the template ran for more than ", limits_.steps, " steps");
}

void Sandbox::too_deep() const { fail("nested deeper than ", limits_.depth, " levels"); }

}  // namespace tinyvllm::jinja
