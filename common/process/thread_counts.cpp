#include "common/process/thread_counts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <optional>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfrig {

namespace {

constexpr std::size_t batch = 256;           // answers that wait in the socket's buffer at a time
constexpr int receive_bytes = 2 << 20;       // some 2 KiB are charged for an answer of 600 bytes
constexpr std::size_t datagram_bytes = 2048; // room for one
constexpr std::size_t datagrams_at_a_time = 64;
const char* const what = "read threads through taskstats";

constexpr std::size_t aligned(std::size_t n) { return (n + 3) & ~std::size_t{3}; }

// A generic netlink message with one attribute, appended.
void append_request(std::vector<char>& to, std::uint16_t family, std::uint8_t command, std::uint32_t sequence,
                    std::uint16_t attribute, std::span<const char> value) {
    const std::size_t size = NLMSG_HDRLEN + GENL_HDRLEN + aligned(NLA_HDRLEN + value.size());
    const std::size_t at = to.size();
    to.resize(at + size, '\0');
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(size);
    header.nlmsg_type = family;
    header.nlmsg_flags = NLM_F_REQUEST; // no acknowledgement: every request is answered once, by data or by an error
    header.nlmsg_seq = sequence;
    genlmsghdr command_header{};
    command_header.cmd = command;
    command_header.version = 1;
    nlattr attribute_header{};
    attribute_header.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + value.size());
    attribute_header.nla_type = attribute;
    std::memcpy(&to[at], &header, sizeof header);
    std::memcpy(&to[at + NLMSG_HDRLEN], &command_header, sizeof command_header);
    std::memcpy(&to[at + NLMSG_HDRLEN + GENL_HDRLEN], &attribute_header, sizeof attribute_header);
    std::memcpy(&to[at + NLMSG_HDRLEN + GENL_HDRLEN + NLA_HDRLEN], value.data(), value.size());
}

// The value of the first attribute of this type; nothing where there is none or the list is broken.
std::optional<std::span<const char>> attribute(std::span<const char> list, std::uint16_t type) {
    while (list.size() >= NLA_HDRLEN) {
        nlattr header{};
        std::memcpy(&header, list.data(), sizeof header);
        if (header.nla_len < NLA_HDRLEN || header.nla_len > list.size()) return std::nullopt;
        if ((header.nla_type & NLA_TYPE_MASK) == type)
            return list.subspan(NLA_HDRLEN, header.nla_len - static_cast<std::size_t>(NLA_HDRLEN));
        list = list.subspan(std::min(aligned(header.nla_len), list.size()));
    }
    return std::nullopt;
}

Error not_understood(const char* why) { return fail(ErrorKind::bad_input, what, "an answer of the kernel", why); }

struct Datagram {
    nlmsghdr header{};
    std::span<const char> attributes; // of a message that is no error
    int error = 0;                    // of one that is, positive
};

Result<Datagram> open_datagram(std::span<const char> bytes) {
    Datagram d;
    if (bytes.size() < NLMSG_HDRLEN) return not_understood("it is shorter than a header");
    std::memcpy(&d.header, bytes.data(), sizeof d.header);
    if (d.header.nlmsg_len < NLMSG_HDRLEN || d.header.nlmsg_len > bytes.size())
        return not_understood("its length is wrong");
    bytes = bytes.subspan(NLMSG_HDRLEN, d.header.nlmsg_len - static_cast<std::size_t>(NLMSG_HDRLEN));
    if (d.header.nlmsg_type == NLMSG_ERROR) {
        if (bytes.size() < sizeof d.error) return not_understood("its error is missing");
        std::memcpy(&d.error, bytes.data(), sizeof d.error);
        d.error = -d.error;
        return d;
    }
    if (bytes.size() < GENL_HDRLEN) return not_understood("it is shorter than a command");
    d.attributes = bytes.subspan(GENL_HDRLEN);
    return d;
}

template <class T> T number_at(std::span<const char> bytes, std::size_t offset) {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

Result<std::uint16_t> find_family(int socket) {
    std::vector<char> request;
    constexpr std::string_view name{TASKSTATS_GENL_NAME, sizeof TASKSTATS_GENL_NAME}; // with its zero
    append_request(request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, CTRL_ATTR_FAMILY_NAME, name);
    std::array<char, 8192> answer{};
    if (::send(socket, request.data(), request.size(), 0) < 0) return fail_errno(errno, what, "generic netlink");
    const ssize_t n = ::recv(socket, answer.data(), answer.size(), MSG_DONTWAIT); // it was answered within send
    if (n < 0) return fail_errno(errno, what, "generic netlink");
    PERFRIG_TRY(const Datagram d, open_datagram({answer.data(), static_cast<std::size_t>(n)}));
    if (d.error == ENOENT) return fail(ErrorKind::not_found, what, "", "this kernel has no taskstats");
    if (d.error != 0) return fail_errno(d.error, what, "generic netlink");
    const auto id = attribute(d.attributes, CTRL_ATTR_FAMILY_ID);
    if (!id || id->size() != sizeof(std::uint16_t)) return not_understood("it names no family");
    return number_at<std::uint16_t>(*id, 0);
}

} // namespace

Result<TaskStatsAnswer> parse_taskstats_answer(std::span<const char> datagram) {
    PERFRIG_TRY(const Datagram d, open_datagram(datagram));
    TaskStatsAnswer answer;
    answer.index = d.header.nlmsg_seq;
    if (d.error == ESRCH) return answer;
    if (d.error != 0) return fail_errno(d.error, what, "", "it needs CAP_NET_ADMIN");
    const auto both = attribute(d.attributes, TASKSTATS_TYPE_AGGR_PID);
    const auto pid = both ? attribute(*both, TASKSTATS_TYPE_PID) : std::nullopt;
    const auto stats = both ? attribute(*both, TASKSTATS_TYPE_STATS) : std::nullopt;
    if (!pid || pid->size() != sizeof(std::uint32_t)) return not_understood("it names no thread");
    // The structure only ever grows at its end.
    if (!stats || stats->size() < offsetof(taskstats, nivcsw) + sizeof(std::uint64_t))
        return not_understood("its statistics are too short");
    answer.alive = true;
    answer.counts.tid = number_at<std::int32_t>(*pid, 0);
    answer.counts.alive = 1;
    answer.counts.voluntary = number_at<std::uint64_t>(*stats, offsetof(taskstats, nvcsw));
    answer.counts.involuntary = number_at<std::uint64_t>(*stats, offsetof(taskstats, nivcsw));
    answer.counts.cpu_ns = number_at<std::uint64_t>(*stats, offsetof(taskstats, cpu_run_virtual_total));
    answer.counts.run_queue_wait_ns = number_at<std::uint64_t>(*stats, offsetof(taskstats, cpu_delay_total));
    answer.counts.timeslices = number_at<std::uint64_t>(*stats, offsetof(taskstats, cpu_count));
    answer.counts.age_us = number_at<std::uint64_t>(*stats, offsetof(taskstats, ac_etime));
    std::memcpy(answer.counts.comm, stats->data() + offsetof(taskstats, ac_comm), sizeof answer.counts.comm - 1);
    return answer;
}

Result<TaskStats> TaskStats::open() {
    UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC));
    if (!socket && (errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT)) // a sandbox says the same
        return fail(ErrorKind::not_found, what, "", "there is no generic netlink here");
    if (!socket) return fail_errno(errno, what, "generic netlink");
    // Without the privilege for it the smaller buffer is kept, and the first reading is refused anyway.
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes);
    PERFRIG_TRY(const std::uint16_t family, find_family(socket.get()));
    TaskStats stats(std::move(socket), family);
    const pid_t self = static_cast<pid_t>(::syscall(SYS_gettid));
    std::vector<ThreadCounts> probe;
    PERFRIG_CHECK(stats.read({&self, 1}, probe));
    return stats;
}

Result<void> TaskStats::read(std::span<const pid_t> tids, std::vector<ThreadCounts>& out) {
    out.assign(tids.size(), ThreadCounts{});
    for (std::size_t i = 0; i < tids.size(); ++i) out[i].tid = tids[i];
    for (std::size_t at = 0; at < tids.size(); at += batch) {
        const std::size_t n = std::min(batch, tids.size() - at);
        PERFRIG_CHECK(send_requests(tids.subspan(at, n)));
        PERFRIG_CHECK(take_answers(std::span(out).subspan(at, n)));
    }
    return {};
}

// The kernel answers within send(): all answers lie in the socket when it returns.
Result<void> TaskStats::send_requests(std::span<const pid_t> tids) {
    requests_.clear();
    for (std::size_t i = 0; i < tids.size(); ++i)
        append_request(requests_, family_, TASKSTATS_CMD_GET, static_cast<std::uint32_t>(i), TASKSTATS_CMD_ATTR_PID,
                       {reinterpret_cast<const char*>(&tids[i]), sizeof tids[i]});
    if (::send(socket_.get(), requests_.data(), requests_.size(), 0) < 0) return fail_errno(errno, what, "");
    return {};
}

Result<void> TaskStats::take_answers(std::span<ThreadCounts> out) {
    answers_.resize(datagrams_at_a_time * datagram_bytes);
    std::array<mmsghdr, datagrams_at_a_time> messages{};
    std::array<iovec, datagrams_at_a_time> parts{};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        parts[i] = {answers_.data() + i * datagram_bytes, datagram_bytes};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (std::size_t taken = 0; taken < out.size();) {
        const std::size_t most = std::min(messages.size(), out.size() - taken);
        const int n = ::recvmmsg(socket_.get(), messages.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_errno(n < 0 ? errno : EIO, what, ""); // ENOBUFS: some were lost
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            PERFRIG_TRY(const TaskStatsAnswer answer,
                        parse_taskstats_answer({answers_.data() + i * datagram_bytes, messages[i].msg_len}));
            if (answer.index >= out.size()) return not_understood("it answers something that wasn't asked");
            if (answer.alive && answer.counts.tid == out[answer.index].tid) out[answer.index] = answer.counts;
        }
        taken += static_cast<std::size_t>(n);
    }
    return {};
}

} // namespace perfrig
