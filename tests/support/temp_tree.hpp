// A folder of its own for one test, gone when the test ends; and a way to write small trees of /proc and /sys into it.
#pragma once

#include "common/base/file_tree.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace perfrig::test {

class TempTree {
  public:
    TempTree() {
        std::string pattern = (std::filesystem::temp_directory_path() / "perfrig-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
        root_ = pattern;
    }
    ~TempTree() {
        std::error_code ignored; // a test's rubbish is no reason to fail it
        std::filesystem::remove_all(root_, ignored);
    }
    TempTree(const TempTree&) = delete;
    TempTree& operator=(const TempTree&) = delete;

    TempTree& write(const std::string& path, const std::string& text) {
        const std::filesystem::path file(root_ + path);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
        return *this;
    }
    void remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }
    FileTree tree() const { return FileTree(root_); }
    const std::string& root() const { return root_; }

  private:
    std::string root_;
};

} // namespace perfrig::test
