#include "report/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.h"
#include "report/page.h"

namespace tinyvllm {
namespace {

// The drawing's units; the page scales it to its width.
constexpr double kWidth = 720, kHeight = 360;
constexpr double kLeft = 66, kRight = 20, kTop = 56, kBottom = 46;
constexpr double kLetter = 6.4;  // width of an average letter at 12 px
constexpr int kColours = 6;
constexpr const char* kDefaultColours[kColours] = {"#2563eb", "#d97706", "#059669",
                                                   "#db2777", "#7c3aed", "#64748b"};

std::string colour(size_t series) {
  const size_t c = series % kColours;
  return str_cat("var(--c", c, ",", kDefaultColours[c], ")");
}

std::string number(double value) {  // a coordinate
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

double text_width(const std::string& text) { return kLetter * static_cast<double>(text.size()); }

std::string text_at(double x, double y, const std::string& anchor, const std::string& text,
                    const std::string& more = "") {
  return str_cat("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor, "\"",
                 more, ">", html_escape(text), "</text>\n");
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return str_cat("<path d=\"M", number(x1), " ", number(y1), "L", number(x2), " ", number(y2),
                 "\" ", style, "/>\n");
}

constexpr char kGrid[] = "stroke=\"currentColor\" stroke-opacity=\".15\" fill=\"none\"";

std::string frame(double height, const std::string& title, const std::string& body) {
  return str_cat("<svg viewBox=\"0 0 ", kWidth, " ", number(height),
                 "\" role=\"img\" aria-label=\"", html_escape(title),
                 "\" font-family=\"system-ui,sans-serif\" font-size=\"12\" fill=\"currentColor\" "
                 "xmlns=\"http://www.w3.org/2000/svg\">\n",
                 text_at(kLeft, 20, "start", title, " font-size=\"15\" font-weight=\"600\""), body,
                 "</svg>\n");
}

std::string legend(const std::vector<std::string>& names) {
  std::string out;
  double x = kLeft;
  for (size_t i = 0; names.size() > 1 && i < names.size(); ++i) {
    out +=
        str_cat("<rect x=\"", number(x), "\" y=\"31\" width=\"10\" height=\"10\" rx=\"2\" fill=\"",
                colour(i), "\"/>\n", text_at(x + 15, 40, "start", names[i]));
    x += 15 + text_width(names[i]) + 22;
  }
  return out;
}

// From values to places on the drawing.
struct Scale {
  bool log = false;
  double low = 0, high = 1, begin = 0, end = 1;
  std::vector<double> ticks;

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double at(double value) const {
    const auto along = [&](double v) { return log ? std::log10(v) : v; };
    const double part = (along(value) - along(low)) / (along(high) - along(low));
    return begin + part * (end - begin);
  }
};

Scale make_scale(const Chart& chart, bool horizontal) {
  Scale scale;
  scale.log = (horizontal ? chart.x : chart.y).log;
  double low = INFINITY, high = -INFINITY;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      const double value = horizontal ? point.x : point.y;
      if (!scale.shows(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) low = scale.log ? 1 : 0, high = 10;
  if (!scale.log && !horizontal && low > 0) low = 0;  // lengths are compared from zero
  scale.ticks = axis_ticks(low, high, scale.log);
  scale.low = scale.ticks.front();
  scale.high = scale.ticks.back();
  scale.begin = horizontal ? kLeft : kHeight - kBottom;
  scale.end = horizontal ? kWidth - kRight : kTop;
  return scale;
}

std::string axes(const Chart& chart, const Scale& x, const Scale& y) {
  std::string out;
  for (const double tick : x.ticks) {
    out += line(x.at(tick), y.begin, x.at(tick), y.end, kGrid);
    out += text_at(x.at(tick), y.begin + 17, "middle", axis_number(tick));
  }
  for (const double tick : y.ticks) {
    out += line(x.begin, y.at(tick), x.end, y.at(tick), kGrid);
    out += text_at(x.begin - 8, y.at(tick) + 4, "end", axis_number(tick));
  }
  out += text_at((x.begin + x.end) / 2, kHeight - 8, "middle", chart.x.label);
  const double middle = (y.begin + y.end) / 2;
  out += text_at(14, middle, "middle", chart.y.label,
                 str_cat(" transform=\"rotate(-90 14 ", number(middle), ")\""));
  return out;
}

// Notes beside points, as long as none covers another or leaves the drawing.
class Notes {
 public:
  void avoid(double x, double y) { taken_.push_back({x - 4, y - 4, x + 4, y + 4}); }

  std::string place(double x, double y, const std::string& note) {
    const double width = text_width(note);
    for (const auto& [dx, dy] :
         {std::pair{8.0, 4.0}, {8.0, -8.0}, {8.0, 16.0}, {-8 - width, 4.0}}) {
      const Box box{x + dx, y + dy - 10, x + dx + width, y + dy + 3};
      if (box.x1 < kLeft || box.x2 > kWidth || box.y1 < kTop || box.y2 > kHeight - kBottom)
        continue;
      const bool covers = std::any_of(taken_.begin(), taken_.end(), [&](const Box& other) {
        return box.x1 < other.x2 && other.x1 < box.x2 && box.y1 < other.y2 && other.y1 < box.y2;
      });
      if (covers) continue;
      taken_.push_back(box);
      return text_at(x + dx, y + dy, "start", note, " font-size=\"11\" fill-opacity=\".8\"");
    }
    return "";
  }

 private:
  struct Box {
    double x1, y1, x2, y2;
  };
  std::vector<Box> taken_;
};

std::string draw(const Series& series, size_t index, const Scale& x, const Scale& y, Notes& notes) {
  std::string path, marks;
  for (const Point& point : series.points) {
    if (!x.shows(point.x) || !y.shows(point.y)) continue;
    const double px = x.at(point.x), py = y.at(point.y);
    path += str_cat(path.empty() ? "M" : "L", number(px), " ", number(py));
    marks += str_cat("<circle cx=\"", number(px), "\" cy=\"", number(py), "\" r=\"3.5\" fill=\"",
                     colour(index), "\"><title>",
                     html_escape(str_cat(point.note.empty() ? series.name : point.note, ": ",
                                         axis_number(point.x), ", ", axis_number(point.y))),
                     "</title></circle>\n");
    if (!point.note.empty()) marks += notes.place(px, py, point.note);
  }
  if (series.mark == Mark::kLine && !path.empty()) {
    path = str_cat("<path d=\"", path, "\" fill=\"none\" stroke-width=\"2\" stroke=\"",
                   colour(index), "\"/>\n");
  } else {
    path.clear();
  }
  return path + marks;
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, bool log) {
  std::vector<double> ticks;
  if (log) {
    const double first = std::floor(std::log10(low) + 1e-9);
    const double last = std::ceil(std::log10(high) - 1e-9);
    const bool few = last - first <= 2;
    for (double e = first; e <= last; ++e) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit == 1 || (few && e < last)) ticks.push_back(digit * std::pow(10, e));
      }
    }
    while (ticks.size() > 2 && ticks[1] <= low) ticks.erase(ticks.begin());
    while (ticks.size() > 2 && ticks[ticks.size() - 2] >= high) ticks.pop_back();
    if (ticks.size() == 1) ticks.push_back(10 * ticks[0]);
    return ticks;
  }
  if (!(high > low)) high = low + std::max(1.0, std::abs(low));
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double digit : {5.0, 2.0, 1.0}) {
    if (digit * power >= rough * (1 - 1e-9)) step = digit * power;
  }
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string axis_number(double value) {
  constexpr std::pair<double, const char*> kSuffixes[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  char text[32];
  for (const auto& [size, suffix] : kSuffixes) {
    if (std::abs(value) < size || std::abs(value) < 1e4) continue;
    std::snprintf(text, sizeof text, "%.3g%s", value / size, suffix);
    return text;
  }
  if (std::abs(value) >= 1000) return group_digits(std::llround(value));
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string to_svg(const Chart& chart) {
  const Scale x = make_scale(chart, true), y = make_scale(chart, false);
  std::vector<std::string> names;
  for (const Series& series : chart.series) names.push_back(series.name);
  std::string body = legend(names) + axes(chart, x, y);
  Notes notes;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      if (x.shows(point.x) && y.shows(point.y)) notes.avoid(x.at(point.x), y.at(point.y));
    }
  }
  for (size_t i = 0; i < chart.series.size(); ++i) body += draw(chart.series[i], i, x, y, notes);
  return frame(kHeight, chart.title, body);
}

std::string to_svg(const BarChart& chart) {
  constexpr double kBar = 16, kGap = 10, kMostNameWidth = 260;
  const double group = kBar * static_cast<double>(chart.series.size()) + kGap;
  double name_width = 0, highest = 0;
  for (const std::string& name : chart.names) name_width = std::max(name_width, text_width(name));
  std::vector<std::string> names;
  for (const BarChart::Values& series : chart.series) {
    names.push_back(series.name);
    for (const double value : series.values) {
      if (std::isfinite(value)) highest = std::max(highest, value);
    }
  }
  const double left = std::min(name_width, kMostNameWidth) + 16;
  const double height = kTop + group * static_cast<double>(chart.names.size()) + kBottom;
  Scale x;
  x.ticks = axis_ticks(0, highest, false);
  x.high = x.ticks.back();
  x.begin = left;
  x.end = kWidth - 64;  // room for the longest bar's number
  std::string body = legend(names);
  for (const double tick : x.ticks) {
    body += line(x.at(tick), kTop, x.at(tick), height - kBottom, kGrid);
    body += text_at(x.at(tick), height - kBottom + 17, "middle", axis_number(tick));
  }
  body += text_at((x.begin + x.end) / 2, height - 8, "middle", chart.unit);
  for (size_t i = 0; i < chart.names.size(); ++i) {
    const double top = kTop + kGap / 2 + group * static_cast<double>(i);
    body += text_at(left - 8, top + (group - kGap) / 2 + 4, "end", chart.names[i]);
    for (size_t s = 0; s < chart.series.size(); ++s) {
      const double value = i < chart.series[s].values.size() ? chart.series[s].values[i] : 0;
      if (!std::isfinite(value) || value < 0) continue;
      const double y = top + kBar * static_cast<double>(s);
      body += str_cat("<rect x=\"", number(left), "\" y=\"", number(y + 1), "\" width=\"",
                      number(x.at(value) - left), "\" height=\"", number(kBar - 2),
                      "\" rx=\"2\" fill=\"", colour(s), "\"/>\n",
                      text_at(x.at(value) + 5, y + kBar / 2 + 4, "start", axis_number(value)));
    }
  }
  return frame(height, chart.title, body);
}

}  // namespace tinyvllm
