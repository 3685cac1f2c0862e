#include "common/base/file_tree.hpp"

#include "common/base/unique_fd.hpp"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace perfrig {

FileTree::FileTree(std::string root) : root_(std::move(root)) {
    while (root_.ends_with('/')) root_.pop_back();
}

std::string FileTree::real_path(std::string_view path) const { return root_ + std::string(path); }

Result<std::string> FileTree::read(std::string_view path, std::size_t most_bytes) const {
    return read_file(real_path(path), most_bytes);
}

Result<std::string> FileTree::read_line(std::string_view path) const {
    PERFRIG_TRY(std::string text, read(path));
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

bool FileTree::exists(std::string_view path) const { return ::access(real_path(path).c_str(), F_OK) == 0; }

Result<std::vector<std::string>> FileTree::list(std::string_view path) const {
    const std::string real = real_path(path);
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(real.c_str()), ::closedir);
    if (!dir) return fail_errno(errno, "list", real);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "read", path);
    std::string out;
    char chunk[16384];
    for (;;) {
        const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "read", path);
        if (n == 0) return out;
        if (out.size() + static_cast<std::size_t>(n) > most_bytes)
            return fail(ErrorKind::bad_input, "read", path,
                        "it is larger than " + std::to_string(most_bytes) + " bytes");
        out.append(chunk, static_cast<std::size_t>(n));
    }
}

Result<void> write_file_atomically(const std::string& path, std::string_view content, int mode) {
    const std::string temporary = path + ".new." + std::to_string(::getpid());
    const auto give_up = [&](const char* step) {
        const int error = errno;
        ::unlink(temporary.c_str());
        return fail_errno(error, step, path);
    };
    {
        const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
        if (!fd) return fail_errno(errno, "create", temporary);
        while (!content.empty()) {
            const ssize_t n = ::write(fd.get(), content.data(), content.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return give_up("write");
            content.remove_prefix(static_cast<std::size_t>(n));
        }
        if (::fsync(fd.get()) != 0) return give_up("make durable");
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("put in place");
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    const UniqueFd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir || ::fsync(dir.get()) != 0) return fail_errno(errno, "make durable", folder);
    return {};
}

} // namespace perfrig
