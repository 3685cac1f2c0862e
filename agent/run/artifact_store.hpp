// Bytes that runs leave, kept until the controller has them: FOLDER/<run>/<name, percent-encoded>. Files appear whole
// (rename), so whatever lies there may be offered again after a restart.
#pragma once

#include "common/base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace perfrig {

struct StoredArtifact {
    std::int64_t run = 0;
    std::string name, path;
    std::uint64_t size = 0;
};

class ArtifactStore {
  public:
    explicit ArtifactStore(std::string folder) : folder_(std::move(folder)) {}

    // Moves `file` into the store under this name, in place of one that has it already.
    Result<StoredArtifact> take(std::int64_t run, const std::string& name, const std::string& file) const;
    Result<std::vector<StoredArtifact>> list() const; // by run, then name
    Result<std::vector<StoredArtifact>> list(std::int64_t run) const;
    void remove(const StoredArtifact& artifact) const;

  private:
    std::string run_folder(std::int64_t run) const { return folder_ + "/" + std::to_string(run); }
    std::string folder_;
};

Result<std::string> sha256_of_file(const std::string& path); // read in pieces

} // namespace perfrig
