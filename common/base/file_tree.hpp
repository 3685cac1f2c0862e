// The file system seen from an injected root: code below main never writes a literal "/proc" path that cannot be
// pointed at a recorded tree. FileTree("/") is the real machine.
#pragma once

#include "common/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace perfrig {

class FileTree {
  public:
    explicit FileTree(std::string root = "/");

    // `path` is absolute within the tree ("/proc/cmdline"). Reads at most `most_bytes`; more is an error.
    Result<std::string> read(std::string_view path, std::size_t most_bytes = 1 << 20) const;
    // As read, without one trailing newline.
    Result<std::string> read_line(std::string_view path) const;
    bool exists(std::string_view path) const;
    // Names in a folder, sorted, without . and ..; an error where it can't be opened.
    Result<std::vector<std::string>> list(std::string_view path) const;
    std::string real_path(std::string_view path) const; // root + path, for handing to other code

  private:
    std::string root_; // without a trailing slash
};

// Write `content` to `path` whole or not at all: temporary file, fsync, rename, fsync of the folder.
Result<void> write_file_atomically(const std::string& path, std::string_view content, int mode = 0644);
Result<std::string> read_file(const std::string& path, std::size_t most_bytes = 64 << 20);

} // namespace perfrig
