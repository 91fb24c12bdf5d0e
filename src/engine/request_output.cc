#include "engine/request_output.h"

#include <iterator>

namespace tinyvllm {

void append(RequestOutput& answer, RequestOutput&& news) {
  const auto join = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  news.text.insert(0, answer.text);
  join(answer.tokens, news.tokens);
  join(answer.prompt_logprobs, news.prompt_logprobs);
  news.tokens = std::move(answer.tokens);
  news.prompt_logprobs = std::move(answer.prompt_logprobs);
  answer = std::move(news);
}

}  // namespace tinyvllm
