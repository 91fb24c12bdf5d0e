#include "report/bench_run.h"

#include <algorithm>
#include <simdjson.h>

#include "base/json_writer.h"
#include "base/strings.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

void write_facts(JsonWriter& json, const char* name, const Facts& facts) {
  json.key(name).begin_object();
  for (const auto& [key, fact] : facts) {
    json.key(key);
    std::visit([&](const auto& value) { json.value(value); }, fact);
  }
  json.end_object();
}

void write_optional(JsonWriter& json, const char* name, const std::optional<double>& value) {
  json.key(name);
  value ? json.value(*value) : json.null();
}

std::string text_of(const simdjson::dom::element& object, const char* key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

Facts facts_of(const simdjson::dom::element& root, const char* key) {
  Facts facts;
  simdjson::dom::object object;
  if (root[key].get(object) != simdjson::SUCCESS) return facts;
  for (const auto& [name, value] : object) {
    double number = 0;
    std::string_view text;
    if (value.get(number) == simdjson::SUCCESS) facts.emplace_back(std::string(name), number);
    if (value.get(text) == simdjson::SUCCESS) {
      facts.emplace_back(std::string(name), std::string(text));
    }
  }
  return facts;
}

Result<BenchResult> result_of(const simdjson::dom::element& entry) {
  BenchResult result{text_of(entry, "name"), text_of(entry, "unit"), {}};
  if (result.name.empty()) return error("expected a 'name'");
  simdjson::dom::array samples;
  if (entry["samples"].get(samples) != simdjson::SUCCESS) {
    return error("'", printable(result.name), "': expected an array 'samples'");
  }
  for (const simdjson::dom::element sample : samples) {
    double value = 0;
    if (sample.get(value) != simdjson::SUCCESS) {
      return error("'", printable(result.name), "': expected numbers as samples");
    }
    result.samples.push_back(value);
  }
  double limit = 0;
  if (entry["limit"].get(limit) == simdjson::SUCCESS) result.limit = limit;
  return result;
}

}  // namespace

double BenchResult::value() const { return median(samples); }

bool BenchResult::more_is_better() const {
  return unit.ends_with("/s") || unit == "times" || unit == "%";
}

std::optional<double> BenchResult::utilization() const {
  if (!limit || *limit <= 0 || value() <= 0) return std::nullopt;
  return more_is_better() ? value() / *limit : *limit / value();
}

std::string to_json(const BenchRun& run) {
  JsonWriter json;
  json.begin_object().field("bench", run.bench).field("version", run.version);
  json.field("date", run.date).field("complete", run.complete);
  write_facts(json, "machine", run.machine);
  write_facts(json, "model", run.model);
  write_facts(json, "limits", run.limits);
  json.key("results").begin_array();
  for (const BenchResult& result : run.results) {
    json.begin_object().field("name", result.name).field("value", result.value());
    json.field("unit", result.unit);
    write_optional(json, "limit", result.limit);
    write_optional(json, "utilization", result.utilization());
    json.field("spread", spread(result.samples)).field("samples", result.samples).end_object();
  }
  return json.end_array().end_object().str();
}

Result<BenchRun> read_bench_run(std::string_view json, const std::string& name) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array results;
  if (parser.parse(simdjson::padded_string(json)).get(root) != simdjson::SUCCESS ||
      root["results"].get(results) != simdjson::SUCCESS) {
    return error("'", printable(name), "': expected a bench's --json, an object with 'results'");
  }
  BenchRun run{text_of(root, "bench"), text_of(root, "version"), text_of(root, "date")};
  run.complete = root["complete"].get(run.complete) != simdjson::SUCCESS || run.complete;
  run.machine = facts_of(root, "machine");
  run.model = facts_of(root, "model");
  run.limits = facts_of(root, "limits");
  for (const simdjson::dom::element entry : results) {
    Result<BenchResult> result = result_of(entry);
    if (!result.ok()) return error("'", printable(name), "': results: ", result.message());
    run.results.push_back(std::move(result).value());
  }
  return run;
}

}  // namespace tinyvllm
