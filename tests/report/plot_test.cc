// Charts: where the numbers of an axis stand, that points land where their values are, and that
// nothing in a name can break the drawing.
#include "report/plot.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace tinyvllm {
namespace {

using Ticks = std::vector<double>;

TEST(AxisTicks, AreRoundAndEncloseTheValues) {
  EXPECT_EQ(axis_ticks(0, 9.7, false), (Ticks{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(3, 3, false).size(), 4u);  // a single value has room around it
  EXPECT_EQ(axis_ticks(30, 900, true), (Ticks{20, 50, 100, 200, 500, 1000}));
  EXPECT_EQ(axis_ticks(1, 1e5, true), (Ticks{1, 10, 100, 1000, 1e4, 1e5}));
  for (const double high : {1e-7, 0.13, 7.0, 1234.5, 9.9e11}) {
    for (const bool log : {false, true}) {
      const Ticks ticks = axis_ticks(high / 3, high, log);
      EXPECT_LE(ticks.front(), high / 3 * (1 + 1e-9));
      EXPECT_GE(ticks.back(), high * (1 - 1e-9));
      EXPECT_LE(ticks.size(), 9u) << high;
    }
  }
}

TEST(AxisNumber, IsShort) {
  EXPECT_EQ(axis_number(0), "0");
  EXPECT_EQ(axis_number(0.25), "0.25");
  EXPECT_EQ(axis_number(1500), "1,500");
  EXPECT_EQ(axis_number(20000), "20k");
  EXPECT_EQ(axis_number(3e6), "3M");
}

TEST(Plot, PointsLandWhereTheirValuesAre) {
  const std::string svg =
      to_svg(Chart{"t", {"x"}, {"y"}, {{"s", {{0, 0}, {10, 100}}, Mark::kLine}}});
  // Corners of the drawing's area: left and bottom, right and top.
  EXPECT_NE(svg.find("d=\"M66.0 314.0L700.0 56.0\""), std::string::npos) << svg;
}

TEST(Plot, LeavesOutWhatALogarithmCannotShow) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string svg =
      to_svg(Chart{"t", {"x", true}, {"y", true}, {{"s", {{0, 1}, {1, -1}, {inf, 1}, {10, NAN}}}}});
  EXPECT_EQ(svg.find("circle"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(to_svg(BarChart{"t", "ms", {"a"}, {{"s", {NAN}}}}).find("nan"), std::string::npos);
}

TEST(Plot, NamesCannotBreakTheDrawing) {
  const std::string bad = "</svg><script>\"'&";
  const std::string svg = to_svg(Chart{bad, {bad}, {bad}, {{bad, {{1, 1, bad}}}, {bad, {}}}}) +
                          to_svg(BarChart{bad, bad, {bad}, {{bad, {1}}}});
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

}  // namespace
}  // namespace tinyvllm
