#include "agent/collectors/kept_file.hpp"

#include <cerrno>
#include <cstring>
#include <sys/resource.h>

namespace perfrig {

namespace {

Reading failed(int error_number) {
    const bool gone = error_number == ENOENT || error_number == ESRCH;
    return {gone ? Reading::Outcome::vanished : Reading::Outcome::failed, {}, error_number};
}

Reading read_at_start(int fd, std::span<char> buffer) {
    ssize_t n = 0;
    do n = ::pread(fd, buffer.data(), buffer.size(), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0) return failed(errno);
    if (static_cast<std::size_t>(n) == buffer.size()) return failed(EFBIG);
    return {Reading::Outcome::read, {buffer.data(), static_cast<std::size_t>(n)}, 0};
}

} // namespace

std::size_t OpenFileBudget::of_this_process() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 512;
    const rlim_t most = limit.rlim_cur == RLIM_INFINITY ? 1 << 20 : limit.rlim_cur;
    return static_cast<std::size_t>(most / 4 * 3);
}

std::string Reading::why() const { return std::strerror(error_number); }

Reading KeptFile::read(int folder, const char* name, std::span<char> buffer, OpenFileBudget& budget) {
    if (fd_) return read_at_start(fd_.get(), buffer);
    UniqueFd fd(::openat(folder, name, O_RDONLY | O_CLOEXEC));
    if (!fd) return failed(errno);
    const Reading reading = read_at_start(fd.get(), buffer);
    if (reading && budget.take()) {
        fd_ = std::move(fd);
        budget_ = &budget;
    }
    return reading;
}

void KeptFile::close() {
    if (!fd_) return;
    fd_.reset();
    budget_->give_back();
}

} // namespace perfrig
