// strftime_now(): the C library's strftime, with what Python's datetime does itself done here.
#include <ctime>
#include <string>

#include "text/template/functions.h"

namespace tinyvllm::jinja {

std::string format_time(std::string_view format, const std::tm& time) {
  // %z and %Z of a time without a zone are empty, %f are its microseconds, and a % that begins
  // nothing stays. The space in front makes an empty result different from one that did not fit.
  std::string prepared = " ";
  for (size_t i = 0; i < format.size(); ++i) {
    const char next = format[i] == '%' && i + 1 < format.size() ? format[i + 1] : 0;
    if (next == 'z' || next == 'Z') {
      i += 1;
    } else if (next == 'f') {
      prepared += "000000";
      i += 1;
    } else if (next != 0) {
      prepared += format[i++];
      prepared += next;
    } else if (format[i] == '\0') {
      break;  // the C library would stop here
    } else {
      prepared += format[i] == '%' ? "%%" : std::string(1, format[i]);
    }
  }
  constexpr size_t kLongestText = 64 << 10;  // a width in the format can ask for any amount
  std::string text(kLongestText, '\0');
  const size_t size = std::strftime(text.data(), text.size(), prepared.c_str(), &time);
  if (size == 0) fail("strftime_now: the result is too long");
  return text.substr(1, size - 1);
}

}  // namespace tinyvllm::jinja
