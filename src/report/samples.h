// What several measurements of one thing say: their middle, their tails, how far they lie apart.
#pragma once

#include <vector>

namespace tinyvllm {

// The value below which `percent` of the samples lie, between two neighbours in proportion (as
// numpy's percentile). 0 of no samples.
double percentile(std::vector<double> samples, double percent);
inline double median(std::vector<double> samples) { return percentile(std::move(samples), 50); }
double mean(const std::vector<double>& samples);
double deviation(const std::vector<double>& samples);  // standard, of the samples at hand

// Half the way from the lowest to the highest, as a part of the median: ± so much.
double spread(const std::vector<double>& samples);

}  // namespace tinyvllm
