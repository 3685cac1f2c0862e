#include "agent/tools/perf_bench_report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    (void)perfrig::parse_perf_bench_report({reinterpret_cast<const char*>(data), size});
    return 0;
}
