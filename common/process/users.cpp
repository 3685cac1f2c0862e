#include "common/process/users.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <grp.h>
#include <linux/capability.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perfrig {

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

// (uid_t)-1 means "leave as it is" to setresuid, so it is never a user.
std::optional<uid_t> parse_id(std::string_view text) {
    uid_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || id == static_cast<uid_t>(-1))
        return std::nullopt;
    return id;
}

// Groups that list `login` as a member, without its primary one.
std::vector<gid_t> groups_of(std::string_view group_file, std::string_view login, gid_t primary) {
    std::vector<gid_t> groups;
    for (const std::string_view line : split(group_file, '\n')) {
        const auto fields = split(line, ':'); // name:password:gid:member,member
        if (fields.size() < 4) continue;
        const auto gid = parse_id(fields[2]);
        const auto members = split(fields[3], ',');
        if (gid && *gid != primary && std::find(members.begin(), members.end(), login) != members.end())
            groups.push_back(*gid);
    }
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
}

Error no_such_user(std::string_view name, std::string why) {
    return fail(ErrorKind::not_found, "find the user", std::string(name), std::move(why),
                "name one of /etc/passwd, or give numbers as UID:GID (directory services are not asked)");
}

bool holds_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (::syscall(SYS_capget, &header, data) != 0) return true;
    return (data[0].effective | data[0].permitted | data[1].effective | data[1].permitted) != 0;
}

} // namespace

Result<User> find_user_in(std::string_view passwd, std::string_view group, std::string_view name) {
    const auto wanted_uid = parse_id(name);
    for (const std::string_view line : split(passwd, '\n')) {
        const auto fields = split(line, ':'); // name:password:uid:gid:comment:home:shell
        if (fields.size() < 6 || fields[0].empty()) continue;
        const auto uid = parse_id(fields[2]);
        const auto gid = parse_id(fields[3]);
        if (!uid || !gid || (fields[0] != name && !(wanted_uid && wanted_uid == uid))) continue;
        return User{std::string(fields[0]), *uid, *gid, groups_of(group, fields[0], *gid),
                    fields[5].empty() ? "/" : std::string(fields[5])};
    }
    if (const auto colon = name.find(':'); colon != std::string_view::npos) {
        const auto uid = parse_id(name.substr(0, colon));
        const auto gid = parse_id(name.substr(colon + 1));
        if (uid && gid) return User{std::string(name), *uid, *gid, {}, "/"};
        return no_such_user(name, "it is not of the form UID:GID");
    }
    return no_such_user(name, wanted_uid ? "no user has this number" : "no such user");
}

Result<User> find_user(const FileTree& tree, std::string_view name) {
    if (name.empty()) return no_such_user("''", "no name was given");
    // A tree without these files (a bare chroot) still knows users by number.
    const auto passwd = tree.read("/etc/passwd", 16 << 20);
    const auto group = tree.read("/etc/group", 16 << 20);
    return find_user_in(passwd ? *passwd : "", group ? *group : "", name);
}

Result<void> drop_privileges(const User& user) {
    const auto refuse = [&](std::string why, std::string remedy = {}) {
        return fail(ErrorKind::forbidden, "become the user", user.name, std::move(why), std::move(remedy));
    };
    if (user.uid == 0) return refuse("it is root", "name an unprivileged user");
    if (::geteuid() == 0) {
        if (::setgroups(user.groups.size(), user.groups.data()) != 0 ||
            ::setresgid(user.gid, user.gid, user.gid) != 0 || ::setresuid(user.uid, user.uid, user.uid) != 0)
            return fail_errno(errno, "become the user", user.name, "root needs CAP_SETUID and CAP_SETGID for this");
        ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); // else the process can't read its own /proc files any more
    }
    uid_t real = 0, effective = 0, saved = 0;
    if (::getresuid(&real, &effective, &saved) != 0) return fail_errno(errno, "read the user ids", user.name);
    if (real != user.uid || effective != user.uid || saved != user.uid)
        return refuse("this process runs as uid " + std::to_string(effective) +
                      " and only root can become another user");
    if (::setresuid(static_cast<uid_t>(-1), 0, static_cast<uid_t>(-1)) == 0) return refuse("root could be had back");
    if (holds_capabilities()) return refuse("capabilities were left", "start it without ambient capabilities");
    return {};
}

} // namespace perfrig
