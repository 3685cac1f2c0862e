#include "common/process/thread_counts_channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <type_traits>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr std::size_t most = ThreadCountsClient::most_threads_asked;
constexpr int answer_time_ms = 2'000;

struct AnswerHead {
    std::uint64_t cpu_ns = 0;
    std::int64_t reader = 0; // its pid
};
static_assert(std::is_trivially_copyable_v<ThreadCounts> && sizeof(ThreadCounts) == 72);

Error gone(const char* why) { return fail(ErrorKind::unavailable, "read thread counts", "their reader", why); }

} // namespace

void serve_thread_counts(TaskStats& stats, int socket) {
    std::vector<pid_t> tids(most + 1);
    std::vector<ThreadCounts> counts;
    for (;;) {
        const ssize_t n = ::recv(socket, tids.data(), tids.size() * sizeof(pid_t), 0);
        if (n < 0 && errno == EINTR) continue;
        const auto size = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
        if (size == 0 || size % sizeof(pid_t) != 0 || size > most * sizeof(pid_t)) return;
        if (!stats.read({tids.data(), size / sizeof(pid_t)}, counts)) return;
        timespec used{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        AnswerHead head{static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
                            static_cast<std::uint64_t>(used.tv_nsec),
                        ::getpid()};
        iovec parts[2] = {{&head, sizeof head}, {counts.data(), counts.size() * sizeof(ThreadCounts)}};
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        ssize_t sent = 0;
        do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR);
        if (sent < 0) return;
    }
}

Result<std::span<const ThreadCounts>> ThreadCountsClient::read(std::span<const pid_t> tids) {
    counts_.clear();
    for (std::size_t at = 0; at < tids.size(); at += most) {
        const auto read = read_some(tids.subspan(at, std::min(most, tids.size() - at)));
        if (read) continue;
        socket_.reset(); // a late answer would be taken for the next one
        return read.error();
    }
    return std::span<const ThreadCounts>(counts_);
}

Result<void> ThreadCountsClient::read_some(std::span<const pid_t> tids) {
    if (!socket_) return gone("it was given up before");
    if (::send(socket_.get(), tids.data(), tids.size_bytes(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return gone(std::strerror(errno));
    pollfd answer{socket_.get(), POLLIN, 0};
    int ready = 0;
    do ready = ::poll(&answer, 1, answer_time_ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0) return gone("it did not answer");
    const std::size_t size = sizeof(AnswerHead) + tids.size() * sizeof(ThreadCounts);
    packet_.resize(size + 1);
    const ssize_t n = ::recv(socket_.get(), packet_.data(), packet_.size(), MSG_DONTWAIT);
    if (n <= 0) return gone("it has ended");
    if (static_cast<std::size_t>(n) != size) return gone("its answer has the wrong size");
    AnswerHead head;
    std::memcpy(&head, packet_.data(), sizeof head);
    cpu_seconds_ = static_cast<double>(head.cpu_ns) / 1e9;
    reader_ = static_cast<pid_t>(head.reader);
    const std::size_t before = counts_.size();
    counts_.resize(before + tids.size());
    std::memcpy(&counts_[before], packet_.data() + sizeof head, tids.size() * sizeof(ThreadCounts));
    return {};
}

} // namespace perfrig
