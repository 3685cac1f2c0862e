#include "common/base/line_pattern.hpp"

// The first line is the pattern, the rest the line that it is held against.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto end = text.find('\n');
    const auto pattern = perfrig::LinePattern::compile(text.substr(0, end));
    if (pattern && end != std::string_view::npos) {
        // Short lines: the bound on time is polynomial, and libFuzzer would report the longest as hanging.
        (void)pattern->capture(text.substr(end + 1, 256));
        (void)pattern->matches(text.substr(end + 1, 256));
    }
    return 0;
}
