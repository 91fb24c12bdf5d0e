#include "engine/memory_figures.h"

#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json_writer.h"

namespace tinyvllm {
namespace {

uint64_t resident_bytes() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

std::string host_memory(const MemoryFigures& figures, uint64_t kv_used_bytes) {
  const uint64_t resident = resident_bytes();
  JsonWriter json;
  json.begin_object().key("totals").begin_object();
  json.field("resident", resident);
  json.field("planned", figures.weight_bytes + figures.kv_bytes + figures.activation_bytes);
  json.end_object().key("pools").begin_object();
  json.field("weights", figures.weight_bytes).field("kv_cache", figures.kv_bytes);
  json.field("activations", figures.activation_bytes).end_object();
  json.field("kv_used_bytes", kv_used_bytes).field("kv_allocated_bytes", figures.kv_bytes);
  json.field("peak_bytes", peak_bytes()).field("resident_bytes", resident);
  return json.end_object().str();
}

}  // namespace tinyvllm
