#include "telemetry/limits.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <simdjson.h>
#include <unistd.h>
#include <vector>

#include "base/json_writer.h"
#include "base/strings.h"

namespace tinyvllm {
namespace {

// "limits/AMD_EPYC_family_25_model_17-2-avx2.json": folders are shared between machines.
std::filesystem::path file_of(const std::filesystem::path& folder, const MachineKey& key) {
  std::string name;
  for (const char c : key.cpu) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  return folder / "limits" / str_cat(name, "-", key.threads, "-", key.isa, ".json");
}

// A speed that some machine may have; anything else is a broken file's.
bool plausible(double per_second) { return per_second > 1e6 && per_second < 1e18; }

}  // namespace

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  std::vector<std::string> numbers;
  for (std::string line; std::getline(file, line) && !(line.empty() && !numbers.empty());) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const size_t begin = line.find_first_not_of(' ', colon + 1);
    const std::string value = begin == std::string::npos ? "" : line.substr(begin);
    if (key == "model name") name = value;
    if (key == "cpu family") numbers.push_back("family " + value);
    if (key == "model") numbers.push_back("model " + value);
    if (key == "CPU implementer") numbers.push_back("implementer " + value);
    if (key == "CPU part") numbers.push_back("part " + value);
  }
  std::string details;
  for (const std::string& number : numbers) details += (details.empty() ? "" : ", ") + number;
  if (name.empty()) name = "CPU";
  return details.empty() ? name : str_cat(name, " (", details, ")");
}

std::string MachineKey::words() const {
  if (threads == 0) return str_cat(cpu, ", ", isa);
  return str_cat(cpu, ", ", threads, threads == 1 ? " thread, " : " threads, ", isa);
}

MachineLimits best_of(const MachineLimits& a, const MachineLimits& b) {
  return {std::max(a.read_bytes_per_s, b.read_bytes_per_s), std::max(a.flops_per_s, b.flops_per_s),
          std::max(a.int8_ops_per_s, b.int8_ops_per_s),
          std::max(a.copy_bytes_per_s, b.copy_bytes_per_s),
          std::max(a.upload_bytes_per_s, b.upload_bytes_per_s)};
}

std::optional<MachineLimits> load_limits(const std::filesystem::path& folder,
                                         const MachineKey& key) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::padded_string text;
  if (simdjson::padded_string::load(file_of(folder, key).string()).get(text) != simdjson::SUCCESS ||
      parser.parse(text).get(root) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  std::string_view cpu;
  MachineLimits limits;
  const bool complete =
      root["cpu"].get(cpu) == simdjson::SUCCESS && cpu == key.cpu &&
      root["read_bytes_per_s"].get(limits.read_bytes_per_s) == simdjson::SUCCESS &&
      root["flops_per_s"].get(limits.flops_per_s) == simdjson::SUCCESS &&
      root["int8_ops_per_s"].get(limits.int8_ops_per_s) == simdjson::SUCCESS;
  if (!complete || !plausible(limits.read_bytes_per_s) || !plausible(limits.flops_per_s) ||
      !plausible(limits.int8_ops_per_s)) {
    return std::nullopt;
  }
  // Later additions, that older files do not have.
  if (root["copy_bytes_per_s"].get(limits.copy_bytes_per_s) != simdjson::SUCCESS ||
      root["upload_bytes_per_s"].get(limits.upload_bytes_per_s) != simdjson::SUCCESS ||
      !plausible(limits.copy_bytes_per_s) || !plausible(limits.upload_bytes_per_s)) {
    limits.copy_bytes_per_s = limits.upload_bytes_per_s = 0;
  }
  return limits;
}

bool store_limits(const std::filesystem::path& folder, const MachineKey& key,
                  const MachineLimits& limits) {
  const std::filesystem::path path = file_of(folder, key);
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  if (failed) return false;
  JsonWriter json;
  json.begin_object().field("cpu", key.cpu).field("threads", key.threads).field("isa", key.isa);
  json.field("read_bytes_per_s", limits.read_bytes_per_s);
  json.field("flops_per_s", limits.flops_per_s);
  json.field("int8_ops_per_s", limits.int8_ops_per_s);
  if (limits.copy_bytes_per_s > 0) json.field("copy_bytes_per_s", limits.copy_bytes_per_s);
  if (limits.upload_bytes_per_s > 0) json.field("upload_bytes_per_s", limits.upload_bytes_per_s);
  json.end_object();
  // Written aside and renamed, so that another process never reads half of it.
  const std::filesystem::path aside = path.string() + str_cat(".", getpid());
  std::ofstream file(aside);
  file << json.str() << '\n';
  file.close();
  if (file.good()) std::filesystem::rename(aside, path, failed);
  if (file.good() && !failed) return true;
  std::filesystem::remove(aside, failed);
  return false;
}

}  // namespace tinyvllm
