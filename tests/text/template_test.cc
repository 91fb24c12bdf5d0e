// The template interpreter where Jinja2 is no judge: limits, error messages, and where text came
// from. That it renders what Jinja2 renders is template_check.py's business.
#include "text/template/template.h"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "text/template/json_value.h"

namespace tinyvllm::jinja {
namespace {

Result<Rendered> render(std::string_view source, std::string_view json = "{}",
                        const Limits& limits = {}) {
  Heap heap(~size_t{0});
  TRY_ASSIGN(const Template compiled, Template::compile(source, limits));
  TRY_ASSIGN(const Value variables, parse_json(heap, json, Origin::kMessage));
  return compiled.render(*variables.dict, limits, {});
}

std::string text_of(std::string_view source, std::string_view json = "{}") {
  const Result<Rendered> rendered = render(source, json);
  return rendered.ok() ? rendered.value().text : str_cat("error: ", rendered.message());
}

std::string error_of(std::string_view source, std::string_view json = "{}",
                     const Limits& limits = {}) {
  const Result<Rendered> rendered = render(source, json, limits);
  return rendered.ok() ? str_cat("no error: ", rendered.value().text) : rendered.message();
}

// The text with every byte that a message brought in written as '^'.
std::string marks_of(std::string_view source, std::string_view json) {
  const Result<Rendered> rendered = render(source, json);
  if (!rendered.ok()) return str_cat("error: ", rendered.message());
  std::string marks = rendered.value().text;
  std::vector<uint32_t> flips = rendered.value().flips;
  flips.push_back(static_cast<uint32_t>(marks.size()));
  bool message = rendered.value().first == Origin::kMessage;
  size_t begin = 0;
  for (const uint32_t flip : flips) {
    if (message) std::fill(marks.begin() + begin, marks.begin() + flip, '^');
    message = !message;
    begin = flip;
  }
  return marks;
}

TEST(Template, RendersFromManyThreadsAtOnce) {
  const Result<Template> compiled = Template::compile(
      "{% macro m(x) %}{{ x|upper }}{% endmacro %}{% for i in l %}{{ m(i) }}{% endfor %}", {});
  ASSERT_TRUE(compiled.ok());
  Heap heap(~size_t{0});
  const Result<Value> variables = parse_json(heap, R"({"l": ["a", "é", "c"]})", Origin::kMessage);
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        text = compiled.value().render(*variables.value().dict, {}, {}).value().text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "AÉC");
}

TEST(TemplateErrors, NameThePlaceAndTheExpression) {
  EXPECT_EQ(error_of("a\n  {{ x.y.z }}"), "template: line 2, column 6, at 'x.y': 'x' is undefined");
  EXPECT_EQ(error_of("{{ m.role.name.first }}", R"({"m": {"role": "user"}})"),
            "template: line 1, column 4, at 'm.role.name.first': 'str object' has no attribute "
            "'name'");
  EXPECT_EQ(error_of("é{% for a in 5 %}{% endfor %}"),
            "template: line 1, column 5: a value of type 'int' cannot be iterated over");
  EXPECT_EQ(error_of("{% if x %}\n{{ x | }}"),
            "template: line 2, column 8: expected 'name', found '}}'");
  EXPECT_EQ(error_of("{{ raise_exception('no ' ~ who) }}", R"({"who": "luck"})"),
            "template: line 1, column 4, at 'raise_exception('no ' ~ who)': no luck");
  EXPECT_EQ(error_of("{{ x | nosuch }}"), "template: line 1, column 8: no filter named 'nosuch'");
  EXPECT_EQ(error_of("x\xFF"), "template: not valid UTF-8");
}

TEST(TemplateLimits, EndWhatWouldNotEnd) {
  Limits limits;
  limits.steps = 100'000;
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
  EXPECT_NE(error_of(loops + "{% endfor %}{% endfor %}", "{}", limits).find("100000 steps"),
            std::string::npos);
  // Work that is not counted in iterations: comparing, searching, sorting, copying long strings.
  for (const char* work :
       {"{% if x in y %}{% endif %}", "{{ y == z }}", "{{ y|replace('b', '') }}",
        "{% set q = y[1:][1:] %}", "{{ y.rfind(x) }}", "{{ (y ~ 'b').strip('ab') }}"}) {
    const std::string source = str_cat(
        "{% set x = 'a' * 9999 ~ 'b' %}{% set y = 'a' * 99999 %}{% set z = 'a' * 99998 ~ "
        "'b' %}{% for i in range(99999) %}",
        work, "{% endfor %}");
    EXPECT_NE(error_of(source, "{}", limits).find("more than"), std::string::npos) << work;
  }
}

TEST(TemplateLimits, BoundMemoryOutputAndDepth) {
  Limits limits;
  limits.memory_bytes = 1 << 20;
  limits.output_bytes = 1000;
  for (const char* source :
       {"{{ 'x' * 99999999 }}", "{{ [0] * 99999999 }}",
        "{% set s = 'x' * 999 %}{% for i in "
        "range(9999) %}{% set t = s ~ i %}{% endfor %}",
        "{{ '%999999999d' % 1 }}", "{{ '{:999999999}'.format(1) }}", "{{ 'a'.ljust(9999999999) }}",
        "{{ '\\t'.expandtabs(9999999999) }}", "{{ 'x'|center(99999999) }}",
        "{{ [1]|batch(99999999, 0)|list }}", "{{ 'a'.zfill(999999999) }}",
        "{{ ('x' * 9999).replace('', 'y' * 9999) }}", "{{ {}|tojson(indent=99999999) }}"}) {
    EXPECT_NE(error_of(source, "{}", limits).find("bytes of memory"), std::string::npos) << source;
  }
  EXPECT_NE(error_of("{% for i in range(99) %}0123456789{% endfor %}0123456789x", "{}", limits)
                .find("longer than 1000 bytes"),
            std::string::npos);
  const char* endless = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
  EXPECT_NE(error_of(endless).find("nested deeper"), std::string::npos);
  // Values nested too deep to print, compare or hash without running out of stack.
  for (const char* wrap : {"[ns.x]", "(ns.x,)", "{'a': ns.x}", "[ns.x, {'b': ns.x}].copy()"}) {
    const std::string source =
        str_cat("{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = ", wrap,
                " %}{% endfor %}{{ ns.x == ns.x }}");
    EXPECT_NE(error_of(source).find("nested deeper"), std::string::npos) << wrap;
  }
  const char* chain =
      "{% set ns = namespace(x='a') %}{% for i in range(9999) %}{% set ns.x = ns.x|map('upper') "
      "%}{% endfor %}{{ ns.x|list }}";
  EXPECT_NE(error_of(chain).find("nested deeper"), std::string::npos);
}

TEST(TemplateLimits, BoundTheSyntaxTree) {
  const auto repeated = [](std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  const auto wrapped = [&](std::string_view open, std::string_view close) {
    return repeated(open, 9999) + repeated(close, 9999);
  };
  for (const std::string& inside :
       {wrapped("(", ")"), wrapped("[", "]"), wrapped("{1:", "}"), wrapped("f(", ")"),
        str_cat(repeated("not ", 9999), "1"), str_cat(repeated("-", 9999), "1"),
        wrapped("1 if 1 else ", ""), str_cat("1", repeated("+1", 9999)),
        str_cat("x", repeated(".a", 9999)), str_cat("x", repeated("[0]", 9999)),
        str_cat("x", repeated("|e", 9999)), str_cat("1", repeated(" and 1", 9999))}) {
    EXPECT_NE(error_of(str_cat("{{ ", inside, " }}")).find("nested deeper"), std::string::npos)
        << inside.substr(0, 20);
  }
  EXPECT_NE(error_of(repeated("{% if 1 %}", 9999)).find("nested deeper"), std::string::npos);
  EXPECT_NE(error_of(repeated("x", 5 << 20)).find("bytes long"), std::string::npos);
  // As deep as Python lets a template go.
  EXPECT_EQ(text_of(str_cat("{{ 1", repeated("+1", 150), " }}")), "151");
  EXPECT_EQ(text_of("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% else %}end{% endif %}{% endmacro "
                    "%}{{ f(100) }}"),
            "end");
}

// Compiling must not take longer than the source is long, either.
TEST(TemplateLimits, BoundWhatCompilingCosts) {
  std::string source;
  for (int i = 0; i < 5000; ++i) {
    source += str_cat("{% if a", i, " %}{% set b", i, " = 1 %}{% endif %}");
  }
  Limits limits;
  limits.steps = 1'000'000;
  EXPECT_NE(error_of(source, "{}", limits).find("more than 1000000 steps"), std::string::npos);
}

TEST(TemplateMarks, TemplateTextIsTheTemplates) {
  const char* json = R"({"m": "MESSAGE", "n": 5})";
  EXPECT_EQ(marks_of("a{{ 'b' }}{{ m }}c", json), "ab^^^^^^^c");
  EXPECT_EQ(marks_of("{{ 'b' + m + 'c' }}", json), "b^^^^^^^c");
  EXPECT_EQ(marks_of("{{ 'b' ~ m ~ n ~ 1 }}", json), "b^^^^^^^^1");
  EXPECT_EQ(marks_of("{{ n + 1 }}{{ 1 + 1 }}{{ m|length }}", json), "^2^");
  EXPECT_EQ(marks_of("{% set x = 'a' ~ m %}{{ x }}{% set y %}b{{ x }}{% endset %}{{ y }}", json),
            "a^^^^^^^ba^^^^^^^");
  EXPECT_EQ(marks_of("{% macro q(v) %}<{{ v }}>{% endmacro %}{{ q(m) }}", json), "<^^^^^^^>");
  EXPECT_EQ(marks_of("{% filter lower %}A{{ m }}B{% endfilter %}", json), "a^^^^^^^b");
}

TEST(TemplateMarks, FollowEveryCharacter) {
  const char* json = R"({"m": " x<É> ", "l": ["p", "q"], "d": {"k": "v", "n": 1}})";
  const std::string mixed = "{% set t = 'AB' ~ m ~ 'CD' %}";  // "AB x<É> CD", É is two bytes
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"{{ t }}", "AB^^^^^^^CD"},
      {"{{ t[1:4] }}", "B^^"},
      {"{{ t[::-1] }}", "DC^^^^^^^BA"},
      {"{{ t[-3:] }}", "^CD"},
      {"{{ t[0] }}{{ t[3] }}", "A^"},
      {"{{ m.strip() }}|{{ m|trim }}", "^^^^^|^^^^^"},
      {"{{ t.strip('ABCD') }}", "^^^^^^^"},
      {"{{ t|upper }}", "AB^^^^^^^CD"},
      {"{{ t.lower() }}", "ab^^^^^^^cd"},
      {"{{ t|title }}", "Ab^^^^^^^Cd"},
      {"{{ t.replace('B', '<') }}", "A<^^^^^^^CD"},
      {"{{ t.replace(' ', '_') }}", "AB_^^^^^_CD"},
      {"{{ 'a-b'.replace('-', m) }}", "a^^^^^^^b"},
      {"{{ t.split() }}", "['AB', ^^^^^^^, 'CD']"},
      {"{{ t.split('<')[1] }}", "^^^^CD"},
      {"{{ t.partition('<')[1] }}", "^"},
      {"{{ l|join(', ') }}", "^, ^"},
      {"{{ ','.join(l) }}", "^,^"},
      {"{{ '%s|%5s' % (m, 'a') }}", "^^^^^^^|    a"},
      {"{{ '{}|{:>3}'.format(m, l[0]) }}", "^^^^^^^|  ^"},
      {"{{ 'ab'|format }}{{ '%s'|format(m) }}", "ab^^^^^^^"},
      {"{{ m * 2 }}{{ 'z' * 2 }}", "^^^^^^^^^^^^^^zz"},
      {"{{ m|e }}", "^^^^^^^^^^^^^"},
      {"{{ t|center(12) }}", " AB^^^^^^^CD "},
      {"{{ ('a\n' ~ m)|indent(1) }}", "a\n ^^^^^^^"},
      {"{{ t|truncate(4, true, '.', 0) }}", "AB^."},
      {"{{ m|list|first }}{{ m|first }}{{ m|last }}", "^^^"},
      {"{{ l|map('upper')|join }}", "^^"},
      {"{{ l|sort|first ~ l|max ~ l|reverse|first }}", "^^^"},
      {"{{ d|tojson }}", "^^^^^^^^^^^^^^^^^^"},
      {"{{ {'a': l[0], 'b': 'c'}|tojson }}", R"({"a": ^^^, "b": "c"})"},
      {"{{ [l[0]] }}{{ d }}", "[^^^]^^^^^^^^^^^^^^^^^^"},
      {"{{ d.items()|list }}", "^^^^^^^^^^^^^^^^^^^^^^"},
      {"{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}", "^=^;^=^;"},
      {"{{ m|string ~ (m if true else 'x') ~ (m or 'y') ~ m|default('z') }}",
       "^^^^^^^^^^^^^^^^^^^^^^^^^^^^"},
      {"{{ m|urlencode }}", "^^^^^^^^^^^^^^^^^^^"},
      {"{{ '\\t'.expandtabs(2) ~ 'ab'.zfill(3) ~ m|wordcount }}", "  0ab^"},
  };
  for (const auto& [source, marks] : cases) {
    EXPECT_EQ(marks_of(mixed + source, json), marks) << source;
  }
}

}  // namespace
}  // namespace tinyvllm::jinja
