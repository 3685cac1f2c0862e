#include "agent/helper/work_base.hpp"

#include "agent/helper/acting_as.hpp"
#include "agent/helper/folders.hpp"
#include "agent/helper/requests.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>

namespace perfrig {

namespace {

constexpr std::size_t most_note_bytes = 1 << 20; // of one run; thousands of processes
constexpr const char* notes_name = ".runs";
constexpr const char* new_name = ".perfrig-new";

Result<UniqueFd> open_own_folder(int at, const char* name, const std::string& shown, mode_t mode) {
    if (::mkdirat(at, name, mode) != 0 && errno != EEXIST)
        return fail_errno(errno, "make the folder", shown, "make the folder above it");
    UniqueFd fd(::openat(at, name, folder_flags));
    if (!fd) return fail_errno(errno, "open the folder", shown, "it must be a folder and no link");
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, "look at the folder", shown);
    if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return fail(ErrorKind::forbidden, "use the folder", shown, "another user owns it or may write to it",
                    "give it to the user that starts the agent, with mode 0711");
    return fd;
}

Result<void> write_all(int fd, std::string_view content, const std::string& shown) {
    while (!content.empty()) {
        const ssize_t n = ::write(fd, content.data(), content.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "write", shown);
        content.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

// By its descriptor, never by its path: the folders above may belong to the agent's user, who could put others there,
// and what is noted gets killed.
std::string read_note(int folder, const std::string& name) {
    const UniqueFd file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    std::string text;
    char chunk[4096];
    while (file && text.size() < most_note_bytes) {
        const ssize_t n = ::read(file.get(), chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text.append(chunk, static_cast<std::size_t>(n));
    }
    return text;
}

} // namespace

Result<WorkBase> WorkBase::open(const std::string& path, const User& workload) {
    if (!path.starts_with('/'))
        return fail(ErrorKind::bad_input, "use the work folder", path, "it is not an absolute path",
                    "give one that begins with /");
    WorkBase base;
    base.path_ = path;
    while (base.path_.size() > 1 && base.path_.ends_with('/')) base.path_.pop_back();
    base.workload_ = workload;
    PERFRIG_TRY(base.base_, open_own_folder(AT_FDCWD, base.path_.c_str(), base.path_, 0711));
    PERFRIG_TRY(base.notes_, open_own_folder(base.base_.get(), notes_name, base.path_ + "/" + notes_name, 0700));
    const ActingAs user(workload);
    const UniqueFd passable(::open((base.path_ + "/.").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!passable)
        return fail_errno(errno, "reach the work folder as " + workload.name, base.path_,
                          "give every folder above it the mode bit x for others, or choose another place");
    return base;
}

Result<std::string> WorkBase::make_run_directory(const RunName& run) const {
    const std::string name = run.text();
    if (::mkdirat(base_.get(), name.c_str(), 0700) != 0) {
        if (errno == EEXIST)
            return fail(ErrorKind::conflict, "make the run's directory", directory_of(run), "it exists already",
                        "end the run with its directory, or count its attempt up");
        return fail_errno(errno, "make the run's directory", directory_of(run));
    }
    const UniqueFd fd(::openat(base_.get(), name.c_str(), folder_flags));
    if (!fd || (::geteuid() == 0 && ::fchown(fd.get(), workload_.uid, workload_.gid) != 0)) {
        const int error = errno;
        ::unlinkat(base_.get(), name.c_str(), AT_REMOVEDIR);
        return fail_errno(error, "give the run's directory to " + workload_.name, directory_of(run));
    }
    return directory_of(run);
}

// The folder that the last part lies in.
Result<UniqueFd> WorkBase::open_parent(const RunName& run, const std::vector<std::string>& parts, bool make) const {
    std::string shown = directory_of(run);
    UniqueFd folder(::openat(base_.get(), run.text().c_str(), folder_flags));
    if (!folder) return fail_errno(errno, "open the run's directory", shown);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        shown += "/" + parts[i];
        if (make && ::mkdirat(folder.get(), parts[i].c_str(), 0755) != 0 && errno != EEXIST)
            return fail_errno(errno, "make the folder", shown);
        UniqueFd next(::openat(folder.get(), parts[i].c_str(), folder_flags));
        if (!next) return fail_errno(errno, "open the folder", shown, "it must be a folder and no link");
        folder = std::move(next);
    }
    return folder;
}

Result<void> WorkBase::write_file(const RunName& run, const std::string& path, int mode,
                                  std::string_view content) const {
    PERFRIG_TRY(const auto parts, split_path(path));
    const std::string shown = directory_of(run) + "/" + path;
    const ActingAs user(workload_);
    PERFRIG_TRY(const UniqueFd folder, open_parent(run, parts, true));
    const char* name = parts.back().c_str();
    struct stat info {};
    if (::fstatat(folder.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode))
        return fail(ErrorKind::forbidden, "write", shown, "something that is no regular file has this name",
                    "name another file");
    ::unlinkat(folder.get(), new_name, 0);
    const UniqueFd file(::openat(folder.get(), new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return fail_errno(errno, "write", shown);
    auto written = write_all(file.get(), content, shown);
    if (written && ::fchmod(file.get(), static_cast<mode_t>(mode & 0777)) != 0)
        written = fail_errno(errno, "write", shown);
    if (written && ::renameat(folder.get(), new_name, folder.get(), name) != 0)
        written = fail_errno(errno, "write", shown);
    if (!written) ::unlinkat(folder.get(), new_name, 0);
    return written;
}

Result<UniqueFd> WorkBase::open_file(const RunName& run, const std::string& path) const {
    PERFRIG_TRY(const auto parts, split_path(path));
    const std::string shown = directory_of(run) + "/" + path;
    const ActingAs user(workload_);
    PERFRIG_TRY(const UniqueFd folder, open_parent(run, parts, false));
    // O_NONBLOCK: a FIFO without a writer must not hold us.
    UniqueFd file(
        ::openat(folder.get(), parts.back().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!file) return fail_errno(errno, "open", shown);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
        return fail(ErrorKind::forbidden, "open", shown, "it is no regular file");
    return file;
}

Result<void> WorkBase::remove_run_directory(const RunName& run, Deadline deadline) const {
    const std::string name = run.text();
    {
        const ActingAs user(workload_);
        UniqueFd folder(::openat(base_.get(), name.c_str(), folder_flags));
        if (!folder && errno == ENOENT) return {};
        // A workload may take the rights from its own directory. The folder above is ours: this name is no link.
        if (!folder && errno == EACCES && ::fchmodat(base_.get(), name.c_str(), 0700, 0) == 0)
            folder.reset(::openat(base_.get(), name.c_str(), folder_flags));
        if (!folder) return fail_errno(errno, "remove the run's directory", directory_of(run));
        ::fchmod(folder.get(), 0700);
        PERFRIG_CHECK(empty_folder(folder.get(), directory_of(run), deadline));
    }
    if (::unlinkat(base_.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
        return fail_errno(errno, "remove the run's directory", directory_of(run));
    return {};
}

std::vector<RunName> WorkBase::runs() const {
    std::vector<RunName> all;
    for (const auto& name : names_in(base_.get()))
        if (const auto run = parse_run_name(name)) all.push_back(*run);
    return all;
}

Result<void> WorkBase::note_begin(const RunName& run, const std::string& boot_id) const {
    const UniqueFd file(
        ::openat(notes_.get(), run.text().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return fail_errno(errno, "note the run", run.text());
    return write_all(file.get(), boot_id + "\n", run.text());
}

Result<void> WorkBase::note_process(const RunName& run, pid_t pid, std::uint64_t start_ticks) const {
    const UniqueFd file(::openat(notes_.get(), run.text().c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    if (!file) return fail_errno(errno, "note a process of the run", run.text());
    return write_all(file.get(), std::to_string(pid) + " " + std::to_string(start_ticks) + "\n", run.text());
}

void WorkBase::note_end(const RunName& run) const { ::unlinkat(notes_.get(), run.text().c_str(), 0); }

std::vector<WorkBase::Noted> WorkBase::noted() const {
    std::vector<Noted> all;
    for (const auto& name : names_in(notes_.get())) {
        const auto run = parse_run_name(name);
        if (!run) continue;
        const std::string text = read_note(notes_.get(), name);
        Noted noted{*run, {}, {}};
        std::string_view rest = text;
        noted.boot_id = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), noted.boot_id.size() + 1));
        while (!rest.empty()) { // a torn last line has no newline and is left out
            const auto end = rest.find('\n');
            if (end == std::string_view::npos) break;
            pid_t pid = 0;
            std::uint64_t ticks = 0;
            const auto [space, error] = std::from_chars(rest.data(), rest.data() + end, pid);
            if (error == std::errc() && *space == ' ' &&
                std::from_chars(space + 1, rest.data() + end, ticks).ec == std::errc())
                noted.processes.emplace_back(pid, ticks);
            rest.remove_prefix(end + 1);
        }
        all.push_back(std::move(noted));
    }
    return all;
}

} // namespace perfrig
