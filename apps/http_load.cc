#include "apps/http_load.h"

#include <algorithm>
#include <curl/curl.h>
#include <memory>
#include <random>
#include <simdjson.h>

#include "apps/command.h"
#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

constexpr size_t kMaxErrorBody = 400;
constexpr size_t kMaxLine = size_t{16} << 20;  // of a stream; a server that sends more is broken

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

Headers make_headers(const HttpTarget& target) {
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  if (!target.api_key.empty()) {
    list = curl_slist_append(list, str_cat("Authorization: Bearer ", target.api_key).c_str());
  }
  return Headers(list, &curl_slist_free_all);
}

// One request under way: its stream is cut into events, and each is looked at when it arrives.
class Transfer {
 public:
  Transfer(const HttpTarget& target, const std::string& body, curl_slist* headers,
           const Stopwatch& clock)
      : clock_(clock), handle_(curl_easy_init(), &curl_easy_cleanup) {
    served_.start_s = clock.seconds();
    CURL* curl = handle_.get();
    curl_easy_setopt(curl, CURLOPT_URL, target.url.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(1e3 * target.timeout_s));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* handle() const { return handle_.get(); }

  ServedRequest finish(CURLcode code) {
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    take_line();
    served_.e2e_s = (last_s_ > 0 ? last_s_ : clock_.seconds()) - served_.start_s;
    if (served_.tokens == 0) served_.tokens = pieces_;
    if (code != CURLE_OK) {
      served_.error = curl_easy_strerror(code);
    } else if (status != 200) {
      served_.error = str_cat("HTTP status ", status, ": ", printable(other_, kMaxErrorBody));
    } else if (!server_error_.empty()) {
      served_.error = server_error_;
    } else if (!ended_) {
      served_.error = "the stream ended before the answer did";
    } else if (pieces_ == 0) {
      served_.error = "the answer is empty";
    }
    served_.ok = served_.error.empty();
    return std::move(served_);
  }

 private:
  static size_t on_bytes(char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    for (const char c : std::string_view(data, size * count)) {
      if (c != '\n') transfer.line_ += c;
      if (c == '\n') transfer.take_line();
      if (transfer.line_.size() > kMaxLine) return 0;  // ends the transfer
    }
    return size * count;
  }

  void take_line() {
    std::string line = std::exchange(line_, {});
    if (line.ends_with('\r')) line.pop_back();
    if (!line.starts_with("data:")) {
      if (!line.starts_with(":") && other_.size() < kMaxErrorBody) other_ += line;
      return;
    }
    const size_t begin = line.find_first_not_of(' ', 5);
    if (begin == std::string::npos) return;
    const std::string_view data = std::string_view(line).substr(begin);
    if (data == "[DONE]") {
      ended_ = true;
    } else {
      take_event(data);
    }
  }

  void take_event(std::string_view data) {
    simdjson::dom::element event, choice;
    std::string_view text;
    if (parser_.parse(simdjson::padded_string(data)).get(event) != simdjson::SUCCESS) {
      server_error_ = str_cat("not JSON: ", printable(data));
      return;
    }
    if (event["error"]["message"].get(text) == simdjson::SUCCESS) server_error_ = text;
    int64_t count = 0;
    if (event["usage"]["prompt_tokens"].get(count) == simdjson::SUCCESS) {
      served_.prompt_tokens = static_cast<int>(count);
    }
    if (event["usage"]["completion_tokens"].get(count) == simdjson::SUCCESS) {
      served_.tokens = static_cast<int>(count);
    }
    if (event["choices"].at(0).get(choice) != simdjson::SUCCESS) return;
    if (choice["finish_reason"].get(text) == simdjson::SUCCESS) ended_ = true;
    const bool has_text = choice["text"].get(text) == simdjson::SUCCESS ||
                          choice["delta"]["content"].get(text) == simdjson::SUCCESS ||
                          choice["delta"]["reasoning_content"].get(text) == simdjson::SUCCESS;
    if (has_text && !text.empty()) take_piece();
  }

  void take_piece() {
    const double now = clock_.seconds();
    if (pieces_ == 0) {
      served_.ttft_s = now - served_.start_s;
    } else {
      served_.gaps_s.push_back(now - last_s_);
    }
    last_s_ = now;
    pieces_ += 1;
  }

  const Stopwatch& clock_;
  const Handle handle_;
  simdjson::dom::parser parser_;
  ServedRequest served_;
  std::string line_, other_, server_error_;
  int pieces_ = 0;
  double last_s_ = 0;
  bool ended_ = false;
};

// When each request is due, in seconds: gaps of a Poisson process, or none.
std::vector<double> arrivals(size_t count, const LoadPlan& plan) {
  std::mt19937_64 random(plan.seed);
  std::exponential_distribution<double> gap(std::max(plan.request_rate, 1e-9));
  std::vector<double> times(count, 0);
  for (size_t i = 1; i < count && plan.request_rate > 0; ++i) times[i] = times[i - 1] + gap(random);
  return times;
}

// The requests under way, and curl's view of them.
class Connections {
 public:
  Connections() : multi_(curl_multi_init(), &curl_multi_cleanup) {}
  ~Connections() {
    for (const auto& transfer : transfers_) {
      curl_multi_remove_handle(multi_.get(), transfer->handle());
    }
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int size() const { return static_cast<int>(transfers_.size()); }

  void add(std::unique_ptr<Transfer> transfer) {
    curl_multi_add_handle(multi_.get(), transfer->handle());
    transfers_.push_back(std::move(transfer));
  }

  // Moves bytes, waiting at most so long; those that are over go to `done`.
  template <class Done>
  void work(double wait_s, Done&& done) {
    int running = 0, left = 0;
    curl_multi_perform(multi_.get(), &running);
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* handle = message->easy_handle;
      curl_multi_remove_handle(multi_.get(), handle);
      const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                      [&](const auto& t) { return t->handle() == handle; });
      done(**found, code);
      transfers_.erase(found);
      wait_s = 0;
    }
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(1e3 * wait_s), nullptr);
  }

 private:
  const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

}  // namespace

Result<std::string> http_get(const HttpTarget& target) {
  const Handle curl(curl_easy_init(), &curl_easy_cleanup);
  const Headers headers = make_headers(target);
  std::string body;
  curl_easy_setopt(curl.get(), CURLOPT_URL, target.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(1e3 * target.timeout_s));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(
      curl.get(), CURLOPT_WRITEFUNCTION, +[](char* data, size_t size, size_t count, void* to) {
        static_cast<std::string*>(to)->append(data, size * count);
        return size * count;
      });
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return error(printable(target.url), ": ", curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return error(printable(target.url), ": HTTP status ", status);
  return body;
}

LoadResult run_load(const HttpTarget& target, const std::vector<std::string>& bodies,
                    const LoadPlan& plan, const std::function<void(int done)>& progress) {
  constexpr double kLongestWait = 0.1;  // so that Ctrl-C is seen
  const std::vector<double> due = arrivals(bodies.size(), plan);
  const Headers headers = make_headers(target);
  const Stopwatch clock;
  Connections connections;
  LoadResult result;
  bool deserted = false;  // nobody listens any more
  size_t sent = 0;
  const auto done = [&](Transfer& transfer, CURLcode code) {
    deserted |= code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
    result.requests.push_back(transfer.finish(code));
    progress(static_cast<int>(result.requests.size()));
  };
  while (!interrupted() && (connections.size() > 0 || (sent < bodies.size() && !deserted))) {
    const auto may_send = [&] {
      return sent < bodies.size() && !deserted && due[sent] <= clock.seconds() &&
             (plan.max_concurrency == 0 || connections.size() < plan.max_concurrency);
    };
    while (may_send()) {
      connections.add(std::make_unique<Transfer>(target, bodies[sent++], headers.get(), clock));
    }
    const bool room = plan.max_concurrency == 0 || connections.size() < plan.max_concurrency;
    const bool more = room && sent < bodies.size() && !deserted;
    const double wait = more ? due[sent] - clock.seconds() : kLongestWait;
    connections.work(std::clamp(wait, 0.0, kLongestWait), done);
  }
  result.duration_s = clock.seconds();
  std::stable_sort(result.requests.begin(), result.requests.end(),
                   [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
  return result;
}

}  // namespace tinyvllm
