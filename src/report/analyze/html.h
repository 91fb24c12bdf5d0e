// An analysis as one page that needs nothing from the network: a timeline to zoom into, the
// roofline as a plot, a heat map of layers, and every section as a table that sorts.
#pragma once

#include <string>

#include "report/analyze/analysis.h"
#include "report/analyze/timeline.h"

namespace tinyvllm {

std::string to_html(const Analysis& analysis, const Trace& trace, const Timeline& timeline);

}  // namespace tinyvllm
