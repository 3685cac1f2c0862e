#include "agent/run/artifact_store.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/base/unique_fd.hpp"
#include "common/net/url.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace perfrig {

namespace {
constexpr std::size_t longest_file_name = 255;

std::int64_t run_of_folder(const std::string& name) {
    std::int64_t run = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), run);
    return error == std::errc() && end == name.data() + name.size() ? run : 0;
}
} // namespace

Result<StoredArtifact> ArtifactStore::take(std::int64_t run, const std::string& name, const std::string& file) const {
    const std::string encoded = percent_encode(name);
    if (encoded.empty() || encoded.size() > longest_file_name || encoded == "." || encoded == "..")
        return fail(ErrorKind::bad_input, "keep the artifact", name, "its name can't be a file's");
    std::error_code error;
    std::filesystem::create_directories(run_folder(run), error);
    if (error) return fail(ErrorKind::unavailable, "make the folder", run_folder(run), error.message());
    const std::string path = run_folder(run) + "/" + encoded;
    // Its hash is about to be told for good: what a power cut leaves must still have it.
    if (const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)); !fd || ::fdatasync(fd.get()) != 0)
        return fail_errno(errno, "make the artifact durable", file);
    if (::rename(file.c_str(), path.c_str()) != 0) return fail_errno(errno, "keep the artifact", path);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "keep the artifact", path);
    return StoredArtifact{run, name, path, static_cast<std::uint64_t>(status.st_size)};
}

Result<std::vector<StoredArtifact>> ArtifactStore::list(std::int64_t run) const {
    std::vector<StoredArtifact> out;
    if (::access(run_folder(run).c_str(), F_OK) != 0) return out;
    PERFRIG_TRY(const auto files, FileTree(run_folder(run)).list("/"));
    for (const std::string& file : files) {
        const auto name = percent_decode(file);
        struct stat status {};
        const std::string path = run_folder(run) + "/" + file;
        if (!name || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        out.push_back({run, *name, path, static_cast<std::uint64_t>(status.st_size)});
    }
    return out;
}

Result<std::vector<StoredArtifact>> ArtifactStore::list() const {
    std::vector<StoredArtifact> out;
    if (::access(folder_.c_str(), F_OK) != 0) return out;
    PERFRIG_TRY(const auto names, FileTree(folder_).list("/"));
    std::vector<std::int64_t> runs;
    for (const std::string& name : names)
        if (const std::int64_t run = run_of_folder(name); run > 0) runs.push_back(run);
    std::sort(runs.begin(), runs.end());
    for (const std::int64_t run : runs) {
        PERFRIG_TRY(auto some, list(run));
        std::move(some.begin(), some.end(), std::back_inserter(out));
    }
    return out;
}

void ArtifactStore::remove(const StoredArtifact& artifact) const {
    ::unlink(artifact.path.c_str());
    ::rmdir(run_folder(artifact.run).c_str()); // once it is empty
}

Result<std::string> sha256_of_file(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "read", path);
    Sha256 hash;
    std::string piece(1 << 20, '\0');
    while (true) {
        const ssize_t n = ::read(fd.get(), piece.data(), piece.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "read", path);
        if (n == 0) return hash.hex();
        hash.add(std::string_view(piece).substr(0, static_cast<std::size_t>(n)));
    }
}

} // namespace perfrig
