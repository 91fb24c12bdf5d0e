// The file that `run --prompts` writes: a line per answered line of the input, in the order in
// which they were done. Whole lines only, so a run that was interrupted leaves a file that the next
// one continues: lines that are there are kept, a torn last one is cut off.
//
// Each line carries "input", a fingerprint of the line it answers and of what else decides the
// answer, so that a file from another input is never continued.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

// 16 hexadecimal digits.
std::string fingerprint(const std::string& settings, const std::string& line);

class BatchOutput {
 public:
  // Opens or makes the file, for this process alone, and reads what is there. `input_lines` is how
  // many lines the input has.
  static Result<BatchOutput> open(const std::string& path, int64_t input_lines);
  ~BatchOutput();
  BatchOutput(BatchOutput&& other) noexcept;
  BatchOutput& operator=(BatchOutput&&) = delete;

  int64_t lines_kept() const { return kept_; }
  // Whether line `index` was answered before. An error if that was another input's.
  Result<bool> has(int64_t index, const std::string& print) const;

  Status append(std::string line);  // a whole line, without its newline

 private:
  BatchOutput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status read_lines(int64_t input_lines);
  Error wrong(int64_t number, const std::string& what) const;

  std::string path_;
  int fd_;
  int64_t size_ = 0;
  int64_t kept_ = 0;
  std::vector<uint64_t> prints_;  // [index]; 0: not answered
};

}  // namespace tinyvllm
