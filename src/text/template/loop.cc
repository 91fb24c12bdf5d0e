#include "text/template/loop.h"

#include "text/template/iterate.h"
#include "text/template/operators.h"

namespace tinyvllm::jinja {

Loop* make_loop(Sandbox& sandbox, const Value& iterable, Iterator* source) {
  Loop* loop = sandbox.heap().make<Loop>();
  loop->sandbox = &sandbox;
  loop->source = source;
  loop->iterable = iterable;
  return loop;
}

const Value& Loop::peek() {
  if (after.missing() && !source->next(after)) after = Value();
  return after;
}

bool Loop::advance() {
  Value next = after;
  after = Value();
  if (next.missing() && !source->next(next)) return false;
  index0 += 1;
  before = current;
  current = next;
  return true;
}

int64_t Loop::length() {
  if (total >= 0) return total;
  const std::optional<int64_t> known = length_of(iterable);
  if (known.has_value()) return total = *known;
  // Read to the end, and go on from a list of what was read.
  const std::vector<Value> rest = to_vector(*sandbox, Value(source));
  source = iterate(*sandbox, new_list(sandbox->heap(), rest));
  return total = static_cast<int64_t>(rest.size()) + index0 + 1 + (after.missing() ? 0 : 1);
}

Value loop_property(Sandbox& sandbox, Loop& loop, std::string_view name) {
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.peek().missing());
  if (name == "length") return Value(loop.length());
  if (name == "revindex") return Value(loop.length() - loop.index0);
  if (name == "revindex0") return Value(loop.length() - loop.index0 - 1);
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") {
    return loop.index0 == 0 ? undefined_hint(sandbox, "there is no previous item") : loop.before;
  }
  if (name == "nextitem") {
    const Value& next = loop.peek();
    return next.missing() ? undefined_hint(sandbox, "there is no next item") : next;
  }
  return Value();
}

}  // namespace tinyvllm::jinja
