// A map for what is asked for in the same order again and again, as a step's ops are: what followed
// the last one before is looked at first.
#pragma once

#include <unordered_map>
#include <utility>

namespace tinyvllm {

template <class Key, class Value, class Hash>
class Repeated {
 public:
  Value& operator[](const Key& key) {
    Node* node = last_ == nullptr ? nullptr : last_->second.next;
    if (node == nullptr || node->first != key) {
      node = &*entries_.try_emplace(key).first;
      if (last_ != nullptr) last_->second.next = node;
    }
    last_ = node;
    return node->second.value;
  }

 private:
  struct Entry;
  using Node = std::pair<const Key, Entry>;
  struct Entry {
    Value value;
    Node* next = nullptr;
  };
  std::unordered_map<Key, Entry, Hash> entries_;
  Node* last_ = nullptr;
};

}  // namespace tinyvllm
