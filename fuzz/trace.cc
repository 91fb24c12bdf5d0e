// Any bytes as a trace log, through everything that `tinyvllm analyze` makes of one; cut in parts
// it must say the same.
#include <cstdlib>

#include "fuzz/touch.h"
#include "report/analyze/diff.h"
#include "report/analyze/html.h"
#include "report/analyze/perfetto.h"

using namespace tinyvllm;

namespace {

Trace read_in_parts(const std::string& path, int parts) {
  const Result<LogFile> file = LogFile::open(path);
  if (!file.ok()) std::abort();
  const std::vector<int64_t> starts = file.value().split(parts);
  Trace whole;
  whole.parts = {path};
  for (size_t p = 0; p + 1 < starts.size(); ++p) {
    Trace part;
    part.counts =
        file.value().scan(starts[p], starts[p + 1], [&](const Record& r) { part.add(r); }).value();
    whole.take(std::move(part));
  }
  return whole;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  folder.write("log.jsonl", {reinterpret_cast<const char*>(data), size});
  const std::string path = folder.path("log.jsonl");
  const Trace whole = read_in_parts(path, 1);
  const Trace parts = read_in_parts(path, 3);
  const Analysis analysis = analyze("log", whole, {});
  if (to_text(analysis.kernels.front()) != to_text(kernel_sections(parts, {}).front()))
    std::abort();
  to_text(analysis);
  to_json(analysis, whole);
  to_section(diff_traces(whole, parts), 20);
  const Result<Timeline> timeline = make_timeline(whole);
  if (!timeline.ok()) std::abort();
  to_html(analysis, whole, timeline.value());
  if (!write_perfetto(whole, "/dev/null").ok()) std::abort();
  std::filesystem::remove(path);  // overwriting a file waits for the disk
  return 0;
}
