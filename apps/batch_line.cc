#include "apps/batch_line.h"

#include <charconv>
#include <limits>
#include <simdjson.h>

#include "base/json_writer.h"
#include "core/sampling_fields.h"

namespace tinyvllm {
namespace {

using simdjson::dom::element;

// A field's value from JSON. Each gives what it would have taken, or nothing when all is well.
using Wanted = const char*;
constexpr Wanted kFine = nullptr;

Wanted read(element json, double& value) {
  return json.get(value) == simdjson::SUCCESS ? kFine : "a number";
}

Wanted read(element json, bool& value) {
  return json.get(value) == simdjson::SUCCESS ? kFine : "true or false";
}

Wanted read(element json, uint64_t& value) {
  return json.get(value) == simdjson::SUCCESS ? kFine : "a whole number of at least 0";
}

Wanted read(element json, int& value) {
  int64_t wide = 0;
  if (json.get(wide) != simdjson::SUCCESS || wide < std::numeric_limits<int>::min() ||
      wide > std::numeric_limits<int>::max()) {
    return "a whole number of 32 bits";
  }
  value = static_cast<int>(wide);
  return kFine;
}

Wanted read(element json, std::vector<int32_t>& ids) {
  simdjson::dom::array array;
  if (json.get(array) != simdjson::SUCCESS) return "an array of token ids";
  ids.clear();
  for (const element item : array) {
    ids.emplace_back();
    if (read(item, ids.back()) != kFine) return "an array of token ids";
  }
  return kFine;
}

Wanted read(element json, std::vector<std::string>& strings) {
  simdjson::dom::array array;
  std::string_view text;
  strings.clear();
  if (json.get(text) == simdjson::SUCCESS) {
    strings.emplace_back(text);
    return kFine;
  }
  if (json.get(array) != simdjson::SUCCESS) return "a string or an array of strings";
  for (const element item : array) {
    if (item.get(text) != simdjson::SUCCESS) return "a string or an array of strings";
    strings.emplace_back(text);
  }
  return kFine;
}

Wanted read(element json, std::vector<LogitBias>& biases) {
  simdjson::dom::object object;
  constexpr Wanted kWanted = "an object of token ids and biases";
  if (json.get(object) != simdjson::SUCCESS) return kWanted;
  biases.clear();
  for (const auto [key, item] : object) {
    LogitBias bias;
    double value = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), bias.token);
    if (problem != std::errc() || end != key.data() + key.size()) return kWanted;
    if (item.get(value) != simdjson::SUCCESS) return kWanted;
    bias.bias = static_cast<float>(value);
    biases.push_back(bias);
  }
  return kFine;
}

template <class Value>
Wanted read(element json, std::optional<Value>& value) {
  return read(json, value.emplace());
}

Status read_field(element json, const SamplingField& field, SamplingParams& params) {
  if (json.is_null()) return Status();
  const Wanted wanted =
      std::visit([&](auto member) { return read(json, params.*member); }, field.member);
  if (wanted == kFine) return Status();
  return error(field.name, ": expected ", wanted, ", found ", printable(simdjson::minify(json)));
}

}  // namespace

Result<BatchLine> parse_batch_line(std::string_view text, const SamplingParams& defaults) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded(text);
  const simdjson::error_code problem = parser.parse(padded).get(object);
  if (problem == simdjson::INCORRECT_TYPE) {
    return error("expected a JSON object, found ", printable(text));
  }
  if (problem != simdjson::SUCCESS) {
    return error("no valid JSON (", simdjson::error_message(problem), "): ", printable(text));
  }
  BatchLine line;
  line.sampling = defaults;
  bool has_prompt = false;
  std::string messages;
  std::string tools;
  for (const auto [name, value] : object) {
    if (name == "prompt") {
      std::string_view prompt;
      if (value.get(prompt) != simdjson::SUCCESS) {
        return error("prompt: expected a string, found ", printable(simdjson::minify(value)));
      }
      line.prompt = prompt;
      has_prompt = true;
    } else if (name == "messages") {
      if (!value.is_array()) {
        return error("messages: expected an array, found ", printable(simdjson::minify(value)));
      }
      messages = simdjson::minify(value);
    } else if (name == "tools") {
      tools = simdjson::minify(value);
    } else if (const SamplingField* field = find_sampling_field(name)) {
      TRY(read_field(value, *field, line.sampling));
    } else {
      return error("'", printable(name), "': no such field");
    }
  }
  if (has_prompt != messages.empty()) return error("expected either prompt or messages");
  if (has_prompt && line.prompt.empty()) return error("the prompt is empty");
  if (has_prompt && !tools.empty()) return error("tools: go with messages, not with a prompt");
  if (!has_prompt) {
    line.conversation = str_cat("{\"messages\":", messages);
    if (!tools.empty()) line.conversation += str_cat(",\"tools\":", tools);
    line.conversation += ",\"add_generation_prompt\":true}";
  }
  TRY(validate(line.sampling));
  return line;
}

}  // namespace tinyvllm
