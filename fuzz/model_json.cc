// The JSON files of a Hugging Face folder, all at once: the input is cut at byte 0x1E, and each
// piece that is not empty becomes one file beside weights that are sound. A folder with an index
// has shards; one without has a single file.
#include <algorithm>

#include "fuzz/touch.h"
#include "io/model_files.h"
#include "tests/io/safetensors_builder.h"

using namespace tinyvllm;

namespace {

constexpr char kSeparator = 0x1E;
constexpr const char* kFiles[] = {"config.json",           "generation_config.json",
                                  "tokenizer_config.json", "tokenizer.json",
                                  "chat_template.json",    "model.safetensors.index.json"};

class ModelFolder : public fuzz::Folder {
 public:
  ModelFolder() {
    write("model-00001-of-00002.safetensors", first_);
    // A header of odd length, so that its tensors have to be copied to be aligned.
    std::string header = "{" + entry("visual.patch.weight", 0, 2) + "," +
                         entry("model.layers.0.self_attn.q_proj.weight", 2, 4) + "}";
    if (header.size() % 2 == 0) header += ' ';
    write("model-00002-of-00002.safetensors", safetensors_file(header, 4));
  }

  void fill(std::string_view input) const {
    bool sharded = false;
    for (const char* name : kFiles) {
      const size_t end = std::min(input.find(kSeparator), input.size());
      const std::string_view piece = input.substr(0, end);
      input.remove_prefix(std::min(end + 1, input.size()));
      if (piece.empty()) {
        remove(name);
      } else {
        write(name, piece);
      }
      sharded = !piece.empty();  // the index comes last
    }
    if (sharded) {
      remove("model.safetensors");
    } else {
      write("model.safetensors", first_);
    }
  }

 private:
  static std::string entry(const char* name, uint64_t begin, uint64_t end) {
    return safetensors_entry(name, "F16", "[1,1]", begin, end);
  }

  const std::string first_ = safetensors_file(
      "{" + entry("model.embed_tokens.weight", 0, 2) + "," + entry("lm_head.weight", 2, 4) + "," +
          entry("model.layers.0.mlp.experts.0.up_proj.weight", 4, 6) + "," +
          entry("model.norm.weight", 6, 8) + "}",
      8);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ModelFolder folder;
  folder.fill({reinterpret_cast<const char*>(data), size});
  if (const auto model = ModelFiles::open(folder.path()); model.ok()) fuzz::touch(*model.value());
  if (const auto text = ModelFiles::open_tokenizer(folder.path()); text.ok()) {
    fuzz::touch(text.value()->metadata());
  }
  return 0;
}
