// Which CPUs a thread may run on, straight from the kernel: 0.3 us, where printing and reading a file takes 4.
#pragma once

#include "common/base/cpu_list.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <sys/types.h>

namespace perfrig {

// Pins the calling thread and what it will start; false where the kernel refuses, or `cpus` is empty.
bool pin_this_thread(const CpuList& cpus);

// As the kernel keeps it: one bit a CPU.
struct AffinityMask {
    std::array<std::uint64_t, CpuList::most_cpus / 64> words{};
    std::size_t used = 0; // words that the kernel filled
    CpuList list() const;
};
// Any thread's, whoever owns it; without CPUs that are not active just now, which Cpus_allowed_list does name. Returns
// 0, or errno: ESRCH where there is no such thread. `out` beyond the words used is left as it was.
int read_affinity_mask(pid_t tid, AffinityMask& out);

} // namespace perfrig
