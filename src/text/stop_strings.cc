#include "text/stop_strings.h"

#include <algorithm>

namespace tinyvllm {

StopStrings::StopStrings(const std::vector<std::string>& strings, bool include)
    : include_(include) {
  for (const std::string& string : strings) {
    if (string.empty()) continue;
    Watch watch{string, std::vector<size_t>(string.size(), 0), 0};
    for (size_t i = 1; i < string.size(); ++i) {
      step(watch, string[i]);
      watch.fallback[i] = watch.matched;
    }
    watch.matched = 0;
    watches_.push_back(std::move(watch));
  }
}

std::string StopStrings::push(std::string_view text) {
  if (stopped()) return "";
  for (const char byte : text) {
    held_ += byte;
    if (!advance(byte)) continue;
    if (!include_) held_.resize(held_.size() - met().size());
    return finish();
  }
  size_t keep = 0;
  for (const Watch& watch : watches_) keep = std::max(keep, watch.matched);
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() {
  std::string rest;
  rest.swap(held_);
  return rest;
}

const std::string& StopStrings::met() const {
  static const std::string kNone;
  return stopped() ? watches_[static_cast<size_t>(met_)].string : kNone;
}

bool StopStrings::advance(char byte) {
  for (size_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    step(watch, byte);
    if (watch.matched < watch.string.size()) continue;
    if (!stopped() || watch.string.size() > met().size()) met_ = static_cast<int>(i);
  }
  return stopped();
}

void StopStrings::step(Watch& watch, char byte) const {
  if (watch.matched == watch.string.size()) watch.matched = watch.fallback.back();
  while (watch.matched > 0 && watch.string[watch.matched] != byte) {
    watch.matched = watch.fallback[watch.matched - 1];
  }
  if (watch.string[watch.matched] == byte) watch.matched += 1;
}

}  // namespace tinyvllm
