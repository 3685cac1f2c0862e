#include "agent/tools/wrk.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const perfrig::ToolOutput output{.out = {reinterpret_cast<const char*>(data), size}, .err = {}};
    (void)perfrig::read_wrk(output, {.script_may_print = true, .distribution_required = false});
    return 0;
}
