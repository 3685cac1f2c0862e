#include "agent/helper/traces.hpp"

#include "agent/helper/acting_as.hpp"
#include "agent/helper/folders.hpp"
#include "common/base/unique_fd.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <tuple>

namespace perfrig {

namespace {

constexpr const char* folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};
constexpr std::size_t most_entries = 100'000; // of one folder
constexpr std::size_t most_told = 20;

void look_in_folder(const FileTree& tree, const char* path, uid_t uid, TraceLook& look) {
    const UniqueFd folder(::open(tree.real_path(path).c_str(), folder_flags));
    if (!folder) return; // this machine has none
    const auto names = names_in(folder.get(), most_entries + 1);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i == most_entries) {
            look.whole = false;
            return;
        }
        struct stat info {};
        if (::fstatat(folder.get(), names[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_uid == uid)
            look.traces.insert({path, names[i], info.st_ino});
    }
}

// "key shmid perms ... uid gid cuid cgid ...": proc(5); the columns before uid differ from table to table.
void look_in_table(const FileTree& tree, const char* table, uid_t uid, TraceLook& look) {
    const auto text = tree.read(std::string("/proc/sysvipc/") + table, 16 << 20);
    if (!text) return; // a kernel without System V
    std::istringstream lines(*text);
    std::string line, word;
    std::size_t uid_column = 0, column = 0;
    std::getline(lines, line);
    for (std::istringstream words(line); words >> word; ++column)
        if (word == "uid") uid_column = column;
    while (uid_column > 1 && std::getline(lines, line)) {
        std::istringstream words(line);
        std::string id;
        for (column = 0; words >> word; ++column) {
            if (column == 1) id = word;
            if (column == uid_column && word == std::to_string(uid)) look.traces.insert({table, id, 0});
        }
    }
}

bool somebody_works_as(const FileTree& tree, uid_t uid) {
    const auto names = tree.list("/proc");
    for (const auto& name : names ? *names : std::vector<std::string>()) {
        struct stat info {};
        if (name.find_first_not_of("0123456789") == std::string::npos &&
            ::stat(tree.real_path("/proc/" + name).c_str(), &info) == 0 && info.st_uid == uid)
            return true;
    }
    return false;
}

Result<void> remove_entry(const FileTree& tree, const Trace& trace, Deadline deadline) {
    const std::string shown = trace.text();
    const UniqueFd folder(::open(tree.real_path(trace.folder).c_str(), folder_flags));
    struct stat info {};
    if (!folder || ::fstatat(folder.get(), trace.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
        return fail_errno(errno, "remove", shown);
    if (S_ISDIR(info.st_mode)) {
        const UniqueFd below(::openat(folder.get(), trace.name.c_str(), folder_flags));
        if (!below) return fail_errno(errno, "remove", shown);
        PERFRIG_CHECK(empty_folder(below.get(), shown, deadline));
    }
    if (::unlinkat(folder.get(), trace.name.c_str(), S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0) != 0)
        return fail_errno(errno, "remove", shown);
    return {};
}

Result<void> remove_object(const Trace& trace) {
    int id = -1;
    std::from_chars(trace.name.data(), trace.name.data() + trace.name.size(), id);
    const int done = trace.folder == "shm"   ? ::shmctl(id, IPC_RMID, nullptr)
                     : trace.folder == "sem" ? ::semctl(id, 0, IPC_RMID)
                                             : ::msgctl(id, IPC_RMID, nullptr);
    if (done != 0) return fail_errno(errno, "remove", trace.text());
    return {};
}

} // namespace

std::string Trace::text() const {
    return folder.starts_with('/') ? folder + "/" + name : "System V " + folder + " " + name;
}

bool Trace::operator<(const Trace& other) const {
    return std::tie(folder, name, inode) < std::tie(other.folder, other.name, other.inode);
}

TraceLook look_for_traces(const FileTree& tree, uid_t uid) {
    TraceLook look;
    for (const char* folder : folders) look_in_folder(tree, folder, uid, look);
    for (const char* table : {"shm", "sem", "msg"}) look_in_table(tree, table, uid, look);
    look.user_has_others = somebody_works_as(tree, uid);
    return look;
}

std::vector<std::string> clear_traces(const FileTree& tree, const TraceLook& before, const User& user, bool remove,
                                      Deadline deadline) {
    std::vector<std::string> told;
    if (!before.whole)
        return {"more files lie in /tmp, /var/tmp or /dev/shm than are looked at: what is new is unknown"};
    std::size_t untold = 0;
    for (const auto& trace : look_for_traces(tree, user.uid).traces) {
        if (before.traces.contains(trace)) continue;
        std::string became = " (stays: its user is not perfrig's alone)";
        if (remove) {
            const ActingAs acting(user);
            const auto removed =
                trace.folder.starts_with('/') ? remove_entry(tree, trace, deadline) : remove_object(trace);
            became = removed ? " (removed)" : " (stays: " + removed.error().why + ")";
        }
        if (told.size() < most_told)
            told.push_back(trace.text() + became);
        else
            ++untold;
    }
    if (untold > 0) told.push_back("and " + std::to_string(untold) + " more");
    return told;
}

} // namespace perfrig
