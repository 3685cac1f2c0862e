// Prometheus' text format 0.0.4, written from prometheus-cpp's plain structs: the agent links no shared library, so it
// can't use the library's own serializer. Format: "Exposition formats" of the Prometheus documentation.
#pragma once

#include <prometheus/metric_family.h>
#include <span>
#include <string>

namespace perfrig {

constexpr const char* exposition_content_type = "text/plain; version=0.0.4; charset=utf-8";

// Families are sorted by name, metrics within one by labels, so that equal input gives equal text. Families without
// metrics are left out. Label names and metric names must be valid (a bug throws std::invalid_argument); values of
// labels and help texts may hold anything and are escaped. A histogram gets its +Inf bucket where it lacks one.
std::string write_exposition(std::span<const prometheus::MetricFamily> families);

} // namespace perfrig
