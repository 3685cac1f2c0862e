#include "agent/run/output_pump.hpp"

#include "agent/run/redactor.hpp"
#include "common/process/affinity.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/eventfd.h>

namespace perfrig {

namespace {
constexpr std::size_t most_last_lines = 20;
constexpr std::size_t longest_line = 4'096; // more of a line is in the log alone
} // namespace

struct ProcessOutput::State {
    BoundedLog log;
    StreamRedactor redactor;
    LineListener listener;
    std::deque<std::string> last;
    std::string line;
    bool ended = false, finished = false;
    Result<void> outcome;

    void pass(std::string_view text) {
        log.add(text);
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            const std::string_view part = text.substr(0, end);
            if (line.size() < longest_line) line.append(part.substr(0, longest_line - line.size()));
            if (end == std::string_view::npos) return;
            finish_line();
            text.remove_prefix(end + 1);
        }
    }
    void finish_line() {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (listener) listener(line);
        if (!line.empty()) last.push_back(line);
        if (last.size() > most_last_lines) last.pop_front();
        line.clear();
    }
};

ProcessOutput::ProcessOutput(BoundedLog log, std::vector<std::string> secrets, LineListener listener)
    : state_(new State{
          std::move(log), StreamRedactor(std::move(secrets)), std::move(listener), {}, {}, false, false, {}}) {}
ProcessOutput::~ProcessOutput() = default;

void ProcessOutput::add(std::string_view chunk) {
    const std::lock_guard lock(mutex_);
    if (!state_->ended) state_->pass(state_->redactor.add(chunk));
}

void ProcessOutput::end() {
    const std::lock_guard lock(mutex_);
    if (state_->ended) return;
    state_->pass(state_->redactor.flush());
    if (!state_->line.empty()) state_->finish_line();
    state_->ended = true;
}

Result<void> ProcessOutput::finish() {
    end();
    const std::lock_guard lock(mutex_);
    if (!state_->finished) state_->outcome = state_->log.finish();
    state_->finished = true;
    return state_->outcome;
}

std::vector<std::string> ProcessOutput::last_lines() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> lines(state_->last.begin(), state_->last.end());
    if (!state_->line.empty()) lines.push_back(state_->line);
    return lines;
}
std::uint64_t ProcessOutput::dropped_bytes() const {
    const std::lock_guard lock(mutex_);
    return state_->log.dropped_bytes();
}
std::uint64_t ProcessOutput::total_bytes() const {
    const std::lock_guard lock(mutex_);
    return state_->log.total_bytes();
}
const std::string& ProcessOutput::path() const { return state_->log.path(); }
bool ProcessOutput::ended() const {
    const std::lock_guard lock(mutex_);
    return state_->ended;
}

struct OutputPump::State {
    struct Pipe {
        UniqueFd fd;
        std::shared_ptr<ProcessOutput> output;
    };
    std::mutex mutex;
    std::vector<Pipe> fresh; // handed over, not yet with the thread
    bool stop = false;
    UniqueFd wake;
    CpuList cpus;
};

OutputPump::OutputPump(CpuList cpus) : state_(std::make_unique<State>()) {
    state_->cpus = std::move(cpus);
    state_->wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!state_->wake) throw std::runtime_error("no event descriptor is to be had");
    thread_ = std::thread([this] { work(); });
}

OutputPump::~OutputPump() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    wake();
    thread_.join();
}

void OutputPump::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(state_->wake.get(), &one, sizeof one);
}

void OutputPump::watch(UniqueFd pipe, std::shared_ptr<ProcessOutput> output) {
    ::fcntl(pipe.get(), F_SETFL, ::fcntl(pipe.get(), F_GETFL) | O_NONBLOCK);
    {
        const std::lock_guard lock(state_->mutex);
        state_->fresh.push_back({std::move(pipe), std::move(output)});
    }
    wake();
}

namespace {
// Reads what is there, at most `most` bytes so that one flooding process can't starve the others; true: it has ended.
bool drain(int fd, ProcessOutput& output, std::string& buffer, std::size_t most) {
    for (std::size_t done = 0; done < most;) {
        const ssize_t n = ::read(fd, buffer.data(), buffer.size());
        if (n > 0) {
            output.add(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
            done += static_cast<std::size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return false;
        output.end();
        return true;
    }
    return false;
}
} // namespace

void OutputPump::work() {
    ::pthread_setname_np(::pthread_self(), "perfrig-output");
    pin_this_thread(state_->cpus);
    std::vector<State::Pipe> pipes;
    std::vector<pollfd> polls;
    std::string buffer(64 << 10, '\0');
    while (true) {
        bool stop = false;
        {
            const std::lock_guard lock(state_->mutex);
            for (State::Pipe& pipe : state_->fresh) pipes.push_back(std::move(pipe));
            state_->fresh.clear();
            stop = state_->stop;
        }
        if (stop) {
            for (State::Pipe& pipe : pipes)
                if (!drain(pipe.fd.get(), *pipe.output, buffer, 64 << 20)) pipe.output->end();
            return;
        }
        polls.assign(1, {state_->wake.get(), POLLIN, 0});
        for (const State::Pipe& pipe : pipes) polls.push_back({pipe.fd.get(), POLLIN, 0});
        if (::poll(polls.data(), polls.size(), -1) < 0) continue; // EINTR
        if (polls[0].revents != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const auto got = ::read(state_->wake.get(), &count, sizeof count);
        }
        for (std::size_t i = pipes.size(); i-- > 0;)
            if (polls[i + 1].revents != 0 && drain(pipes[i].fd.get(), *pipes[i].output, buffer, 1 << 20))
                pipes.erase(pipes.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

} // namespace perfrig
