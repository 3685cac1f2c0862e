#include "agent/run/interrupt.hpp"

#include <cstdint>
#include <stdexcept>
#include <sys/eventfd.h>

namespace perfrig {

Interrupt::Interrupt() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_) throw std::runtime_error("no event descriptor is to be had");
}

void Interrupt::set(Kind kind, std::string reason) {
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = Cause{kind, std::move(reason)};
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one); // can't fail at a count of 0
}

void Interrupt::clear() {
    const std::lock_guard lock(mutex_);
    cause_.reset();
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
}

std::optional<Interrupt::Cause> Interrupt::cause() const {
    const std::lock_guard lock(mutex_);
    return cause_;
}

} // namespace perfrig
