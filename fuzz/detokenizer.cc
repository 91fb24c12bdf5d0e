// Any tokens through every way of decoding, with any stop strings. The first byte chooses the
// decoder and the options, then come stop strings (each with its length before it), then the
// tokens' bytes.
#include <algorithm>
#include <memory>

#include "fuzz/tokenize.h"
#include "text/byte_alphabet.h"
#include "text/byte_token.h"

using namespace tinyvllm;

namespace {

// A vocabulary of all bytes (in the alphabet of the decoder) and of strings that decoders look for.
std::string tokenizer_json(const char* decoder, bool byte_level) {
  std::string vocabulary;
  int id = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<uint8_t>(byte);
    std::string name = make_byte_token(value);
    if (byte_level) name = to_byte_alphabet(std::string(1, static_cast<char>(value)));
    if (name == "\"" || name == "\\") name.insert(0, "\\");
    vocabulary += str_cat(id == 0 ? "" : ",", "\"", name, "\":", id);
    id += 1;
  }
  for (const char* token : {"▁", "▁▁a", " ", "a</w>", "é", "<s>"}) {
    vocabulary += str_cat(",\"", token, "\":", id++);
  }
  return str_cat(
      R"({"added_tokens":[{"id":261,"content":"<s>","special":true,"normalized":false}],)",
      R"("decoder":)", decoder, R"(,"model":{"type":"BPE","merges":[],"vocab":{)", vocabulary,
      "}}}");
}

const Tokenizer& tokenizer_of(size_t choice) {
  struct Shape {
    const char* decoder;
    bool byte_level;
  };
  static constexpr Shape kShapes[] = {
      {R"({"type":"ByteLevel"})", true},
      {R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
           {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
       false},
      {R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},
           {"type":"Strip","content":"a","start":2,"stop":3}]})",
       false},
      {R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first"})", false},
      {R"({"type":"BPEDecoder","suffix":"</w>"})", false},
      {R"({"type":"Replace","pattern":{"Regex":"[a▁]|$"},"content":"漢"})", false},
      {"null", false},
  };
  static const auto kTokenizers = [] {
    std::vector<std::unique_ptr<Tokenizer>> made;
    for (const Shape& shape : kShapes) {
      const std::string json = tokenizer_json(shape.decoder, shape.byte_level);
      TokenizerData files;
      files.tokenizer_json = json;
      auto created = Tokenizer::create(files);
      CHECK(created.ok()) << created.message();
      made.push_back(std::move(created).value());
    }
    return made;
  }();
  return *kTokenizers[choice % kTokenizers.size()];
}

// Where the text ends: at the stop string that ends first, the longest of those.
std::string cut_at_stop(const std::string& text, const std::vector<std::string>& stops,
                        bool include) {
  size_t best_end = std::string::npos;
  size_t best_begin = 0;
  for (const std::string& stop : stops) {
    const std::string wanted = utf8_replace_invalid(stop);
    const size_t begin = wanted.empty() ? std::string::npos : text.find(wanted);
    if (begin == std::string::npos) continue;
    const size_t end = begin + wanted.size();
    if (best_end == std::string::npos || end < best_end) best_end = end, best_begin = begin;
    if (end == best_end) best_begin = std::min(best_begin, begin);
  }
  return best_end == std::string::npos ? text : text.substr(0, include ? best_end : best_begin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Tokenizer& tokenizer = tokenizer_of(data[0] >> 2);
  DetokenizerOptions options;
  options.skip_special = (data[0] & 1) != 0;
  options.include_stop = (data[0] & 2) != 0;
  const size_t stop_count = data[1] % 4;
  bytes.remove_prefix(2);
  for (size_t i = 0; i < stop_count && !bytes.empty(); ++i) {
    const size_t length = static_cast<unsigned char>(bytes[0]) % 12;
    bytes.remove_prefix(1);
    options.stop.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  std::vector<int32_t> ids;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    ids.push_back(value >= 0xF8 ? 256 + (value & 7) : value);
  }
  fuzz::check_decoding(tokenizer, ids);

  Detokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const int32_t id : ids) {
    const std::string delta = detokenizer.push(id);
    CHECK(is_utf8(delta)) << printable(delta);
    CHECK(!detokenizer.stopped() || !detokenizer.stop_string().empty());
    text += delta;
  }
  text += detokenizer.finish();
  const std::string whole = tokenizer.decode(ids, options.skip_special);
  CHECK(text == cut_at_stop(whole, options.stop, options.include_stop))
      << printable(text) << " of " << printable(whole);
  return 0;
}
