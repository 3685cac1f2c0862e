#include "agent/tools/tool.hpp"
#include "common/base/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    static const auto by_pattern = *perfrig::make_tool(
        "command", {{"command", "x"},
                    {"metrics", {{{"name", "rate"}, {"unit", "1/s"}, {"pattern", "rate: (\\S+)"}, {"take", "last"}}}},
                    {"series", {{{"name", "rate"}, {"unit", "1/s"}, {"pattern", "rate: (\\S+)"}, {"scale", 0.5}}}}});
    static const auto by_pointer = *perfrig::make_tool(
        "command",
        {{"command", "x"}, {"metrics", {{{"name", "b"}, {"unit", "s"}, {"pointer", "/a/1/b"}, {"scale", 1e9}}}}});
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)by_pattern->parse({.out = text, .err = {}});
    (void)by_pointer->parse({.out = text, .err = {}});
    (void)by_pattern->parse_live_line(text, false);
    return 0;
}
