// Brings artifacts to the controller: asks how much it has (HEAD), sends the rest in parts (PUT), deletes the file when
// the controller says that it is complete. A file whose offer isn't stored yet (404) waits. While a run measures
// nothing is sent: bytes can wait, a disturbed measurement can't be mended.
#pragma once

#include "agent/run/artifact_store.hpp"
#include "agent/run/work_status.hpp"
#include "common/net/http_client.hpp"
#include "common/net/task_group.hpp"

#include <set>

namespace perfrig {

class Uploader {
  public:
    Uploader(boost::asio::any_io_executor executor, Url controller, std::string token, ArtifactStore store,
             const WorkStatus& status);
    boost::asio::awaitable<void> run(); // until stop()
    void stop();
    std::uint64_t uploaded() const { return uploaded_; } // complete, since the start

  private:
    enum class Step { done, later };
    boost::asio::awaitable<Result<Step>> upload(StoredArtifact artifact);
    boost::asio::awaitable<Result<HttpResponse>> ask(std::string method, std::string target, std::string body);
    Url controller_;
    std::string token_;
    ArtifactStore store_;
    const WorkStatus& status_;
    HttpClient client_;
    AsyncEvent stopped_;
    bool stop_ = false;
    std::uint64_t uploaded_ = 0;
};

} // namespace perfrig
