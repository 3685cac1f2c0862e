#include "common/process/affinity.hpp"

#include <cerrno>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfrig {

bool pin_this_thread(const CpuList& cpus) {
    if (cpus.empty()) return false;
    AffinityMask mask;
    for (const int id : cpus) mask.words.at(static_cast<std::size_t>(id) / 64) |= std::uint64_t{1} << (id % 64);
    return ::syscall(SYS_sched_setaffinity, 0, sizeof mask.words, mask.words.data()) == 0;
}

CpuList AffinityMask::list() const {
    CpuList out;
    for (std::size_t word = 0; word < used; ++word)
        for (int bit = 0; bit < 64; ++bit)
            if ((words[word] >> bit & 1) != 0) out.add(static_cast<int>(word) * 64 + bit);
    return out;
}

int read_affinity_mask(pid_t tid, AffinityMask& out) {
    const long bytes = ::syscall(SYS_sched_getaffinity, tid, sizeof out.words, out.words.data());
    if (bytes < 0) return errno;
    out.used = static_cast<std::size_t>(bytes) / sizeof(std::uint64_t);
    return 0;
}

} // namespace perfrig
