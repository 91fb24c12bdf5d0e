// One line of a trace log, read into flat fields that point into the line. What a log of others
// leaves out is simply absent: an empty text, a missing number.
//
//   {"timestamp":T,"span_id":N,"parent_span_id":N,"span_name":"…","event":{"type":"…","data":{…}}}
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinyvllm {

// The members of event.data; those of an object inside it have its name as their scope.
class Fields {
 public:
  struct Field {
    std::string_view scope;
    std::string_view key;
    std::string_view text;  // empty unless it is a string
    double number = 0;      // NaN unless it is a number
  };

  void clear() { fields_.clear(), next_ = 0; }
  void add(const Field& field) { fields_.push_back(field); }

  const Field* find(std::string_view key, std::string_view scope) const;  // nullptr: absent
  std::string_view text(std::string_view key, std::string_view scope = {}) const;
  // Numbers in quotes count too: some logs write all their values as strings.
  std::optional<double> number(std::string_view key, std::string_view scope = {}) const;
  double number_or(std::string_view key, double fallback, std::string_view scope = {}) const {
    return number(key, scope).value_or(fallback);
  }
  int64_t integer(std::string_view key, std::string_view scope = {}, int64_t fallback = 0) const;
  // Microseconds, up to three decimals, as nanoseconds.
  std::optional<int64_t> nanoseconds(std::string_view key, std::string_view scope = {}) const;
  int64_t ns(std::string_view key) const { return nanoseconds(key).value_or(0); }

  // A string as it is, a number as it would be written; appended to `to`.
  static void write(const Field& field, std::string& to);
  bool write(std::string_view key, std::string_view scope, std::string& to) const;

  const std::vector<Field>& all() const { return fields_; }

 private:
  std::vector<Field> fields_;
  // Where the last search ended: fields are asked for in about the order they are written.
  mutable size_t next_ = 0;
};

struct Record {
  std::string_view type;
  std::string_view span_name;
  int64_t timestamp_ns = 0;  // since the trace began; the end of what lasted
  int64_t span_id = 0;       // 0: none
  int64_t parent_span_id = 0;
  Fields data;
};

// Not for two threads at once. What `parse` returns lives until the next call.
class RecordParser {
 public:
  RecordParser();
  ~RecordParser();
  RecordParser(const RecordParser&) = delete;
  RecordParser& operator=(const RecordParser&) = delete;

  // Bytes behind a line that must be readable, whatever they hold.
  static constexpr size_t kPadding = 64;
  // The record, or nullptr when the line is not one.
  const Record* parse(std::string_view line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tinyvllm
