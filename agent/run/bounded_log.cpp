#include "agent/run/bounded_log.hpp"

#include "agent/tools/tool.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

namespace perfrig {

Result<BoundedLog> BoundedLog::create(std::string path, std::uint64_t most_bytes) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(errno, "make the log file", path);
    return BoundedLog(std::move(path), std::move(fd), std::max<std::uint64_t>(most_bytes / 2, 1));
}

std::uint64_t BoundedLog::dropped_bytes() const { return total_ > 2 * half_ ? total_ - 2 * half_ : 0; }

void BoundedLog::write_at(std::string_view bytes, std::uint64_t offset) {
    while (!bytes.empty() && error_ == 0) {
        const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            error_ = n < 0 ? errno : ENOSPC;
            return;
        }
        offset += static_cast<std::uint64_t>(n);
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

void BoundedLog::add(std::string_view bytes) {
    if (total_ < half_) {
        const auto head = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), half_ - total_));
        write_at(head, total_);
        total_ += head.size();
        bytes.remove_prefix(head.size());
    }
    if (bytes.size() > half_) { // only its end can survive
        total_ += bytes.size() - half_;
        bytes.remove_prefix(bytes.size() - half_);
    }
    while (!bytes.empty()) {
        const std::uint64_t at = (total_ - half_) % half_;
        const auto part = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), half_ - at));
        write_at(part, half_ + at);
        total_ += part.size();
        bytes.remove_prefix(part.size());
    }
}

Result<void> BoundedLog::finish() {
    if (dropped_bytes() > 0 && error_ == 0) {
        // The ring turned: unroll it behind the beginning.
        std::string ring(half_, '\0');
        std::uint64_t done = 0;
        while (done < half_) {
            const ssize_t n = ::pread(file_.get(), ring.data() + done, half_ - done, static_cast<off_t>(half_ + done));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return fail_errno(n < 0 ? errno : EIO, "read the log file back", path_);
            done += static_cast<std::uint64_t>(n);
        }
        const std::uint64_t turn = (total_ - half_) % half_;
        const std::string mark = dropped_mark(dropped_bytes());
        write_at(mark, half_);
        write_at(std::string_view(ring).substr(turn), half_ + mark.size());
        write_at(std::string_view(ring).substr(0, turn), half_ + mark.size() + half_ - turn);
    }
    file_.reset();
    if (error_ != 0)
        return fail_errno(error_, "write the log file", path_, "free space on the state directory's file system");
    return {};
}

} // namespace perfrig
