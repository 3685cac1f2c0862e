// While it lives, the calling process touches files as another user; root comes back at its end. Only for processes
// with one thread. Real and saved ids stay root's, so the user can neither signal nor trace us meanwhile.
#pragma once

#include "common/process/users.hpp"

#include <cstdlib>
#include <unistd.h>

namespace perfrig {

class ActingAs {
  public:
    explicit ActingAs(const User& user) : changed_(::geteuid() == 0 && user.uid != 0), gid_(::getegid()) {
        if (changed_ && (::setegid(user.gid) != 0 || ::seteuid(user.uid) != 0)) std::abort();
    }
    ActingAs(const ActingAs&) = delete;
    ActingAs& operator=(const ActingAs&) = delete;
    ~ActingAs() {
        // Going on as the wrong user would be worse than not going on.
        if (changed_ && (::seteuid(0) != 0 || ::setegid(gid_) != 0)) std::abort();
    }

  private:
    bool changed_;
    gid_t gid_;
};

} // namespace perfrig
