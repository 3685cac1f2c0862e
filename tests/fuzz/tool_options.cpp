#include "agent/tools/tool.hpp"
#include "common/base/json.hpp"

// The first line names the tool, the rest is its options.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return 0;
    const auto options = perfrig::parse_json(text.substr(end + 1), "options");
    if (!options) return 0;
    const auto tool = perfrig::make_tool(text.substr(0, end), *options);
    if (tool) (void)(*tool)->invocation(perfrig::ToolPhase::measure, std::chrono::seconds(2));
    return 0;
}
