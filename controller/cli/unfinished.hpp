// What `perfrig down` leaves undone, said and not waited for.
#pragma once

#include <string>

namespace perfrig::cli {

// Asks the controller that `perfrig up` started in `folder`; a second at most for each of two questions. "submission 21
// is unfinished; ..." or, where there is none or nobody answers, "".
std::string unfinished_text(const std::string& folder);

} // namespace perfrig::cli
