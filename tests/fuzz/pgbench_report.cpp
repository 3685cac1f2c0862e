#include "agent/tools/pgbench.hpp"

// The first byte says how much goes to stderr.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t cut = size == 0 || data[0] >= 0x20 ? size : size * data[0] / 0x20;
    const perfrig::ToolOutput output{.out = text.substr(0, cut), .err = text.substr(cut), .elapsed_seconds = 2};
    (void)perfrig::read_pgbench(output, 100.0);
    (void)perfrig::parse_pgbench_progress(text);
    return 0;
}
