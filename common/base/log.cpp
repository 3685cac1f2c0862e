#include "common/base/log.hpp"

#include "common/base/printable.hpp"

// The only unit that sees spdlog: it costs a second a unit to compile.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace perfrig::log {

namespace {
spdlog::level::level_enum level_of(Level level) {
    switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    }
    return spdlog::level::info;
}
std::string line(std::string_view text) { return printable(text, Lines::escape); }
} // namespace

void start(std::string_view program, Level level) {
    auto logger =
        std::make_shared<spdlog::logger>(std::string(program), std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %n %l %v", spdlog::pattern_time_type::utc);
    logger->set_level(level_of(level));
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
}

void debug(std::string_view text) { spdlog::debug("{}", line(text)); }
void info(std::string_view text) { spdlog::info("{}", line(text)); }
void warning(std::string_view text) { spdlog::warn("{}", line(text)); }
void error(std::string_view text) { spdlog::error("{}", line(text)); }

} // namespace perfrig::log
