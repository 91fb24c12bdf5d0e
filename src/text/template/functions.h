// The functions that every template can call: range, dict, namespace, and so on.
#pragma once

#include "text/template/native.h"

namespace tinyvllm::jinja {

Value dict_fromkeys(Sandbox& sandbox, const Arguments& arguments);
const Native* dict_function();  // has .fromkeys as its one attribute
const Native* fromkeys_function();

// strftime(format) of a time with no time zone, as Python's datetime has it.
std::string format_time(std::string_view format, const std::tm& time);

}  // namespace tinyvllm::jinja
