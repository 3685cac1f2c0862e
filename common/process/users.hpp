// Users of this machine, read from /etc/passwd and /etc/group by a parser of our own: the agent is linked statically,
// where getpwnam would load NSS modules of another glibc. Users that only a directory service knows can be given by
// number ("1001:1001").
#pragma once

#include "common/base/file_tree.hpp"
#include "common/base/result.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace perfrig {

struct User {
    std::string name; // as asked for
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups; // supplementary, without gid; sorted
    std::string home;          // "/" where none is known
};

// `name`: a login name, "UID" of a known user, or "UID:GID". not_found where there is no such user.
Result<User> find_user(const FileTree& tree, std::string_view name);
// The same from the text of the two files (pure).
Result<User> find_user_in(std::string_view passwd, std::string_view group, std::string_view name);

// The calling process becomes `user` for good: groups, gids, uids; then proves that root can't be had back.
// Refuses uid 0 (forbidden). Call before any thread exists. Where the process already is that user: nothing happens.
Result<void> drop_privileges(const User& user);

} // namespace perfrig
