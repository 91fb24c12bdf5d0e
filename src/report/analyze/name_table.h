// Values by name, in the order in which the names first appeared: rows that tie keep that order.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tinyvllm {

template <class Value>
class NameTable {
 public:
  using Row = std::pair<const std::string, Value>;

  NameTable() = default;
  NameTable(NameTable&&) = default;
  NameTable& operator=(NameTable&&) = default;

  // Made at its first mention.
  Value& operator[](std::string_view name) {
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second->second;
    Row& row = rows_.emplace_back(std::string(name), Value());
    index_.emplace(row.first, &row);
    return row.second;
  }
  const Value* find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &found->second->second;
  }

  // Rows of a later part of the same log: merge(Value& ours, Value& theirs) where a name is in
  // both.
  template <class Merge>
  void take(NameTable&& later, const Merge& merge) {
    for (Row& row : later.rows_) merge((*this)[row.first], row.second);
  }

  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  std::deque<Row> rows_;  // never moves a row, so that the index may point at it
  std::unordered_map<std::string_view, Row*> index_;
};

}  // namespace tinyvllm
