// A child process with threads that burn CPU on command: the subject of the collectors' tests and benchmark. Its
// threads wait on a pipe between bursts, and the child accounts for each burst with getrusage, so a test can compare
// what a collector read with what was really used in the same window.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace perfrig::test {

inline double cpu_seconds(int who = RUSAGE_SELF) {
    rusage use{};
    getrusage(who, &use);
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

class ThreadFarm {
  public:
    // Threads are called NAME-0, NAME-1, ...; returns when all of them live and wait.
    explicit ThreadFarm(int threads, const std::string& name = "farm") {
        int to_child[2], from_child[2];
        if (::pipe2(to_child, O_CLOEXEC_) != 0 || ::pipe2(from_child, O_CLOEXEC_) != 0)
            throw std::runtime_error("no pipe");
        pid_ = ::fork();
        if (pid_ < 0) throw std::runtime_error("no child");
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::close(to_child[1]);
            ::close(from_child[0]);
            serve(threads, name, to_child[0], from_child[1]);
            ::_exit(0);
        }
        ::close(to_child[0]);
        ::close(from_child[1]);
        command_ = to_child[1];
        answer_ = from_child[0];
        receive();
    }
    ~ThreadFarm() {
        ::close(command_);
        ::close(answer_);
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    ThreadFarm(const ThreadFarm&) = delete;
    ThreadFarm& operator=(const ThreadFarm&) = delete;

    pid_t pid() const { return pid_; }

    // All threads burn CPU for this long, then wait again. Returns the CPU seconds that the child used meanwhile.
    double burst(double seconds) {
        send('b', seconds);
        return receive();
    }
    void start_burst(double seconds) { send('b', seconds); }
    double finish_burst() { return receive(); }
    double add_thread() { return send('a', 0), receive(); }                    // one more waits
    double end_thread() { return send('e', 0), receive(); }                    // the last one ends
    pid_t fork_child() { return send('f', 0), static_cast<pid_t>(receive()); } // a child of the child that only waits
    double rename_first() { return send('r', 0), receive(); } // the first thread calls itself "renamed) (x"
    double pin_first(int cpu) { return send('p', cpu), receive(); }

  private:
    static constexpr int O_CLOEXEC_ = 02000000;
    struct Command {
        char what;
        double argument;
    };

    void send(char what, double argument) {
        const Command c{what, argument};
        if (::write(command_, &c, sizeof c) != sizeof c) throw std::runtime_error("the farm is gone");
    }
    double receive() {
        double value = 0;
        if (::read(answer_, &value, sizeof value) != sizeof value) throw std::runtime_error("the farm is gone");
        return value;
    }

    struct Worker {
        int wake[2] = {-1, -1}, done[2] = {-1, -1};
        std::thread thread;
        Command tell(Command c) {
            [[maybe_unused]] auto n = ::write(wake[1], &c, sizeof c);
            return c;
        }
        void wait() {
            char byte = 0;
            [[maybe_unused]] auto n = ::read(done[0], &byte, 1);
        }
    };

    static void work(Worker& w, const std::string& name) {
        ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
        Command c{};
        [[maybe_unused]] ssize_t n = ::write(w.done[1], "x", 1);
        while (::read(w.wake[0], &c, sizeof c) == sizeof c && c.what != 'e') {
            if (c.what == 'r') ::pthread_setname_np(::pthread_self(), "renamed) (x");
            if (c.what == 'p') {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(static_cast<unsigned>(c.argument), &set);
                ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
            }
            const auto end =
                std::chrono::steady_clock::now() + std::chrono::duration<double>(c.what == 'b' ? c.argument : 0);
            volatile std::uint64_t x = 0;
            while (std::chrono::steady_clock::now() < end)
                for (int i = 0; i < 1000; ++i) x = x + 1;
            n = ::write(w.done[1], "x", 1);
        }
    }

    static void serve(int count, const std::string& name, int commands, int answers) {
        std::vector<std::unique_ptr<Worker>> workers;
        int next = 0;
        const auto add = [&] {
            auto w = std::make_unique<Worker>();
            if (::pipe(w->wake) != 0 || ::pipe(w->done) != 0) ::_exit(1);
            w->thread = std::thread([&worker = *w, n = name + "-" + std::to_string(next)] { work(worker, n); });
            ++next;
            w->wait();
            workers.push_back(std::move(w));
        };
        for (int i = 0; i < count; ++i) add();
        double value = 0;
        [[maybe_unused]] ssize_t n = ::write(answers, &value, sizeof value);
        Command c{};
        while (::read(commands, &c, sizeof c) == sizeof c) {
            const double before = cpu_seconds();
            value = 0;
            switch (c.what) {
            case 'b':
                for (auto& w : workers) w->tell(c);
                for (auto& w : workers) w->wait();
                value = cpu_seconds() - before;
                break;
            case 'a': add(); break;
            case 'e':
                workers.back()->tell(c);
                workers.back()->thread.join();
                workers.pop_back();
                break;
            case 'f': {
                const pid_t child = ::fork();
                if (child == 0) {
                    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                    for (;;) ::pause();
                }
                value = child;
                break;
            }
            case 'r':
            case 'p':
                workers.front()->tell(c);
                workers.front()->wait();
                break;
            }
            n = ::write(answers, &value, sizeof value);
        }
        ::_exit(0);
    }

    pid_t pid_ = -1;
    int command_ = -1, answer_ = -1;
};

} // namespace perfrig::test
