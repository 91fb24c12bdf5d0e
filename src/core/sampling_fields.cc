#include "core/sampling_fields.h"

#include <charconv>
#include <type_traits>

namespace tinyvllm {
namespace {

using P = SamplingParams;

constexpr char kChoice[] = "Choosing tokens";
constexpr char kPenalty[] = "Penalties";
constexpr char kEnd[] = "Where answers end";
constexpr char kAllowed[] = "What may be said";
constexpr char kShown[] = "What is shown";

const SamplingField kFields[] = {
    {"temperature", kChoice, &P::temperature, "0 takes the likeliest token"},
    {"top_k", kChoice, &P::top_k, "only the K likeliest tokens; 0: all"},
    {"top_p", kChoice, &P::top_p, "only the likeliest tokens that make up this probability"},
    {"min_p", kChoice, &P::min_p, "only tokens at least so likely, relative to the likeliest"},
    {"typical_p", kChoice, &P::typical_p, "only tokens of typical information; 1: off"},
    {"xtc_probability", kChoice, &P::xtc_probability, "how often to exclude top choices; 0: never"},
    {"xtc_threshold", kChoice, &P::xtc_threshold, "likelier tokens than this are top choices"},
    {"seed", kChoice, &P::seed, "the same seed gives the same answer"},
    {"n", kChoice, &P::n, "answers to the prompt"},

    {"presence_penalty", kPenalty, &P::presence_penalty, "off what the answer has said, once"},
    {"frequency_penalty", kPenalty, &P::frequency_penalty, "off what it has said, each time"},
    {"repetition_penalty", kPenalty, &P::repetition_penalty,
     "divides what prompt or answer have said; 1: off"},
    {"dry_multiplier", kPenalty, &P::dry_multiplier, "off tokens that extend a repeat; 0: off"},
    {"dry_base", kPenalty, &P::dry_base, "growth of that with the repeat's length"},
    {"dry_allowed_length", kPenalty, &P::dry_allowed_length, "repeats that cost nothing"},
    {"dry_penalty_last_n", kPenalty, &P::dry_penalty_last_n, "tokens to look at; -1: all"},
    {"dry_sequence_breakers", kPenalty, &P::dry_sequence_breakers,
     "repeats end at these; may be given several times"},

    {"max_tokens", kEnd, &P::max_tokens, "stop after so many tokens"},
    {"min_tokens", kEnd, &P::min_tokens, "do not end before so many tokens"},
    {"stop", kEnd, &P::stop, "end at this text; may be given several times"},
    {"stop_token_ids", kEnd, &P::stop_token_ids, "end at these tokens: 0,2"},
    {"ignore_eos", kEnd, &P::ignore_eos, "go on past the model's end of answer"},

    {"logit_bias", kAllowed, &P::logit_bias, "added to a token's logit: 15:-100,16:2.5"},
    {"allowed_token_ids", kAllowed, &P::allowed_token_ids, "no other tokens than these"},
    {"bad_words", kAllowed, &P::bad_words, "never say this; may be given several times"},

    {"logprobs", kShown, &P::logprobs, "log-probabilities of tokens, and of so many likeliest"},
    {"prompt_logprobs", kShown, &P::prompt_logprobs, "the same for the prompt's tokens"},
    {"include_stop_str_in_output", kShown, &P::include_stop_str_in_output,
     "print the stop text too"},
    {"skip_special_tokens", kShown, &P::skip_special_tokens, "leave out control tokens"},
};

template <class Number>
bool parse_whole(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && stopped == end;
}

// "1, 2,3" → each item to `item`, which says whether it liked it.
template <class Item>
bool for_each_item(std::string_view list, const Item& item) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view part = list.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!item(part)) return false;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return true;
}

bool parse(std::string_view text, double& value) { return parse_whole(text, value); }
bool parse(std::string_view text, int& value) { return parse_whole(text, value); }

bool parse(std::string_view text, bool& value) {
  value = text == "true" || text == "1" || text == "on";
  return value || text == "false" || text == "0" || text == "off";
}

bool parse(std::string_view text, std::vector<int32_t>& ids) {
  return for_each_item(text, [&](std::string_view item) {
    ids.emplace_back();
    return parse_whole(item, ids.back());
  });
}

bool parse(std::string_view text, std::vector<LogitBias>& biases) {
  return for_each_item(text, [&](std::string_view item) {
    const size_t colon = item.find(':');
    LogitBias bias;
    if (colon == std::string_view::npos) return false;
    if (!parse_whole(item.substr(0, colon), bias.token)) return false;
    if (!parse_whole(item.substr(colon + 1), bias.bias)) return false;
    biases.push_back(bias);
    return true;
  });
}

bool parse(std::string_view text, std::vector<std::string>& strings) {
  strings.emplace_back(text);
  return true;
}

template <class Value>
bool parse(std::string_view text, std::optional<Value>& value) {
  if (!value) value.emplace();
  if constexpr (std::is_integral_v<Value>) {
    return parse_whole(text, *value);
  } else {
    return parse(text, *value);
  }
}

// What a type takes, in words.
const char* expectation(const double&) { return "a number"; }
const char* expectation(const int&) { return "a whole number"; }
const char* expectation(const bool&) { return "true or false"; }
const char* expectation(const std::optional<int>&) { return "a whole number"; }
const char* expectation(const std::optional<uint64_t>&) { return "a whole number of at least 0"; }
const char* expectation(const std::vector<std::string>&) { return "text"; }
const char* expectation(const std::vector<int32_t>&) { return "token ids such as 1,2,3"; }
const char* expectation(const std::optional<std::vector<int32_t>>&) {
  return "token ids such as 1,2,3";
}
const char* expectation(const std::vector<LogitBias>&) { return "token ids and biases as 15:-5"; }

std::string text_of(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(uint64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const LogitBias& value) {
  return str_cat(value.token, ":", text_of(static_cast<double>(value.bias)));
}
std::string text_of(const std::string& value) { return str_cat('"', printable(value), '"'); }

template <class Item>
std::string text_of(const std::vector<Item>& list) {
  std::string text;
  for (const Item& item : list) {
    if (!text.empty()) text += ',';
    text += text_of(item);
  }
  return list.empty() ? "none" : text;
}

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : "none";
}

}  // namespace

std::span<const SamplingField> sampling_fields() { return kFields; }

const SamplingField* find_sampling_field(std::string_view name) {
  for (const SamplingField& field : kFields) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

Status set_sampling_field(SamplingParams& params, const SamplingField& field,
                          std::span<const std::string> values) {
  return std::visit(
      [&](auto member) -> Status {
        std::decay_t<decltype(params.*member)> value{};
        for (const std::string& text : values) {
          if (!parse(text, value)) {
            return error(field.name, ": expected ", expectation(value), ", found '",
                         printable(text), "'");
          }
        }
        params.*member = std::move(value);
        return Status();
      },
      field.member);
}

std::string sampling_field_text(const SamplingParams& params, const SamplingField& field) {
  return std::visit([&](auto member) { return text_of(params.*member); }, field.member);
}

void copy_sampling_field(const SamplingParams& from, const SamplingField& field,
                         SamplingParams& to) {
  std::visit([&](auto member) { to.*member = from.*member; }, field.member);
}

}  // namespace tinyvllm
