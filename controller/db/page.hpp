// Paging by cursor: lists are ordered by falling id; `next` is the id below which the next page begins.
#pragma once

#include <cstdint>
#include <vector>

namespace perfrig::db {

struct PageRequest {
    std::int64_t below = 0; // 0: from the newest
    int limit = 100;        // 1 .. 1,000; others are pulled into that range
};

template <class T> struct Page {
    std::vector<T> items;
    std::int64_t next = 0; // 0: that was all
};

} // namespace perfrig::db
