// Folders that a workload may have filled with whatever it liked: listed and emptied by descriptor, following no link.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <fcntl.h>
#include <string>
#include <vector>

namespace perfrig {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Without . and .., at most so many; empty where it can't be read.
std::vector<std::string> names_in(int folder, std::size_t most = SIZE_MAX);
// Removes all that is in the folder, as whoever the caller acts as. `shown`: its path, for errors.
Result<void> empty_folder(int folder, const std::string& shown, Deadline deadline, int depth = 0);

} // namespace perfrig
