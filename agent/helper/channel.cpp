#include "agent/helper/channel.hpp"

#include "agent/helper/messages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace perfrig {

namespace {

// True when ready, false when the deadline passed. A passed deadline still looks once.
bool wait_for(int socket, short events, Deadline deadline) {
    for (;;) {
        pollfd ready{socket, events, 0};
        const int left_ms =
            static_cast<int>(std::min<std::int64_t>(deadline.left().count() + (deadline.passed() ? 0 : 1), 60'000));
        if (::poll(&ready, 1, left_ms) > 0) return true;
        if (deadline.passed()) return false;
    }
}

union ControlSpace {
    cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * most_packet_fds)];
};

} // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_channel() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_errno(errno, "make a socket pair", "");
    std::pair<UniqueFd, UniqueFd> channel{UniqueFd(ends[0]), UniqueFd(ends[1])};
    // The kernel counts its own overhead too and caps the request at net.core.wmem_max (212,992 by default).
    const int bytes = static_cast<int>(2 * most_message_bytes);
    for (const int end : ends)
        if (::setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
            ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return channel;
}

Result<void> send_packet(int socket, std::string_view text, const std::vector<int>& fds, Deadline deadline) {
    if (text.empty() || text.size() > most_message_bytes)
        return fail(ErrorKind::bad_input, "send a message", "", "it has " + std::to_string(text.size()) + " bytes",
                    "at most " + std::to_string(most_message_bytes) + " are taken");
    if (fds.size() > most_packet_fds) return fail(ErrorKind::internal, "send a message", "", "too many descriptors");
    iovec part{const_cast<char*>(text.data()), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ControlSpace control{};
    if (!fds.empty()) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
        std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    for (;;) {
        if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
        if (errno == EINTR) continue;
        if (errno == EPIPE || errno == ECONNRESET)
            return fail(ErrorKind::unavailable, "send a message", "", "the other process is gone");
        if (errno != EAGAIN && errno != ENOBUFS) return fail_errno(errno, "send a message", "");
        if (!wait_for(socket, POLLOUT, deadline))
            return fail(ErrorKind::timed_out, "send a message", "", "the other process does not read");
    }
}

Result<std::optional<Packet>> receive_packet(int socket, Deadline deadline) {
    std::string buffer(most_message_bytes, '\0');
    for (;;) {
        iovec part{buffer.data(), buffer.size()};
        ControlSpace control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        const ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            if (wait_for(socket, POLLIN, deadline)) continue;
            return fail(ErrorKind::timed_out, "wait for a message", "", "none came");
        }
        if (n < 0 && errno != ECONNRESET) return fail_errno(errno, "receive a message", "");
        if (n <= 0) return std::optional<Packet>();
        Packet packet;
        for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
            if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
            const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
                packet.fds.emplace_back(fd);
            }
        }
        if (message.msg_flags & MSG_TRUNC)
            packet.fault = "it has more than " + std::to_string(most_message_bytes) + " bytes";
        else if (message.msg_flags & MSG_CTRUNC)
            packet.fault = "it carries too many descriptors";
        else
            packet.text = buffer.substr(0, static_cast<std::size_t>(n));
        if (!packet.fault.empty()) packet.fds.clear();
        return std::optional<Packet>(std::move(packet));
    }
}

} // namespace perfrig
