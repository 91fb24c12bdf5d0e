#include "text/template/native.h"

#include <algorithm>
#include <unordered_map>

#include "text/template/methods.h"

namespace tinyvllm::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const Native*>;

Table table_of(std::initializer_list<std::span<const Native>> parts) {
  Table table;
  for (const std::span<const Native> part : parts) {
    for (const Native& native : part) table.emplace(native.name, &native);
  }
  return table;
}

const Native* find_in(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

std::unordered_map<std::string_view, MethodName> method_table() {
  std::unordered_map<std::string_view, MethodName> table;
  const auto add = [&table](Kind kind, std::span<const Native> methods) {
    for (const Native& native : methods) {
      table[native.name].by_kind[static_cast<size_t>(kind)] = &native;
    }
  };
  add(Kind::kStr, str_methods());
  add(Kind::kList, list_methods());
  add(Kind::kTuple, tuple_methods());
  add(Kind::kDict, dict_methods());
  add(Kind::kRange, range_methods());
  add(Kind::kInt, int_methods());
  add(Kind::kBool, int_methods());
  add(Kind::kFloat, float_methods());
  add(Kind::kLoop, loop_methods());
  add(Kind::kCycler, cycler_methods());
  return table;
}

}  // namespace

const Native* find_filter(std::string_view name) {
  static const Table table = table_of({text_filters(), list_filters(), lazy_filters(),
                                       number_filters(), html_filters(), json_filters()});
  return find_in(table, name);
}

const Native* find_test(std::string_view name) {
  static const Table table = table_of({tests()});
  return find_in(table, name);
}

const Native* find_function(std::string_view name) {
  static const Table table = table_of({functions()});
  return find_in(table, name);
}

const MethodName* find_method_name(std::string_view name) {
  static const std::unordered_map<std::string_view, MethodName> table = method_table();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

Bound::Bound(std::string_view callee, const Arguments& arguments,
             std::initializer_list<std::string_view> parameters, size_t required)
    : values_(parameters.size()) {
  if (arguments.positional.size() > parameters.size()) {
    fail(callee, " takes at most ", parameters.size(), " arguments, found ",
         arguments.positional.size());
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), values_.begin());
  for (const Keyword& keyword : arguments.keywords) {
    const auto place = std::find(parameters.begin(), parameters.end(), keyword.name);
    if (place == parameters.end()) {
      fail(callee, " takes no argument '", printable(keyword.name), "'");
    }
    Value& value = values_[static_cast<size_t>(place - parameters.begin())];
    if (!value.missing()) fail(callee, " got argument '", keyword.name, "' twice");
    value = keyword.value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!has(i)) fail(callee, " needs the argument '", *(parameters.begin() + i), "'");
  }
}

void expect_positional(std::string_view callee, const Arguments& arguments, size_t least,
                       size_t most) {
  if (!arguments.keywords.empty()) fail(callee, " takes no keyword arguments");
  const size_t given = arguments.positional.size();
  if (given < least || given > most) {
    fail(callee, " takes ", least, least == most ? "" : str_cat(" to ", most), " arguments, found ",
         given);
  }
}

}  // namespace tinyvllm::jinja
