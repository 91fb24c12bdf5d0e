#include "apps/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/strings.h"

namespace tinyvllm {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(300);  // work that is over sooner shows no bar
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr int kBarWidth = 24;

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::update(std::string_view what, int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || total <= 0 || now - start_ < kPatience) return;
  if (visible_ && now - drawn_ < kInterval) return;
  drawn_ = now;
  visible_ = true;

  const double part = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string left = part > 0 ? str_cat(std::lround(elapsed / part - elapsed)) : "?";
  const int filled = static_cast<int>(part * kBarWidth);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < filled ? "█" : "░";
  std::string tail = str_cat(" ", printable(what));
  const int fixed = static_cast<int>(title_.size()) + kBarWidth + 20;
  tail.resize(std::min(tail.size(), static_cast<size_t>(std::max(0, terminal_columns() - fixed))));
  std::fprintf(stderr, "\r\033[K%s %s %3.0f%% %4s s left%s", title_.c_str(), bar.c_str(),
               100 * part, left.c_str(), tail.c_str());
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!visible_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace tinyvllm
