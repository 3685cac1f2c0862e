#include "agent/helper/client.hpp"

#include "agent/helper/channel.hpp"
#include "agent/helper/requests.hpp"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace perfrig {

namespace {

constexpr Milliseconds time_for_helper{30'000}; // to end all runs when the client goes

Error helper_gone() {
    return fail(ErrorKind::unavailable, "reach the helper", "", "it is gone",
                "the agent must stop and be started again");
}

// The reply as a value, or the error that it carries.
Result<Message> open_reply(Message message) {
    if (message.contains("error")) return decode_error(message["error"]);
    if (!message.contains("ok"))
        return fail(ErrorKind::internal, "read an answer", "", "it holds neither a result nor an error");
    return Message(message["ok"]);
}

// A file in memory, which passes to the helper as a descriptor.
Result<UniqueFd> memory_file(std::string_view content) {
    UniqueFd fd(::memfd_create("perfrig-file", MFD_CLOEXEC));
    if (!fd) return fail_errno(errno, "make a memory file", "");
    while (!content.empty()) {
        const ssize_t n = ::write(fd.get(), content.data(), content.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "write a memory file", "");
        content.remove_prefix(static_cast<std::size_t>(n));
    }
    return fd;
}

} // namespace

// --- a run -----------------------------------------------------------------------------------------------------

Result<void> RunGuard::take_packet(const std::string& text, std::int64_t id, std::optional<Message>& reply) {
    PERFRIG_TRY(Message message, parse_json(text, "a message of the guardian"));
    if (message.contains("event")) {
        PERFRIG_TRY(ProcessExited exited, decode_exited(message.value("exited", Json())));
        events_.push_back(std::move(exited));
    } else if (message.value("id", Json()) == Json(id)) {
        reply = std::move(message);
    } // else the late answer to a request whose deadline passed
    return {};
}

Error RunGuard::guardian_gone() {
    lost_ = true;
    return fail(ErrorKind::unavailable, "reach the guardian of", run_.text(), "it is gone", "the helper ends the run");
}

Result<Message> RunGuard::ask(Message request, const std::vector<int>& fds, Deadline deadline) {
    if (lost_ || !socket_) return guardian_gone();
    const std::int64_t id = ++last_id_;
    PERFRIG_TRY(const std::string text, request_text(id, std::move(request)));
    if (const auto sent = send_packet(socket_.get(), text, fds, deadline); !sent) {
        if (sent.error().kind == ErrorKind::unavailable) return guardian_gone();
        return sent.error();
    }
    std::optional<Message> reply;
    while (!reply) {
        PERFRIG_TRY(const auto packet, receive_packet(socket_.get(), deadline));
        if (!packet) return guardian_gone();
        PERFRIG_CHECK(take_packet(packet->text, id, reply));
    }
    return open_reply(*std::move(reply));
}

Result<Spawned> RunGuard::spawn(const SpawnOrder& order, Deadline deadline) {
    std::vector<int> fds;
    for (const int fd : {order.stdin_fd, order.stdout_fd, order.stderr_fd})
        if (fd >= 0) fds.push_back(fd);
    PERFRIG_TRY(const Message result, ask(encode(GuardianVerb(order)), fds, deadline));
    return decode_spawned(result);
}

Result<void> RunGuard::signal(pid_t pid, int signal, Deadline deadline) {
    PERFRIG_CHECK(ask(encode(GuardianVerb(SignalProcess{pid, signal})), {}, deadline));
    return {};
}

Result<ProcessExited> RunGuard::next_event(Deadline deadline) {
    while (events_.empty()) {
        if (lost_ || ended_ || !socket_) {
            if (!ended_) return guardian_gone();
            return fail(ErrorKind::timed_out, "wait for the end of a process of", run_.text(), "the run has ended");
        }
        PERFRIG_TRY(const auto packet, receive_packet(socket_.get(), deadline));
        if (!packet) return guardian_gone();
        std::optional<Message> late;
        PERFRIG_CHECK(take_packet(packet->text, 0, late));
    }
    ProcessExited exited = std::move(events_.front());
    events_.pop_front();
    return exited;
}

Result<RunEnded> RunGuard::end(Deadline deadline) {
    if (ended_) return *ended_;
    PERFRIG_TRY(const Message result, ask(encode(GuardianVerb(EndThisRun())), {}, deadline));
    PERFRIG_TRY(ended_, decode_ended(result));
    return *ended_;
}

// --- the helper ------------------------------------------------------------------------------------------------

struct HelperClient::State {
    mutable std::mutex mutex;
    UniqueFd socket;
    pid_t child = -1;
    pid_t helper = -1;
    std::int64_t last_id = 0;
    std::deque<RunLost> lost;
    bool gone = false;

    Result<void> take_packet(Packet& packet, std::int64_t id, std::optional<Message>& reply,
                             std::vector<UniqueFd>& fds) {
        PERFRIG_TRY(Message message, parse_json(packet.text, "a message of the helper"));
        if (message.contains("notice")) {
            PERFRIG_TRY(RunLost one, decode_lost(message.value("lost", Json())));
            lost.push_back(std::move(one));
        } else if (message.value("id", Json()) == Json(id)) {
            reply = std::move(message);
            fds = std::move(packet.fds);
        } // else the late answer to a request whose deadline passed
        return {};
    }

    Result<Message> ask(const HelperVerb& verb, const std::vector<int>& fds, std::vector<UniqueFd>& got,
                        Deadline deadline) {
        const std::lock_guard lock(mutex);
        if (gone) return helper_gone();
        const std::int64_t id = ++last_id;
        PERFRIG_TRY(const std::string text, request_text(id, encode(verb)));
        if (const auto sent = send_packet(socket.get(), text, fds, deadline); !sent) {
            gone = sent.error().kind == ErrorKind::unavailable;
            if (gone) return helper_gone();
            return sent.error();
        }
        std::optional<Message> reply;
        while (!reply) {
            PERFRIG_TRY(auto packet, receive_packet(socket.get(), deadline));
            if (!packet) {
                gone = true;
                return helper_gone();
            }
            PERFRIG_CHECK(take_packet(*packet, id, reply, got));
        }
        return open_reply(*std::move(reply));
    }
    Result<Message> ask(const HelperVerb& verb, Deadline deadline) {
        std::vector<UniqueFd> none;
        return ask(verb, {}, none, deadline);
    }
};

HelperClient::HelperClient(UniqueFd socket, pid_t child, pid_t helper) : state_(std::make_unique<State>()) {
    state_->socket = std::move(socket);
    state_->child = child;
    state_->helper = helper;
}
HelperClient::HelperClient(HelperClient&&) noexcept = default;
HelperClient& HelperClient::operator=(HelperClient&&) noexcept = default;

HelperClient::~HelperClient() {
    if (!state_) return;
    state_->socket.reset();
    if (state_->child <= 0) return;
    // Helper and warden exit by themselves; they are waited for, so that an agent that ended has left nothing running.
    const auto deadline = Deadline::in(time_for_helper);
    while (!deadline.passed()) {
        const pid_t got = ::waitpid(state_->child, nullptr, WNOHANG);
        if (got == state_->child || (got < 0 && errno != EINTR)) return;
        ::poll(nullptr, 0, 5);
    }
}

Result<RunGuard> HelperClient::begin_run(RunName run, Deadline deadline, std::int64_t most_processes) {
    std::vector<UniqueFd> fds;
    PERFRIG_TRY(const Message result, state_->ask(BeginRun{run, most_processes}, {}, fds, deadline));
    JsonReader in(result, "the answer to begin_run");
    std::string directory = in.string("directory");
    if (fds.size() != 1) in.fault("no guardian came with it");
    PERFRIG_CHECK(in.finish());
    return RunGuard(std::move(fds[0]), run, std::move(directory));
}

Result<RunEnded> HelperClient::end_run(std::int64_t run_id, bool remove_directory, Deadline deadline) {
    PERFRIG_TRY(const Message result, state_->ask(EndRun{run_id, remove_directory}, deadline));
    return decode_ended(result);
}

Result<SweepReport> HelperClient::sweep(bool remove_directories, Deadline deadline) {
    PERFRIG_TRY(const Message result, state_->ask(Sweep{remove_directories}, deadline));
    return decode_swept(result);
}

Result<void> HelperClient::write_file(RunName run, const std::string& path, int mode, std::string_view content,
                                      Deadline deadline) {
    if (content.size() > most_file_bytes)
        return fail(ErrorKind::bad_input, "write", path,
                    "it has more than " + std::to_string(most_file_bytes) + " bytes");
    PERFRIG_TRY(const UniqueFd file, memory_file(content));
    std::vector<UniqueFd> none;
    PERFRIG_CHECK(state_->ask(WriteFile{run, path, mode}, {file.get()}, none, deadline));
    return {};
}

Result<UniqueFd> HelperClient::open_file(RunName run, const std::string& path, Deadline deadline) {
    std::vector<UniqueFd> fds;
    PERFRIG_CHECK(state_->ask(OpenFile{run, path}, {}, fds, deadline));
    if (fds.size() != 1) return fail(ErrorKind::internal, "open", path, "the helper's answer came without the file");
    return std::move(fds[0]);
}

Result<UniqueFd> HelperClient::open_counts(const CpuList& cpus, Deadline deadline) {
    std::vector<UniqueFd> fds;
    PERFRIG_CHECK(state_->ask(OpenCounts{cpus}, {}, fds, deadline));
    if (fds.size() != 1) return fail(ErrorKind::internal, "open", "thread counts", "the helper's answer came without");
    return std::move(fds[0]);
}

Result<HelperFacts> HelperClient::facts(Deadline deadline) {
    PERFRIG_TRY(const Message result, state_->ask(AskFacts{}, deadline));
    return decode_facts(result);
}

std::vector<RunLost> HelperClient::take_lost() {
    static_cast<void>(check_alive()); // reads what waits; that the helper is gone is told by the next call
    const std::unique_lock lock(state_->mutex, std::try_to_lock);
    if (!lock) return {};
    std::vector<RunLost> lost(state_->lost.begin(), state_->lost.end());
    state_->lost.clear();
    return lost;
}

// The lock is held for as long as a request takes, which may be half a minute: whoever only looks must not wait for it
// (heartbeats leave from that thread). The request itself finds out when the helper goes.
Result<void> HelperClient::check_alive() {
    const std::unique_lock lock(state_->mutex, std::try_to_lock);
    if (!lock) return {};
    while (!state_->gone) {
        auto packet = receive_packet(state_->socket.get(), Deadline::in(Milliseconds(0)));
        if (!packet && packet.error().kind == ErrorKind::timed_out) return {};
        if (!packet || !*packet) {
            state_->gone = true;
            break;
        }
        std::optional<Message> late;
        std::vector<UniqueFd> late_fds;
        PERFRIG_CHECK(state_->take_packet(**packet, 0, late, late_fds));
    }
    return helper_gone();
}

int HelperClient::event_fd() const { return state_->socket.get(); }
pid_t HelperClient::helper_pid() const { return state_->helper; }

} // namespace perfrig
