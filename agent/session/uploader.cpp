#include "agent/session/uploader.hpp"

#include "common/base/log.hpp"
#include "common/base/unique_fd.hpp"
#include "common/net/backoff.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <random>

namespace perfrig {

namespace asio = boost::asio;

namespace {
constexpr std::size_t part_bytes = 1 << 20;
constexpr Milliseconds request_time{60'000};
constexpr Milliseconds look_every{1'000};

Result<std::string> read_part(const std::string& path, std::uint64_t offset) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "read the artifact", path);
    std::string part(part_bytes, '\0');
    std::size_t done = 0;
    while (done < part.size()) {
        const ssize_t n = ::pread(fd.get(), part.data() + done, part.size() - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "read the artifact", path);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    part.resize(done);
    return part;
}

struct Stored {
    std::uint64_t bytes = 0;
    bool complete = false;
};

Result<Stored> stored_of(const HttpResponse& response, const std::string& name) {
    Stored stored;
    const std::string bytes = response.headers.value_or("Artifact-Stored-Bytes", "");
    const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), stored.bytes);
    if (error != std::errc() || end != bytes.data() + bytes.size())
        return fail(ErrorKind::unavailable, "upload the artifact", name, "the controller doesn't say how much it has");
    stored.complete = response.headers.value_or("Artifact-Complete", "") == "true";
    return stored;
}
} // namespace

Uploader::Uploader(asio::any_io_executor executor, Url controller, std::string token, ArtifactStore store,
                   const WorkStatus& status)
    : controller_(controller), token_(std::move(token)), store_(std::move(store)), status_(status), client_(controller),
      stopped_(executor) {}

void Uploader::stop() {
    stop_ = true;
    stopped_.notify_all();
}

asio::awaitable<Result<HttpResponse>> Uploader::ask(std::string method, std::string target, std::string body) {
    HttpCall call;
    call.method = std::move(method);
    call.headers.add("Authorization", "Bearer " + token_);
    if (call.method == "PUT") call.content_type = "application/octet-stream";
    call.body = std::move(body);
    co_return co_await client_.request(std::move(target), std::move(call), Deadline::in(request_time));
}

asio::awaitable<Result<Uploader::Step>> Uploader::upload(StoredArtifact artifact) {
    const std::string target =
        "/agent/v1/runs/" + std::to_string(artifact.run) + "/artifacts/" + percent_encode(artifact.name);
    PERFRIG_CO_TRY(auto response, co_await ask("HEAD", target, {}));
    if (response.status == 404) co_return Step::later; // its offer is not stored yet
    for (std::uint64_t last = ~0ULL; !stop_ && !status_.view().measuring;) {
        if (response.status / 100 != 2)
            co_return fail(kind_of_status(response.status), "upload the artifact", artifact.name,
                           "the controller answered " + std::to_string(response.status) + " " +
                               response.body.substr(0, 500));
        PERFRIG_CO_TRY(const auto stored, stored_of(response, artifact.name));
        if (stored.complete) {
            store_.remove(artifact);
            ++uploaded_;
            co_return Step::done;
        }
        if (stored.bytes == last) // no progress: neither an error nor an end
            co_return fail(ErrorKind::conflict, "upload the artifact", artifact.name,
                           "the controller took no bytes behind " + std::to_string(last));
        last = stored.bytes;
        PERFRIG_CO_TRY(auto part, read_part(artifact.path, stored.bytes));
        std::string put = target + "?offset=" + std::to_string(stored.bytes);
        PERFRIG_CO_TRY(response, co_await ask("PUT", std::move(put), std::move(part)));
    }
    co_return Step::later;
}

asio::awaitable<void> Uploader::run() {
    Backoff backoff(Milliseconds(500), Milliseconds(30'000));
    std::mt19937_64 random{std::random_device{}()};
    while (!stop_) {
        Milliseconds wait = look_every;
        const auto artifacts = store_.list();
        if (!artifacts) log::warning("artifacts: " + artifacts.error().text());
        for (std::size_t i = 0; artifacts && i < artifacts->size() && !stop_ && !status_.view().measuring; ++i) {
            const StoredArtifact artifact = (*artifacts)[i];
            const auto step = co_await upload(artifact);
            if (!step) {
                if (wait == look_every) wait = backoff.next(random());
                // That the controller is away is the link's to say, once. What it refuses is about this artifact alone:
                // the others must not wait behind it for ever.
                if (step.error().kind == ErrorKind::unavailable || step.error().kind == ErrorKind::timed_out) {
                    log::debug(step.error().text());
                    break;
                }
                log::warning(step.error().text());
                continue;
            }
            if (*step == Step::done) backoff.reset();
        }
        const Deadline until = Deadline::in(wait);
        while (!stop_ && co_await stopped_.wait(until)) {
        }
    }
}

} // namespace perfrig
