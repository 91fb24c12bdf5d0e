#include "text/byte_trie.h"

#include <algorithm>

namespace tinyvllm {

ByteTrie::ByteTrie(const std::vector<std::string_view>& texts) {
  std::vector<int32_t> order;
  order.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) order.push_back(static_cast<int32_t>(i));
  }
  const auto text_of = [&](int32_t index) { return texts[static_cast<size_t>(index)]; };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int difference = text_of(a).compare(text_of(b));
    return difference != 0 ? difference < 0 : a < b;
  });

  // Level by level: a task is a node and the range of strings that pass through it.
  struct Task {
    uint32_t node;
    size_t begin, end;
  };
  std::vector<Task> level = {{0, 0, order.size()}};
  std::vector<Task> next_level;
  for (size_t depth = 0; !level.empty(); ++depth, level.swap(next_level)) {
    next_level.clear();
    for (const Task& task : level) {
      size_t at = task.begin;
      for (; at < task.end && text_of(order[at]).size() == depth; ++at) {
        nodes_[task.node].value = order[at];
      }
      nodes_[task.node].first_child = static_cast<uint32_t>(nodes_.size());
      while (at < task.end) {
        const char byte = text_of(order[at])[depth];
        const size_t begin = at;
        while (at < task.end && text_of(order[at])[depth] == byte) at += 1;
        next_level.push_back({static_cast<uint32_t>(nodes_.size()), begin, at});
        nodes_[task.node].child_count += 1;
        nodes_.emplace_back();
        nodes_.back().byte = static_cast<unsigned char>(byte);
      }
    }
  }
  for (uint32_t i = 0; i < nodes_[0].child_count; ++i) {
    const uint32_t node = nodes_[0].first_child + i;
    root_[nodes_[node].byte] = node;
  }
}

}  // namespace tinyvllm
