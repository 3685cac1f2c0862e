#include "agent/helper/folders.hpp"

#include "common/base/unique_fd.hpp"

#include <cerrno>
#include <dirent.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig {

namespace {
constexpr int deepest = 256; // folders in folders that removal follows: each holds a descriptor
}

std::vector<std::string> names_in(int folder, std::size_t most) {
    std::vector<std::string> names;
    const int copy = ::openat(folder, ".", folder_flags);
    if (copy < 0) return names;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(copy), ::closedir);
    while (const dirent* entry = dir && names.size() < most ? ::readdir(dir.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

Result<void> empty_folder(int folder, const std::string& shown, Deadline deadline, int depth) {
    if (depth > deepest)
        return fail(ErrorKind::unavailable, "remove", shown, "it is nested too deeply", "remove it by hand");
    for (const auto& name : names_in(folder)) {
        if (deadline.passed())
            return fail(ErrorKind::timed_out, "remove", shown, "it holds too many files for the time given");
        if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) continue;
        if (errno != EISDIR && errno != EPERM) return fail_errno(errno, "remove", shown + "/" + name);
        UniqueFd below(::openat(folder, name.c_str(), folder_flags));
        if (!below && errno == EACCES && ::fchmodat(folder, name.c_str(), 0700, 0) == 0)
            below.reset(::openat(folder, name.c_str(), folder_flags));
        if (!below) return fail_errno(errno, "remove", shown + "/" + name);
        ::fchmod(below.get(), 0700);
        PERFRIG_CHECK(empty_folder(below.get(), shown + "/" + name, deadline, depth + 1));
        if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
            return fail_errno(errno, "remove", shown + "/" + name);
    }
    return {};
}

} // namespace perfrig
