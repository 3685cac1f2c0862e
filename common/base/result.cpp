#include "common/base/result.hpp"

#include <cstring>

namespace perfrig {

// Where nothing "tried" is named, `why` is a whole sentence, such as what a server said.
std::string Error::text() const {
    std::string out;
    if (!tried.empty()) {
        out = "can't " + tried;
        if (!on.empty()) out += " " + on;
        out += ": ";
    }
    out += why;
    if (!remedy.empty()) out += " (" + remedy + ")";
    return out;
}

Error fail_errno(int error_number, std::string tried, std::string on, std::string remedy) {
    const ErrorKind kind = error_number == ENOENT                            ? ErrorKind::not_found
                           : error_number == EACCES || error_number == EPERM ? ErrorKind::forbidden
                                                                             : ErrorKind::unavailable;
    return fail(kind, std::move(tried), std::move(on), std::strerror(error_number), std::move(remedy));
}

std::string_view to_string(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::bad_input: return "bad_input";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::conflict: return "conflict";
    case ErrorKind::forbidden: return "forbidden";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::timed_out: return "timed_out";
    case ErrorKind::internal: return "internal";
    }
    return "internal";
}

} // namespace perfrig
