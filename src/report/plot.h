// Charts as inline SVG: lines and points over linear or logarithmic axes, and horizontal bars. A
// chart is self-contained and takes its colours from the page (--c0 … --c5, currentColor), so that
// it reads on light and dark alike; page.h defines them, and there are defaults without.
#pragma once

#include <string>
#include <vector>

namespace tinyvllm {

enum class Mark { kLine, kPoints };  // a line shows its points, too

struct Point {
  double x = 0;
  double y = 0;
  std::string note = {};  // shown when pointed at; beside the point where there is room
};

struct Series {
  std::string name;
  std::vector<Point> points;
  Mark mark = Mark::kLine;
};

struct Axis {
  std::string label;
  bool log = false;  // points that are not above zero are left out
};

struct Chart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
};

// Groups of horizontal bars from zero: one group a name, in it one bar for each series.
struct BarChart {
  struct Values {
    std::string name;            // in the legend, when there are several
    std::vector<double> values;  // one for each of `names`
  };
  std::string title;
  std::string unit;
  std::vector<std::string> names;
  std::vector<Values> series;
};

std::string to_svg(const Chart& chart);
std::string to_svg(const BarChart& chart);

// Where an axis puts its numbers: round ones, from below `low` to above `high`. On a logarithmic
// axis powers of ten, and 2 and 5 between them where there are few.
std::vector<double> axis_ticks(double low, double high, bool log);

// 0.25, 12, 1,500, 20k, 3M: at most four digits that say something.
std::string axis_number(double value);

}  // namespace tinyvllm
