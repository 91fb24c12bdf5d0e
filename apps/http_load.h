// Sends requests to an OpenAI-compatible server, at a rate or so many at a time, and reads its
// streams as they come. One thread, any number of connections (libcurl).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/serve_metrics.h"

namespace tinyvllm {

struct HttpTarget {
  std::string url;
  std::string api_key;  // empty: none
  double timeout_s = 600;
};

struct LoadPlan {
  double request_rate = 0;  // a second, at random times (Poisson); 0: all at once
  int max_concurrency = 0;  // 0: any
  uint64_t seed = 0;
};

struct LoadResult {
  std::vector<ServedRequest> requests;  // in the order in which they were sent
  double duration_s = 0;
};

// The body of an answer, or an error that names url and status.
Result<std::string> http_get(const HttpTarget& target);

// Posts every body. A request that fails is a result; when nobody listens any more, or Ctrl-C
// comes, what is left is not sent.
LoadResult run_load(const HttpTarget& target, const std::vector<std::string>& bodies,
                    const LoadPlan& plan, const std::function<void(int done)>& progress);

}  // namespace tinyvllm
