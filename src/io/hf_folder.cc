// Opens a Hugging Face folder: config.json and generation_config.json as metadata and defaults,
// safetensors (one file, or shards listed in an index) as weights, tokenizer files mapped as they
// are for text to read.
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <set>

#include "io/json.h"
#include "io/model_contents.h"
#include "io/safetensors_reader.h"

namespace tinyvllm {
namespace {

namespace fs = std::filesystem;

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

Error in_file(const fs::path& path, const std::string& message) {
  return error(printable(path.string(), 4096), ": ", message);
}

Result<Metadata> read_json_file(const fs::path& path) {
  TRY_ASSIGN(const std::unique_ptr<MappedFile> file, MappedFile::open(path.string()));
  Result<Metadata> metadata = read_json_metadata(file->bytes());
  if (!metadata.ok()) return in_file(path, metadata.message());
  return metadata;
}

// eos_token_id is an id or a list of ids; −1 means none.
Status add_end_ids(const Metadata& json, std::string_view key, std::vector<int64_t>& ids) {
  const MetadataValue* value = json.find(key);
  if (value == nullptr) return Status();
  std::vector<int64_t> found;
  if (std::holds_alternative<std::vector<int64_t>>(*value)) {
    TRY_ASSIGN(found, json.integers(key));
  } else {
    TRY_ASSIGN(const int64_t id, json.integer(key));
    found.push_back(id);
  }
  for (const int64_t id : found) {
    if (id < -1 || id > std::numeric_limits<int32_t>::max()) {
      return error("key '", key, "' holds ", id, "; expected token ids");
    }
    if (id >= 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return Status();
}

template <class T>
Status read_default(const Metadata& json, const char* key, std::optional<T>& value) {
  if (!json.has(key)) return Status();
  if constexpr (std::is_same_v<T, double>) {
    TRY_ASSIGN(value, json.number(key));
  } else {
    TRY_ASSIGN(value, json.integer(key));
  }
  return Status();
}

Status read_generation_config(const Metadata& json, ModelContents& contents) {
  GenerationDefaults& defaults = contents.generation_defaults;
  TRY(read_default(json, "temperature", defaults.temperature));
  TRY(read_default(json, "top_p", defaults.top_p));
  TRY(read_default(json, "min_p", defaults.min_p));
  TRY(read_default(json, "repetition_penalty", defaults.repetition_penalty));
  TRY(read_default(json, "top_k", defaults.top_k));
  return add_end_ids(json, "eos_token_id", contents.tokenizer.end_ids);
}

// Both files may be absent here; open_hf_folder insists on config.json itself.
Status read_configs(const fs::path& folder, ModelContents& contents) {
  std::vector<int64_t>& end_ids = contents.tokenizer.end_ids;
  if (const fs::path path = folder / "config.json"; is_there(path)) {
    TRY_ASSIGN(contents.metadata, read_json_file(path));
    Status status = add_end_ids(contents.metadata, "eos_token_id", end_ids);
    if (status.ok()) status = add_end_ids(contents.metadata, "text_config.eos_token_id", end_ids);
    if (!status.ok()) return in_file(path, status.message());
  }
  if (const fs::path path = folder / "generation_config.json"; is_there(path)) {
    TRY_ASSIGN(const Metadata json, read_json_file(path));
    const Status status = read_generation_config(json, contents);
    if (!status.ok()) return in_file(path, status.message());
  }
  return Status();
}

Status map_text_file(const fs::path& path, ModelContents& contents, std::string_view& bytes) {
  if (!is_there(path)) return Status();
  TRY_ASSIGN(std::unique_ptr<MappedFile> file, MappedFile::open(path.string()));
  bytes = file->bytes();
  contents.text_files.push_back(std::move(file));
  return Status();
}

Status map_text_files(const fs::path& folder, ModelContents& contents) {
  TokenizerData& text = contents.tokenizer;
  TRY(map_text_file(folder / "tokenizer.json", contents, text.tokenizer_json));
  TRY(map_text_file(folder / "tokenizer_config.json", contents, text.tokenizer_config_json));
  TRY(map_text_file(folder / "special_tokens_map.json", contents, text.special_tokens_map_json));
  TRY(map_text_file(folder / "tokenizer.model", contents, text.sentencepiece_model));
  TRY(map_text_file(folder / "chat_template.jinja", contents, text.chat_template));
  // Folders of processors keep the template as the only string of a JSON file.
  if (const fs::path path = folder / "chat_template.json";
      text.chat_template.empty() && is_there(path)) {
    TRY_ASSIGN(const Metadata json, read_json_file(path));
    const Result<std::string_view> source = json.string("chat_template");
    if (!source.ok()) return in_file(path, source.message());
    text.chat_template = contents.metadata.own(std::string(source.value()));
  }
  return Status();
}

// Kernels expect elements at multiples of their size. A file whose header has an odd length (old
// writers did that) has none, so its tensors are copied once.
Status align(WeightTensor& tensor, ModelContents& contents) {
  const auto element = static_cast<uintptr_t>(dtype_info(tensor.view.dtype).block_bytes);
  if (reinterpret_cast<uintptr_t>(tensor.view.data) % element == 0) return Status();
  const size_t bytes = tensor.view.bytes();
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
  if (copy == nullptr) {
    return error("tensor '", printable(tensor.name), "' at offset ", tensor.file_offset,
                 " is not aligned, and there is no memory for a copy of its ", bytes, " bytes");
  }
  std::memcpy(copy.get(), tensor.view.data, bytes);
  tensor.view.data = copy.get();
  contents.aligned.push_back(std::move(copy));
  return Status();
}

// `expect` says whether the index allows this tensor in this file.
template <class Expect>
Status add_weights(const fs::path& path, ModelContents& contents, Expect expect) {
  TRY_ASSIGN(std::unique_ptr<MappedFile> file, MappedFile::open(path.string()));
  Result<std::vector<WeightTensor>> tensors = read_safetensors(file->bytes());
  if (!tensors.ok()) return in_file(path, tensors.message());
  for (WeightTensor& tensor : tensors.value()) {
    Status status = expect(tensor.name);
    if (status.ok()) status = align(tensor, contents);
    if (!status.ok()) return in_file(path, status.message());
    tensor.file = static_cast<int>(contents.weight_files.size());
    CHECK(contents.weights.insert(std::move(tensor))) << "a file has each name once, and one file";
  }
  file->prefer_huge_pages();
  contents.weight_files.push_back(std::move(file));
  return Status();
}

// "model-00001-of-00003.safetensors" → "-of-00003.safetensors": what shards of one set share.
std::string_view shard_suffix(std::string_view name) {
  const size_t at = name.rfind("-of-");
  return at == std::string_view::npos ? std::string_view() : name.substr(at);
}

// A shard that the index does not know is the trace of a folder that was mixed from two models.
Status check_surplus(const fs::path& folder, const std::set<std::string>& listed) {
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(".safetensors") || listed.contains(name)) continue;
    for (const std::string& shard : listed) {
      if (shard_suffix(name).empty() || shard_suffix(name) != shard_suffix(shard)) continue;
      return in_file(folder / name, str_cat("a shard that ", kIndex, " does not list"));
    }
  }
  return Status();
}

Status add_shards(const fs::path& folder, ModelContents& contents) {
  const fs::path index_path = folder / kIndex;
  TRY_ASSIGN(const std::unique_ptr<MappedFile> index, MappedFile::open(index_path.string()));
  const auto files = read_safetensors_index(index->bytes());
  if (!files.ok()) return in_file(index_path, files.message());

  std::set<std::string> shards;
  for (const auto& [tensor, file] : files.value()) shards.insert(file);
  for (const std::string& shard : shards) {
    const auto expect = [&](const std::string& name) -> Status {
      const auto found = files.value().find(name);
      if (found != files.value().end() && found->second == shard) return Status();
      return error("tensor '", printable(name), "' should ",
                   found == files.value().end() ? "not exist" : "be in " + found->second,
                   " according to ", kIndex);
    };
    TRY(add_weights(folder / shard, contents, expect));
  }
  for (const auto& [tensor, file] : files.value()) {
    if (contents.weights.find(tensor) != nullptr) continue;
    return in_file(index_path, str_cat("tensor '", printable(tensor), "' should be in ", file,
                                       ", which does not hold it"));
  }
  return check_surplus(folder, shards);
}

Error no_weights(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    if (name.ends_with(".gguf")) {
      return in_file(folder,
                     str_cat("no ", kSingle, "; open the file ", printable(name), " instead"));
    }
    if (name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt")) {
      return in_file(folder, str_cat("no ", kSingle, ", and ", printable(name),
                                     " is not read: convert it to safetensors"));
    }
  }
  return in_file(folder,
                 str_cat("expected weights in ", kSingle, " or in shards listed in ", kIndex));
}

}  // namespace

Status open_hf_tokenizer(const std::string& path, ModelContents& contents) {
  contents.format = ModelFormat::kHuggingFace;
  TRY(read_configs(path, contents));
  TRY(map_text_files(path, contents));
  if (contents.text_files.empty()) {
    return in_file(path, "expected tokenizer.json, tokenizer.model or tokenizer_config.json");
  }
  return Status();
}

Status open_hf_folder(const std::string& path, ModelContents& contents) {
  contents.format = ModelFormat::kHuggingFace;
  const fs::path folder(path);
  if (!is_there(folder / "config.json")) {
    return in_file(path, "a folder without config.json; expected a Hugging Face model");
  }
  TRY(read_configs(folder, contents));
  TRY(map_text_files(folder, contents));
  if (is_there(folder / kSingle)) {
    return add_weights(folder / kSingle, contents, [](const std::string&) { return Status(); });
  }
  if (is_there(folder / kIndex)) return add_shards(folder, contents);
  return no_weights(folder);
}

}  // namespace tinyvllm
