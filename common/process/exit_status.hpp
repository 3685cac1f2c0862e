// How a process ended: with a code, or by a signal. One type with one text, so that tables, logs and errors agree.
#pragma once

#include <string>

namespace perfrig {

struct ExitStatus {
    int code = 0;   // 0-255; meaningful when signal is 0
    int signal = 0; // the signal that ended it; 0 when it exited by itself

    bool good() const { return code == 0 && signal == 0; }
    std::string text() const; // "0", "exit 3", "signal 9 (Killed)"
    // From the status word of wait(2). The word must be of a process that ended.
    static ExitStatus from_wait_status(int status);
    friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

} // namespace perfrig
