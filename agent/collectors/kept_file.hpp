// A file of /proc or /sys that is read again and again: opened once, then one pread a reading (1.7 to 4 us instead of
// 7 to 10). The kernel makes the content anew at each read from offset 0. A file of a thread that is gone answers
// ESRCH, never the content of another thread that got the same number.
#pragma once

#include "common/base/unique_fd.hpp"

#include <cstddef>
#include <fcntl.h>
#include <span>
#include <string>
#include <string_view>

namespace perfrig {

// How many files may still be kept open.
class OpenFileBudget {
  public:
    explicit OpenFileBudget(std::size_t most) : left_(most) {}
    static std::size_t of_this_process(); // three quarters of RLIMIT_NOFILE
    bool take() { return left_ > 0 && left_-- > 0; }
    void give_back() { ++left_; }

  private:
    std::size_t left_;
};

struct Reading {
    enum class Outcome { read, vanished, failed };
    Outcome outcome = Outcome::failed;
    std::string_view text; // into the caller's buffer; where it was read
    int error_number = 0;  // where it failed; EFBIG: larger than the buffer

    explicit operator bool() const { return outcome == Outcome::read; }
    bool vanished() const { return outcome == Outcome::vanished; }
    std::string why() const; // errno's text
};

class KeptFile {
  public:
    KeptFile() = default;
    ~KeptFile() { close(); }
    KeptFile(const KeptFile&) = delete;
    KeptFile& operator=(const KeptFile&) = delete;

    // `name` is relative to `folder` (AT_FDCWD for a path). Opens at the first call; keeps the file where the budget
    // allows. ENOENT and ESRCH are `vanished`.
    Reading read(int folder, const char* name, std::span<char> buffer, OpenFileBudget& budget);
    bool is_open() const { return static_cast<bool>(fd_); }
    void close();

  private:
    UniqueFd fd_;
    OpenFileBudget* budget_ = nullptr; // of which a place is held, while fd_ is open
};

} // namespace perfrig
