#include "agent/session/state_dir.hpp"

#include "common/base/file_tree.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig {

Result<StateDir> StateDir::lock(const std::string& path) {
    static constexpr const char* tried = "open the state directory";
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return fail(ErrorKind::unavailable, tried, path, error.message(), "name another with --state-dir");
    ::chmod(path.c_str(), 0711); // fails where another made it for us: then its mode is theirs to choose
    const std::string name = path + "/lock";
    // Root may be opening this in a folder of the agent's user, and writes into it: it must be no other file in
    // disguise.
    UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!fd) return fail_errno(errno, tried, name, "make it writable for the agent's user, or name another");
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return fail_errno(errno, tried, name);
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
        return fail(ErrorKind::forbidden, tried, name, "it is no plain file with this one name", "remove it");
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        const auto pid = read_file(name, 64);
        std::string holder = pid ? *pid : std::string();
        while (!holder.empty() && holder.back() == '\n') holder.pop_back();
        return fail(ErrorKind::conflict, "start an agent in", path,
                    "another agent" + (holder.empty() ? std::string() : " (pid " + holder + ")") + " runs there",
                    "stop it, or give this one another --state-dir: one agent per machine measures best");
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0)
        return fail_errno(errno, tried, name);
    return StateDir(path, std::move(fd));
}

Result<void> StateDir::give_to(unsigned uid, unsigned gid) const {
    if (::lchown(path_.c_str(), uid, gid) != 0 || ::fchown(lock_.get(), uid, gid) != 0)
        return fail_errno(errno, "give to user " + std::to_string(uid), path_);
    return {};
}

Result<std::int64_t> StateDir::next_epoch() const {
    const std::string name = file("epoch");
    std::int64_t epoch = 0;
    if (::access(name.c_str(), F_OK) == 0) {
        PERFRIG_TRY(const std::string text, read_file(name, 64));
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), epoch);
        if (error != std::errc() || epoch < 0 || (end != text.data() + text.size() && *end != '\n'))
            return fail(ErrorKind::conflict, "read the epoch", name, "it is no number",
                        "write a number into it that is larger than the names of the folders in spool/");
    }
    PERFRIG_CHECK(write_file_atomically(name, std::to_string(epoch + 1) + "\n", 0600));
    return epoch + 1;
}

} // namespace perfrig
