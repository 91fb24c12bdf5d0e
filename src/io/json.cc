#include "io/json.h"

#include <algorithm>
#include <cctype>

namespace tinyvllm {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxJsonBytes = 100'000'000;  // what safetensors allows a header

// Model configurations are a few kilobytes; labels of a classifier can make it a megabyte or two.
// Together the limits bound what a hostile file can make us keep: a path is stored for each leaf.
constexpr size_t kMaxMetadataBytes = 4 << 20;
constexpr size_t kMaxPathBytes = 256;
constexpr size_t kMaxDepth = 64;

// Python's json module writes what JSON does not know: Infinity and NaN (state-space models have
// "time_step_limit": [0.0, Infinity]) and integers of any length. The first become strings, so that
// whoever needs a number there gets an error that names the key; the second become floating-point.
std::string as_strict_json(std::string_view text) {
  constexpr size_t kMaxIntegerDigits = 19;
  std::string strict;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    if (c == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      strict += text.substr(at, end - at);
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '+' || c == '.') {
      end = std::min(text.find_first_of(",]} \t\r\n\"", at), text.size());
      const std::string_view word = text.substr(at, end - at);
      const bool digits = word.find_first_not_of("-0123456789") == std::string_view::npos;
      if (word == "Infinity" || word == "-Infinity" || word == "NaN") {
        strict += str_cat("\"", word, "\"");
      } else {
        strict += word;
        if (digits && word.size() > kMaxIntegerDigits) strict += "e0";
      }
    } else {
      strict += c;
    }
    at = end;
  }
  return strict;
}

class Flattener {
 public:
  Status object(const dom::object& members, const std::string& prefix) {
    for (const dom::key_value_pair member : members) {
      const std::string path =
          prefix.empty() ? std::string(member.key) : str_cat(prefix, ".", member.key);
      TRY(element(member.value, path));
    }
    return Status();
  }

  Metadata take() { return std::move(metadata_); }

 private:
  Status element(const dom::element& value, const std::string& path) {
    if (path.size() > kMaxPathBytes) {
      return error("key '", printable(path), "' is ", path.size(), " bytes long; expected at most ",
                   kMaxPathBytes);
    }
    switch (value.type()) {
      case dom::element_type::OBJECT:
        return object(dom::object(value), path);
      case dom::element_type::ARRAY:
        return array(dom::array(value), path);
      case dom::element_type::STRING:
        return insert(path, own(value));
      case dom::element_type::INT64:
        return insert(path, int64_t(value));
      case dom::element_type::UINT64:
        return insert(path, uint64_t(value));
      case dom::element_type::DOUBLE:
        return insert(path, double(value));
      case dom::element_type::BOOL:
        return insert(path, bool(value));
      case dom::element_type::NULL_VALUE:
        return Status();
    }
    return Status();
  }

  Status array(const dom::array& list, const std::string& path) {
    size_t strings = 0, flags = 0, integers = 0, numbers = 0, count = 0;
    for (const dom::element item : list) {
      count += 1;
      strings += item.is_string();
      flags += item.is_bool();
      integers += item.is_int64();
      numbers += item.is_number();
    }
    if (strings == count && count > 0) return insert(path, collect_strings(list));
    if (integers == count) return insert(path, collect<int64_t>(list));
    if (numbers == count) return insert(path, collect<double>(list));
    if (flags == count) return insert(path, collect<bool>(list));
    size_t index = 0;
    for (const dom::element item : list) TRY(element(item, str_cat(path, ".", index++)));
    return Status();
  }

  template <class T>
  static std::vector<T> collect(const dom::array& list) {
    std::vector<T> values;
    for (const dom::element item : list) values.push_back(T(item));
    return values;
  }

  std::vector<std::string_view> collect_strings(const dom::array& list) {
    std::vector<std::string_view> values;
    for (const dom::element item : list) values.push_back(own(item));
    return values;
  }

  std::string_view own(const dom::element& text) {
    return metadata_.own(std::string(std::string_view(text)));
  }

  Status insert(const std::string& path, MetadataValue value) {
    if (metadata_.insert(path, std::move(value))) return Status();
    return error("key '", printable(path), "' appears twice");
  }

  Metadata metadata_;
};

}  // namespace

Result<dom::element> parse_json(dom::parser& parser, std::string_view text) {
  if (text.empty()) return error("not valid JSON: empty");
  if (text.size() > kMaxJsonBytes) {
    return error("JSON of ", text.size(), " bytes; expected at most ", kMaxJsonBytes);
  }
  if (const auto code = parser.allocate(text.size(), kMaxDepth); code != simdjson::SUCCESS) {
    return error("JSON of ", text.size(), " bytes: ", simdjson::error_message(code));
  }
  dom::element root;
  if (const auto code = parser.parse(text.data(), text.size()).get(root);
      code != simdjson::SUCCESS) {
    return error("not valid JSON: ", simdjson::error_message(code));
  }
  return root;
}

const char* json_kind(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::ARRAY:
      return "a list";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
      return "an integer";
    case dom::element_type::DOUBLE:
      return "a number";
    case dom::element_type::BOOL:
      return "a flag";
    case dom::element_type::NULL_VALUE:
      break;
  }
  return "null";
}

Result<Metadata> read_json_metadata(std::string_view text) {
  if (text.size() > kMaxMetadataBytes) {
    return error(text.size(), " bytes of JSON; expected at most ", kMaxMetadataBytes);
  }
  dom::parser parser;
  Result<dom::element> parsed = parse_json(parser, text);
  if (!parsed.ok() && !text.empty()) parsed = parse_json(parser, as_strict_json(text));
  TRY_ASSIGN(const dom::element root, std::move(parsed));
  if (!root.is_object()) return error("expected a JSON object, found ", json_kind(root));
  Flattener flattener;
  TRY(flattener.object(dom::object(root), ""));
  return flattener.take();
}

}  // namespace tinyvllm
