// Opens a .gguf and, when it is one part of a split model, its siblings NAME-00001-of-0000N.gguf.
// The first part carries the metadata; every part says which one it is, and all must agree.
#include <cstdio>
#include <optional>

#include "io/gguf_reader.h"
#include "io/model_contents.h"

namespace tinyvllm {
namespace {

struct Part {
  std::unique_ptr<MappedFile> file;
  GgufContents contents;
};

Result<Part> read_part(std::unique_ptr<MappedFile> file) {
  Result<GgufContents> contents = read_gguf(file->bytes());
  if (!contents.ok()) return error(printable(file->path(), 4096), ": ", contents.message());
  return Part{std::move(file), std::move(contents).value()};
}

Result<Part> open_part(const std::string& path) {
  TRY_ASSIGN(std::unique_ptr<MappedFile> file, MappedFile::open(path));
  return read_part(std::move(file));
}

// "x-00002-of-00003.gguf" → "x" when it is a part of `count`.
std::optional<std::string> split_prefix(const std::string& path, int64_t count) {
  constexpr size_t kSuffixBytes = sizeof("-00001-of-00001.gguf") - 1;
  if (path.size() <= kSuffixBytes || count > 99999) return std::nullopt;
  const std::string suffix = path.substr(path.size() - kSuffixBytes);
  int number = 0, of = 0, end = 0;
  if (std::sscanf(suffix.c_str(), "-%5d-of-%5d.gguf%n", &number, &of, &end) != 2 ||
      end != static_cast<int>(kSuffixBytes) || of != count) {
    return std::nullopt;
  }
  return path.substr(0, path.size() - kSuffixBytes);
}

std::string part_path(const std::string& prefix, int64_t number, int64_t count) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, "-%05lld-of-%05lld.gguf", static_cast<long long>(number),
                static_cast<long long>(count));
  return prefix + suffix;
}

Status expect_key(const Metadata& metadata, const char* key, int64_t expected) {
  TRY_ASSIGN(const int64_t found, metadata.integer(key));
  if (found == expected) return Status();
  return error("key '", key, "' is ", found, "; expected ", expected);
}

Status check_part(const Part& part, int64_t number, int64_t count) {
  Status status = expect_key(part.contents.metadata, "split.no", number - 1);
  if (status.ok()) status = expect_key(part.contents.metadata, "split.count", count);
  if (status.ok()) return status;
  return error(printable(part.file->path(), 4096), ": ", status.message(), " in part ", number,
               " of ", count);
}

Status add_part(Part part, ModelContents& contents) {
  for (WeightTensor& tensor : part.contents.tensors) {
    tensor.file = static_cast<int>(contents.weight_files.size());
    const std::string name = tensor.name;
    if (!contents.weights.insert(std::move(tensor))) {
      return error(printable(part.file->path(), 4096), ": tensor '", printable(name),
                   "' is in another part already");
    }
  }
  part.file->prefer_huge_pages();
  contents.weight_files.push_back(std::move(part.file));
  return Status();
}

void take_metadata(Part& part, ModelContents& contents) {
  contents.metadata = std::move(part.contents.metadata);
  contents.gguf_pairs = std::move(part.contents.pairs);
}

Status open_parts(const std::string& path, int64_t count, ModelContents& contents) {
  const std::optional<std::string> prefix = split_prefix(path, count);
  if (!prefix) {
    return error(printable(path, 4096), " is one of ", count, " parts, so its name must end like ",
                 part_path("", 1, count));
  }
  for (int64_t number = 1; number <= count; ++number) {
    Result<Part> opened = open_part(part_path(*prefix, number, count));
    if (!opened.ok()) {
      return error("part ", number, " of ", count, ": ", opened.message());
    }
    Part part = std::move(opened).value();
    TRY(check_part(part, number, count));
    if (number == 1) take_metadata(part, contents);
    TRY(add_part(std::move(part), contents));
  }
  const auto total = static_cast<int64_t>(contents.weights.tensors().size());
  TRY_ASSIGN(const int64_t expected, contents.metadata.integer_or("split.tensors.count", total));
  if (total == expected) return Status();
  return error(printable(path, 4096), ": the ", count, " parts hold ", total,
               " tensors; expected the ", expected, " of key 'split.tensors.count'");
}

Status read_text(ModelContents& contents) {
  TokenizerData& text = contents.tokenizer;
  auto vocabulary = take_gguf_vocabulary(contents.metadata);
  const auto chat_template = contents.metadata.string_or("tokenizer.chat_template", "");
  const auto with_tools = contents.metadata.string_or("tokenizer.chat_template.tool_use", "");
  for (const std::string& message :
       {vocabulary.message(), chat_template.message(), with_tools.message()}) {
    if (message.empty()) continue;
    return error(printable(contents.weight_files[0]->path(), 4096), ": ", message);
  }
  text.gguf = std::move(vocabulary).value();
  text.chat_template = chat_template.value();
  text.chat_template_with_tools = with_tools.value();
  return Status();
}

Status add_single(Part part, ModelContents& contents) {
  take_metadata(part, contents);
  TRY(add_part(std::move(part), contents));
  return read_text(contents);
}

}  // namespace

Status open_gguf(const std::string& path, ModelContents& contents) {
  contents.format = ModelFormat::kGguf;
  TRY_ASSIGN(Part part, open_part(path));
  const Result<int64_t> count = part.contents.metadata.integer_or("split.count", 1);
  if (!count.ok()) return error(printable(path, 4096), ": ", count.message());
  if (count.value() > 1) {
    TRY(open_parts(path, count.value(), contents));
    return read_text(contents);
  }
  return add_single(std::move(part), contents);
}

Status adopt_gguf_file(std::unique_ptr<MappedFile> file, ModelContents& contents) {
  contents.format = ModelFormat::kGguf;
  TRY_ASSIGN(Part part, read_part(std::move(file)));
  return add_single(std::move(part), contents);
}

}  // namespace tinyvllm
