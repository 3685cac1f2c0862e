// Packets with descriptors over a Unix SOCK_SEQPACKET socket: a packet arrives whole or not at all, so a peer that
// sends rubbish can't shift the frame. Sizes are bounded on both sides.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perfrig {

constexpr std::size_t most_packet_fds = 4;

struct Packet {
    std::string text;
    std::vector<UniqueFd> fds; // close-on-exec
    std::string fault;         // not empty: too large or too many descriptors; text and fds are empty then
};

// Two connected ends, close-on-exec, with buffers that hold at least two packets of the greatest size.
Result<std::pair<UniqueFd, UniqueFd>> make_channel();

// unavailable: the peer is gone. timed_out: it doesn't read. bad_input: larger than most_message_bytes.
Result<void> send_packet(int socket, std::string_view text, const std::vector<int>& fds, Deadline deadline);
// nullopt: the peer closed its end (or died).
Result<std::optional<Packet>> receive_packet(int socket, Deadline deadline);

} // namespace perfrig
