#include "text/template/json_value.h"

#include <simdjson.h>

namespace tinyvllm::jinja {
namespace {

namespace dom = simdjson::dom;

class Converter {
 public:
  Converter(Heap& heap, Origin origin) : heap_(heap), origin_(origin) {}

  Value convert(const dom::element& element) {
    switch (element.type()) {
      case dom::element_type::ARRAY: {
        std::vector<Value> items;
        for (const dom::element item : dom::array(element)) items.push_back(convert(item));
        return new_list(heap_, items, origin_);
      }
      case dom::element_type::OBJECT: {
        Dict* dict = heap_.make<Dict>();
        for (const auto& [key, value] : dom::object(element)) {
          dict->set(heap_, new_text(heap_, key, origin_), convert(value));
        }
        return Value::of_dict(dict, origin_);
      }
      case dom::element_type::STRING:
        return new_text(heap_, std::string_view(element), origin_);
      case dom::element_type::INT64:
        return Value(int64_t(element), origin_);
      case dom::element_type::UINT64:
        fail("the integer ", uint64_t(element), " is beyond 64 bits with a sign");
      case dom::element_type::DOUBLE:
        return Value(double(element), origin_);
      case dom::element_type::BOOL:
        return Value(bool(element), origin_);
      case dom::element_type::NULL_VALUE:
        break;
    }
    return Value::none(origin_);
  }

 private:
  Heap& heap_;
  const Origin origin_;
};

}  // namespace

Result<Value> parse_json(Heap& heap, std::string_view json, Origin origin) {
  dom::parser parser;
  dom::element root;
  if (const auto status = parser.parse(json.data(), json.size()).get(root)) {
    return error("JSON: ", simdjson::error_message(status));
  }
  try {
    return Converter(heap, origin).convert(root);
  } catch (const TemplateError& failure) {
    return error("JSON: ", failure.message);
  }
}

}  // namespace tinyvllm::jinja
