#include "text/gguf_pretokenizers.h"

#include <algorithm>
#include <string>

namespace tinyvllm {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// One way of splitting, under all the names that it goes by. Each pattern cuts what the one before
// it left.
struct Family {
  std::vector<const char*> names;
  std::vector<const char*> patterns;
  bool ignore_merges = false;
  bool add_bos = false;
};

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {{"gpt-2"}, {kGpt2}},
      {{"smollm", "starcoder", "refact"}, {R"(\p{N})", kGpt2}},
  };
  return kFamilies;
}

const Family* find_family(std::string_view name) {
  for (const Family& family : families()) {
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) {
      return &family;
    }
  }
  return nullptr;
}

std::string known_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    names.insert(names.end(), family.names.begin(), family.names.end());
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

Result<GgufPreTokenizer> make_gguf_pretokenizer(std::string_view name) {
  const Family* family = find_family(name.empty() ? "default" : name);
  if (family == nullptr) {
    return error("tokenizer.ggml.pre: unknown pre-tokenizer '", printable(name),
                 "'; known are: ", known_names());
  }
  GgufPreTokenizer result;
  result.ignore_merges = family->ignore_merges;
  result.add_bos = family->add_bos;
  for (const char* pattern : family->patterns) {
    TRY_ASSIGN(std::unique_ptr<Pattern> compiled, make_regex_pattern(pattern));
    result.steps.push_back(make_split(std::move(compiled), SplitBehavior::kIsolated));
  }
  return result;
}

}  // namespace tinyvllm
