// Which tokens end an answer: those that the files name, and control tokens whose spelling says so
// in the published chat models. Files often name one of several and leave the others to the reader.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinyvllm {

class EndTokens {
 public:
  // What the files name: eos, eot, eom, the list in generation_config. May be out of range.
  void add_named(int64_t id) { ids_.push_back(id); }

  // A control token, which ends an answer only if it is spelled like one that does.
  void add_if_spelled(std::string_view token, int64_t id);

  // Sorted, each once, nothing outside 0…vocab_size-1.
  std::vector<int32_t> tidy(size_t vocab_size) const;

 private:
  std::vector<int64_t> ids_;
  std::vector<int64_t> messages_;  // spelled <|end|>
  bool has_return_ = false;        // of the format in which <|end|> ends only a message
};

}  // namespace tinyvllm
