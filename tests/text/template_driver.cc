// For template_check.py: renders many templates in one process. A line on stdin is {"template":
// TEXT, "contexts": [{variables}, …]}; its answer on stdout is a list with {"text": …, "marks":
// […]} or
// {"error": …} for each context.
#include <ctime>
#include <iostream>
#include <string>

#include "base/json_writer.h"
#include "text/template/json_value.h"
#include "text/template/template.h"

namespace tinyvllm::jinja {
namespace {

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  localtime_r(&now, &time);
  return time;
}

void answer(const Result<Template>& compiled, const Value& context, JsonWriter& out) {
  out.begin_object();
  if (!compiled.ok()) {
    out.field("error", compiled.message());
  } else {
    const Result<Rendered> rendered =
        compiled.value().render(*context.dict, Limits(), local_time());
    if (!rendered.ok()) {
      out.field("error", rendered.message());
    } else {
      out.field("text", rendered.value().text);
      out.field("first", rendered.value().first == Origin::kTemplate ? "template" : "message");
      out.field("flips", rendered.value().flips);
    }
  }
  out.end_object();
}

int run() {
  for (std::string line; std::getline(std::cin, line);) {
    Heap heap(~size_t{0});
    const Result<Value> request = parse_json(heap, line, Origin::kMessage);
    if (!request.ok()) {
      std::cerr << request.message() << "\n";
      return 1;
    }
    const Dict& fields = *request.value().dict;
    const Result<Template> compiled =
        Template::compile(fields.find("template")->str->view(), Limits());
    JsonWriter out;
    out.begin_array();
    for (const Value& context : *fields.find("contexts")->list) answer(compiled, context, out);
    out.end_array();
    std::cout << out.str() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace tinyvllm::jinja

int main() {
  std::ios::sync_with_stdio(false);
  return tinyvllm::jinja::run();
}
