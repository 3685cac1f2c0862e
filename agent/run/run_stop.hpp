// How a run ends before its time: with one of the end states and a reason for people. The error type of everything that
// works inside a run.
#pragma once

#include "common/base/result.hpp"

#include <string>

namespace perfrig {

struct RunStop {
    std::string state; // refused, failed, cancelled, interrupted
    std::string reason;
};

template <class T> using RunStep = boost::system::result<T, RunStop>;

inline RunStop failed(std::string reason) { return {"failed", std::move(reason)}; }
inline RunStop failed(const Error& error) { return {"failed", error.text()}; }
// What the machine or the agent could not do, whatever the run is: it may be tried again.
inline RunStop interrupted(std::string reason) { return {"interrupted", std::move(reason)}; }
inline RunStop refused(std::string reason) { return {"refused", std::move(reason)}; }

// .value() on a stopped step is a bug in the caller.
[[noreturn]] inline void throw_exception_from_error(const RunStop& stop, const boost::source_location&) {
    throw std::runtime_error(stop.state + ": " + stop.reason);
}

} // namespace perfrig
