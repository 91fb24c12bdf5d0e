// The lines of `tinyvllm bench text`, and who measures them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "report/samples.h"

namespace tinyvllm {

struct TextFlags {
  std::vector<std::string> models;
  int samples = 5;
  std::string python = ".venv/bin/python";
  bool json = false;
};

struct TextRow {
  std::string subject = "";  // what was measured, such as a tokenizer, and doing what
  std::string name = "";
  std::string unit = "";
  std::vector<double> samples = {};  // the best first
  std::string peer = "";             // who did the same in this run; empty: nobody
  double peer_value = 0;             // its best
  double wanted_ratio = 0;           // 0: none is asked for
  double limit = 0;                  // of the value, in its unit; 0: none

  bool is_speed() const { return unit == "MB/s"; }  // more is better
  double best() const { return samples.front(); }
  double median() const { return tinyvllm::median(samples); }
  double ratio() const { return is_speed() ? best() / peer_value : peer_value / best(); }
};

// Processor time of this thread, so that a busy machine does not decide the ratio.
double thread_seconds();

// Loading and encoding, beside the Python package `tokenizers`, whose work is done in Rust.
Status bench_tokenizers(const TextFlags& flags, std::vector<TextRow>& rows);

// Compiling and rendering the templates that the tests carry.
Status bench_templates(const TextFlags& flags, std::vector<TextRow>& rows);

}  // namespace tinyvllm
