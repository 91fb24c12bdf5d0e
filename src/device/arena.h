// Activations live here: a stack of tensors in one buffer, emptied by scopes, so that nothing on
// the step path allocates. Measured before it is made: a dry run of the model against an arena
// without memory (ExecContext::dry_run) finds the peak.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/tensor.h"

namespace tinyvllm {

class Arena {
 public:
  Arena() = default;  // measures only
  Arena(void* data, size_t bytes) : data_(static_cast<char*>(data)), bytes_(bytes) {}

  void* take(size_t bytes) {
    const size_t offset = used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    peak_ = std::max(peak_, used_);
    if (data_ == nullptr) return nullptr;
    CHECK(used_ <= bytes_) << "activations need " << used_ << " bytes of " << bytes_;
    return data_ + offset;
  }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }
  void rewind(size_t used) { used_ = used; }

 private:
  static constexpr size_t kAlignment = 64;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  size_t used_ = 0;
  size_t peak_ = 0;
};

// What was taken inside a scope is given back at its end.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), used_(arena.used()) {}
  ~ArenaScope() { arena_.rewind(used_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  const size_t used_;
};

}  // namespace tinyvllm
