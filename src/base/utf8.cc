#include "base/utf8.h"

#include <cstring>

namespace tinyvllm {
namespace {

struct Lead {
  int length;          // bytes of the whole sequence, 0 when no sequence begins with this byte
  unsigned char low;   // allowed range of the second byte, which is where
  unsigned char high;  // overlong forms, surrogates and values above U+10FFFF are excluded
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// How many bytes of the sequence announced by the lead byte are there and well formed.
int matched_bytes(std::string_view text, const Lead& lead) {
  int matched = 1;
  while (matched < lead.length && matched < static_cast<int>(text.size())) {
    const auto byte = static_cast<unsigned char>(text[static_cast<size_t>(matched)]);
    const unsigned char low = matched == 1 ? lead.low : 0x80;
    const unsigned char high = matched == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) break;
    matched += 1;
  }
  return matched;
}

}  // namespace

int utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length <= 1) return lead.length;
  return matched_bytes(text, lead) == lead.length ? lead.length : 0;
}

int utf8_invalid_length(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  return lead.length == 0 ? 1 : matched_bytes(text, lead);
}

size_t utf8_incomplete_suffix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const Lead lead = lead_of(static_cast<unsigned char>(tail[0]));
    if (lead.length > static_cast<int>(back)) {
      return matched_bytes(tail, lead) == static_cast<int>(back) ? back : 0;
    }
    if (lead.length != 0) return 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    // Most text is ASCII: eight bytes at a time while no high bit is set.
    uint64_t word = 0;
    while (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) != 0) break;
      at += sizeof word;
    }
    if (at == text.size()) break;
    const int length = utf8_sequence_length(text.substr(at));
    if (length == 0) return false;
    at += static_cast<size_t>(length);
  }
  return true;
}

std::string utf8_replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    int length = utf8_sequence_length(rest);
    if (length != 0) {
      out += rest.substr(0, static_cast<size_t>(length));
    } else {
      length = utf8_invalid_length(rest);
      utf8_append(out, kReplacementCharacter);
    }
    at += static_cast<size_t>(length);
  }
  return out;
}

void utf8_append(std::string& out, char32_t code_point) {
  const auto c = static_cast<uint32_t>(code_point);
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

char32_t utf8_next(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  char32_t code_point = lead;
  size_t length = 1;
  if (lead >= 0xF0) {
    code_point =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    length = 4;
  } else if (lead >= 0xE0) {
    code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    length = 3;
  } else if (lead >= 0xC0) {
    code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    length = 2;
  }
  at += length;
  return code_point;
}

}  // namespace tinyvllm
