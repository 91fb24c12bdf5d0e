#include "report/analyze/html.h"

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "base/strings.h"
#include "report/analyze/html_script.h"
#include "report/analyze/tables.h"
#include "report/page.h"
#include "report/plot.h"

namespace tinyvllm {
namespace {

std::string head_cell(const std::string& name, bool left) {
  return str_cat("<th data-sort", left ? " class=\"l\"" : "", ">", html_escape(name), "</th>");
}

std::string number_data(double value) {
  JsonWriter json;
  return json.value(value).str();
}

std::string table_html(const TableSection& section) {
  if (section.rows.empty() && section.notes.empty()) return "<p class=\"none\">no samples</p>\n";
  std::string out;
  if (!section.rows.empty()) {
    out = "<div class=\"wide\"><table><thead><tr>";
    for (const auto& column : section.columns) {
      out += head_cell(column.name, column.align == Column::kLeft);
    }
    out += "</tr></thead><tbody>\n";
    for (const auto& row : section.rows) {
      out += "<tr>";
      for (size_t c = 0; c < row.size(); ++c) {
        const bool left = section.columns[c].align == Column::kLeft;
        out += str_cat("<td", left ? " class=\"l\"" : "");
        if (row[c].number) out += str_cat(" data-v=\"", number_data(*row[c].number), "\"");
        out += str_cat(">", html_escape(row[c].text), "</td>");
      }
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  }
  for (const std::string& note : section.notes) {
    out += str_cat("<p class=\"note\">", html_escape(note), "</p>\n");
  }
  return out;
}

void add_line(const StatLine& line, const std::string& prefix, TableSection& table) {
  const std::string name = str_cat(prefix, line.name);
  for (const StatLine& inner : line.inner) add_line(inner, name + " ", table);
  if (!line.inner.empty()) return;
  const Stats& s = line.stats;
  std::vector<Cell> row = {{printable(name, 400)},
                           number_cell(static_cast<double>(line.count ? *line.count : s.count))};
  const double totals[] = {
      static_cast<double>(s.total_ns), s.avg_ns, s.min_ns, s.max_ns, s.p50_ns, s.p95_ns, s.p99_ns};
  for (const double ns : totals) row.push_back(s.count > 0 ? ms_cell(ns, 3) : Cell{});
  table.rows.push_back(std::move(row));
}

TableSection as_table(const StatSection& section) {
  TableSection table{section.title,
                     {{"name", "name", Column::kLeft},
                      {"count", "count"},
                      {"total_ms", "total ms"},
                      {"avg_ms", "avg"},
                      {"min_ms", "min"},
                      {"max_ms", "max"},
                      {"p50_ms", "p50"},
                      {"p95_ms", "p95"},
                      {"p99_ms", "p99"}},
                     {}};
  for (const StatLine& line : section.lines) add_line(line, "", table);
  return table;
}

std::string timeline_html(const Timeline& timeline) {
  if (timeline.spans.empty()) return "<p class=\"none\">no samples</p>\n";
  JsonWriter json;
  const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  json.begin_object().field("end", us(timeline.end_ns)).field("lanes", timeline.lanes);
  json.field("names", timeline.names).key("spans").begin_array();
  for (const Timeline::Span& span : timeline.spans) {
    json.begin_array().value(static_cast<int>(span.row)).value(span.lane).value(us(span.begin_ns));
    json.value(us(span.end_ns - span.begin_ns)).value(span.name).end_array();
  }
  std::string data;
  for (const char c : json.end_array().end_object().str()) {  // nothing in it may end the script
    c == '<' ? data += "\\u003c" : data += c;
  }
  std::string out = str_cat("<div id=\"views\"><button data-from=\"0\" data-to=\"",
                            number_data(us(timeline.end_ns)), "\">whole run</button>");
  for (const Timeline::View& view : timeline.views) {
    out += str_cat("<button data-from=\"", number_data(us(view.begin_ns)), "\" data-to=\"",
                   number_data(us(view.end_ns)), "\">", view.name, "</button>");
  }
  return str_cat(out,
                 "</div>\n<div id=\"timeline\"><canvas tabindex=\"0\" role=\"img\" "
                 "aria-label=\"timeline of requests, steps, layers and ops\"></canvas>"
                 "<output></output></div>\n<p class=\"facts\">Wheel or + and - zoom, dragging or "
                 "arrows move, a double click shows all. Layers and ops are there for the steps "
                 "with a button of their own.</p>\n<script type=\"application/json\" id=\"spans\">",
                 data, "</script>\n");
}

// FLOPs a byte against FLOP/s, under the roofs that the machine was measured to have.
std::string roofline_html(const Trace& trace) {
  const RooflineTable table = roofline_of(trace);
  Chart chart{"", {"FLOP per byte", true}, {"GFLOP/s", true}, {}};
  Series phases[] = {{"decode", {}, Mark::kPoints}, {"prefill", {}, Mark::kPoints}};
  double least = 1e300, most = 0;
  for (const RooflineRow& row : table.rows) {
    if (row.work.bytes <= 0 || row.work.flops <= 0) continue;
    const double x = row.work.flops / row.work.bytes;
    least = std::min(least, x);
    most = std::max(most, x);
    phases[row.phase == Phase::kDecode ? 0 : 1].points.push_back({x, row.gflop_per_s, row.op});
  }
  if (most == 0) return "<p class=\"none\">no samples</p>\n";
  for (Series& series : phases) {
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  const MachineLimits& limits = table.limits;
  const auto roof = [&](const char* name, double flops_per_s) {
    const double ridge = flops_per_s / limits.read_bytes_per_s;
    Series series{name, {}, Mark::kLine};
    for (const double x : {std::min(least / 2, ridge / 2), ridge, std::max(most * 2, ridge * 2)}) {
      series.points.push_back({x, std::min(x * limits.read_bytes_per_s, flops_per_s) / 1e9});
    }
    chart.series.push_back(std::move(series));
  };
  if (limits.read_bytes_per_s > 0 && limits.flops_per_s > 0)
    roof("float limit", limits.flops_per_s);
  if (limits.read_bytes_per_s > 0 && limits.int8_ops_per_s > 0) {
    roof("int8 limit", limits.int8_ops_per_s);
  }
  return str_cat("<figure>", to_svg(chart), "</figure>\n");
}

// How long a call of each op takes in each layer; the longest cell of a row is the deepest.
std::string heat_map_html(const Trace& trace, const std::string& phase) {
  NameTable<std::map<int64_t, double>> rows;
  int64_t layers = 0;
  for (const auto& [name, series] : trace.ops) {
    if (series.kind != OpKind::kKernel || series.layer < 0 || series.phase != phase) continue;
    rows[series.part][series.layer] = summarize(series.samples).p50_ns / 1e3;
    layers = std::max(layers, series.layer + 1);
  }
  if (rows.empty() || layers > 1000) return "";
  std::string out =
      str_cat("<h3>", phase, "</h3>\n<div class=\"wide\"><table class=\"heat\"><tr><th></th>");
  for (int64_t layer = 0; layer < layers; ++layer) {
    out += layer % 5 == 0 ? str_cat("<th>", layer, "</th>") : "<th></th>";
  }
  out += "</tr>\n";
  for (const auto& [part, cells] : rows) {
    double least = 1e300, most = 0;
    for (const auto& [layer, us] : cells) least = std::min(least, us), most = std::max(most, us);
    out += str_cat("<tr><th class=\"l\">", html_escape(part), "</th>");
    for (int64_t layer = 0; layer < layers; ++layer) {
      const auto cell = cells.find(layer);
      if (cell == cells.end()) {
        out += "<td style=\"--h:0\"></td>";
        continue;
      }
      // A row whose cells differ little stays pale: the scale spans at least half of the longest.
      const double depth = (cell->second - least) / std::max(most - least, most / 2 + 1e-9);
      out +=
          str_cat("<td style=\"--h:", std::lround(8 + 92 * depth), "\" title=\"", html_escape(part),
                  ", layer ", layer, ": ", number_cell(cell->second, 1).text, " µs\"></td>");
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string facts_html(const Trace& trace) {
  std::string out;
  for (const auto& [key, value] : facts_of(trace, "TraceStarted")) {
    out += str_cat(out.empty() ? "" : " · ", html_escape(printable(key)), ": ",
                   html_escape(printable(value)));
  }
  return out.empty() ? "" : str_cat("<p class=\"facts\">", out, "</p>\n");
}

}  // namespace

std::string to_html(const Analysis& analysis, const Trace& trace, const Timeline& timeline) {
  Page page(str_cat("Analysis of ", printable(analysis.path, 4096)));
  page.raw(kAnalysisStyle).add(Heading{str_cat("Analysis of ", printable(analysis.path, 400)), 1});
  page.raw(facts_html(trace));
  for (const std::string& line : analysis.head) page.add(Paragraph{line});
  page.add(Heading{"Timeline"}).raw(timeline_html(timeline));
  page.add(Heading{"Roofline plot"}).raw(roofline_html(trace));
  const std::string heat = heat_map_html(trace, "prefill") + heat_map_html(trace, "decode");
  page.add(Heading{"Layers"});
  page.add(
      Paragraph{"A typical call of each op in each layer; the stronger the colour, the longer it "
                "took beside the other layers of its row."});
  page.raw(heat.empty() ? "<p class=\"none\">no samples</p>\n" : heat);
  for (const TableSection& section : analysis.tables) {
    page.add(Heading{section.title}).raw(table_html(section));
  }
  for (const StatSection& section : analysis.kernels) {
    page.add(Heading{section.title}).raw(table_html(as_table(section)));
  }
  return page.raw(kAnalysisScript).html();
}

}  // namespace tinyvllm
