// The two ends of the socket between who wants to know ThreadCounts and the process that may read them. A packet of
// thread ids is answered by a packet of counts, with what the reader has cost so far, since that is the asker's cost.
#pragma once

#include "common/process/thread_counts.hpp"

#include <optional>
#include <span>
#include <vector>

namespace perfrig {

// The reader's end: answers until the asker's end is closed, or until the kernel refuses (then it closes its own).
// `socket`: SOCK_SEQPACKET. Ids beyond `most_threads_asked` in one packet, or a packet of another size, end it.
void serve_thread_counts(TaskStats& stats, int socket);

class ThreadCountsClient {
  public:
    static constexpr std::size_t most_threads_asked = 1000; // in one packet
    explicit ThreadCountsClient(UniqueFd socket) : socket_(std::move(socket)) {}

    // In the order of `tids`, of any number; valid until the next call. An error is final: the reader is gone, or
    // didn't answer within two seconds.
    Result<std::span<const ThreadCounts>> read(std::span<const pid_t> tids);
    double cpu_seconds() const { return cpu_seconds_; } // of the reader, user and system, by its last answer
    pid_t reader() const { return reader_; }            // 0: nothing was read yet

  private:
    Result<void> read_some(std::span<const pid_t> tids);
    UniqueFd socket_;
    std::vector<ThreadCounts> counts_;
    std::vector<char> packet_;
    double cpu_seconds_ = 0;
    pid_t reader_ = 0;
};

} // namespace perfrig
