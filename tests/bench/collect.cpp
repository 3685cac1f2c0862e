// What does one reading of one thread cost? Our thread collector against `pidstat -u -w -t -p PID 1` on the same
// process, interleaved, each in a process of its own whose CPU clock is read from outside, over a window that holds the
// same number of readings and no start-up of either. Both do all that they do in earnest: ours follows the process
// tree, finds new threads, reads what changed, encodes the tick as it goes to the spool and writes it to a file;
// pidstat writes its text to a file.
//   bench_collect [PAIRS [SECONDS]]
#include "agent/collectors/threads.hpp"
#include "common/protocol/sample_frame.hpp"
#include "common/protocol/spool_record.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace perfrig;
using namespace std::chrono_literals;

constexpr int sleeping_threads = 79; // and the first thread, which only waits: 200 in all
constexpr int running_threads = 120; // each runs some 50 us once in each second

// Each starts at its own point within the second, so that every tick finds all of them to have run since the last.
void run_now_and_then(int index) {
    ::pthread_setname_np(::pthread_self(), ("worker-" + std::to_string(index)).c_str());
    auto next = std::chrono::steady_clock::now() + index * 1000ms / running_threads;
    for (volatile unsigned x = 0;;) {
        std::this_thread::sleep_until(next);
        for (int i = 0; i < 50'000; ++i) x = x + 1;
        next += 1s;
    }
}

[[noreturn]] void be_the_subject(int ready) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < running_threads; ++i) std::thread(run_now_and_then, i).detach();
    for (int i = 0; i < sleeping_threads; ++i)
        std::thread([] {
            for (;;) ::pause();
        }).detach();
    std::this_thread::sleep_for(1500ms); // all have run once
    [[maybe_unused]] const auto n = ::write(ready, "x", 1);
    for (;;) ::pause();
}

// `readings` ticks, one a second: what an agent does with them until they lie in its spool.
int be_the_reader(pid_t subject, int readings) {
    std::FILE* spool = std::tmpfile();
    if (spool == nullptr) return 1;
    ThreadCollector collector{FileTree("/")};
    collector.watch({"subject", "app", subject, ""});
    SampleSink sink;
    auto next = std::chrono::steady_clock::now();
    for (int i = 0; i < readings; ++i, next += 1s) {
        std::this_thread::sleep_until(next);
        sink.begin(std::chrono::steady_clock::now().time_since_epoch().count());
        collector.tick(0, sink);
        const Tick tick = sink.take(0);
        if (!tick.collector_errors.empty() || collector.threads() != 1 + sleeping_threads + running_threads) {
            std::fprintf(stderr, "the collector read %zu threads; %s\n", collector.threads(),
                         tick.collector_errors.empty() ? "no errors" : tick.collector_errors[0].c_str());
            return 1;
        }
        protocol::SampleFrame frame{1, tick.at_ns, {}};
        frame.samples.reserve(tick.values.size());
        for (const auto& [id, value] : tick.values) frame.samples.push_back({static_cast<std::uint32_t>(id), value});
        const std::string record = protocol::encode_record(
            {protocol::RecordKind::samples, static_cast<std::uint64_t>(i + 1), protocol::encode_samples(frame)});
        if (std::fwrite(record.data(), 1, record.size(), spool) != record.size() || std::fflush(spool) != 0) return 1;
    }
    return 0;
}

double seconds_of(const timespec& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9; }

// Runs a program that reads at 0, 1, 2 ... s, and gives the CPU seconds (user and system) that it used from 1.5 s to
// `seconds` + 1.5 s: the cost of `seconds` readings. Then ends it. A negative number where it wasn't there for so long.
double cpu_seconds_of(const std::vector<std::string>& command, int seconds) {
    const auto start = std::chrono::steady_clock::now();
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::FILE* output = std::tmpfile();
        if (output == nullptr || ::dup2(::fileno(output), 1) < 0) ::_exit(126);
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    clockid_t clock{};
    timespec before{}, after{};
    std::this_thread::sleep_until(start + 1500ms);
    bool good = ::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &before) == 0;
    std::this_thread::sleep_until(start + 1500ms + std::chrono::seconds(seconds));
    good = good && ::clock_gettime(clock, &after) == 0 && ::waitpid(pid, nullptr, WNOHANG) == 0;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return good ? seconds_of(after) - seconds_of(before) : -1;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int compare(const std::string& self, int pairs, int seconds) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return 1;
    const pid_t subject = ::fork();
    if (subject == 0) be_the_subject(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) return 1;

    constexpr int threads = 1 + sleeping_threads + running_threads;
    const double samples = static_cast<double>(threads) * seconds;
    const std::string count = std::to_string(seconds + 10); // more readings than are counted: both are ended from here
    std::printf("# one process of %d threads, %d of which run for some 50 us in each second\n", threads,
                running_threads);
    std::printf("# %d interleaved pairs: our reader, then `pidstat -u -w -t -p PID 1`, each a program of its own that "
                "writes to a\n"
                "# file; its CPU clock (user and system) over %d readings a second apart, start-up and first reading "
                "excluded;\n"
                "# CPU seconds per thread-sample = CPU time / (threads x readings); the figure is the median of the "
                "pairs' ratios\n",
                pairs, seconds);
    std::vector<double> ratios, ours_all, pidstat_all;
    bool good = true;
    for (int i = 0; good && i < pairs; ++i) {
        const std::string pid = std::to_string(subject);
        const double ours = cpu_seconds_of({self, "--read", pid, count}, seconds);
        const double theirs = cpu_seconds_of({"pidstat", "-u", "-w", "-t", "-p", pid, "1", count}, seconds);
        good = ours > 0 && theirs > 0;
        if (!good) break;
        std::printf("# pair %d: ours %.2f us, pidstat %.2f us per thread-sample\n", i + 1, ours / samples * 1e6,
                    theirs / samples * 1e6);
        std::fflush(stdout);
        ours_all.push_back(ours / samples);
        pidstat_all.push_back(theirs / samples);
        ratios.push_back(ours / theirs);
    }
    ::kill(subject, SIGKILL);
    ::waitpid(subject, nullptr, 0);
    if (!good) {
        std::fprintf(stderr, "a reader failed: is pidstat (sysstat) installed?\n");
        return 1;
    }
    std::printf("figure collect.cpu_per_thread_sample %.3g seconds\n", median(ours_all));
    std::printf("figure collect.pidstat_cpu_per_thread_sample %.3g seconds\n", median(pidstat_all));
    std::printf("figure collect.cpu_vs_pidstat %.4f ratio\n", median(ratios));
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() == 3 && args[0] == "--read")
        return be_the_reader(std::atoi(args[1].c_str()), std::atoi(args[2].c_str()));
    const int pairs = args.empty() ? 5 : std::max(1, std::atoi(args[0].c_str()));
    const int seconds = args.size() < 2 ? 10 : std::max(1, std::atoi(args[1].c_str()));
    return compare(argv[0], pairs, seconds);
}
