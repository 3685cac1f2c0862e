// What a process prints, on disk, within a bound: the beginning and the end are kept, and a line in between says how
// much was dropped. Writing never blocks on anything but the disk, so the process's pipe is always drained.
#pragma once

#include "common/base/result.hpp"
#include "common/base/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace perfrig {

class BoundedLog {
  public:
    // Keeps the first and the last most_bytes / 2. Errors: the file can't be made.
    static Result<BoundedLog> create(std::string path, std::uint64_t most_bytes);

    void add(std::string_view bytes); // a failing disk is remembered and returned by finish()
    // Puts beginning and end into one file at `path`. Nothing may be added afterwards.
    Result<void> finish();

    const std::string& path() const { return path_; }
    std::uint64_t total_bytes() const { return total_; }
    std::uint64_t dropped_bytes() const;

  private:
    BoundedLog(std::string path, UniqueFd file, std::uint64_t half)
        : path_(std::move(path)), file_(std::move(file)), half_(half) {}
    void write_at(std::string_view bytes, std::uint64_t offset);
    std::string path_;
    UniqueFd file_; // the beginning, then a ring of half_ bytes
    std::uint64_t half_ = 0, total_ = 0;
    int error_ = 0;
};

} // namespace perfrig
