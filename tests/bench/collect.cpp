// What does one reading of one thread cost? Our thread collector against `pidstat -u -w -t -p PID 1` on the same
// process, interleaved, each in a process of its own whose CPU clock is read from outside, over a window that holds the
// same number of readings and no start-up of either. Both do all that they do in earnest: ours follows the process
// tree, finds new threads, asks for every thread's affinity, reads what changed, encodes the tick as it goes to the
// spool and writes it to a file; pidstat writes its text to a file. What reads taskstats for us is a process of its own
// and counts as ours.
//   bench_collect [PAIRS [SECONDS]]
#include "agent/collectors/threads.hpp"
#include "agent/helper/counts_reader.hpp"
#include "common/process/thread_counts_channel.hpp"
#include "common/protocol/sample_frame.hpp"
#include "common/protocol/spool_record.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
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

// `readings` ticks, one a second: what an agent does with them until they lie in its spool. With `use_taskstats` the
// pid of the process that reads it is written to the output.
int be_the_reader(pid_t subject, int readings, bool use_taskstats) {
    std::FILE* spool = std::tmpfile();
    if (spool == nullptr) return 1;
    std::optional<ThreadCountsClient> counts;
    if (use_taskstats) {
        auto reader = start_counts_reader(FileTree("/"), "nobody", {});
        if (!reader) {
            std::fprintf(stderr, "%s\n", reader.error().text().c_str());
            return 1;
        }
        std::printf("%d\n", static_cast<int>(reader->pid));
        std::fflush(stdout);
        counts.emplace(std::move(reader->agent));
    }
    ThreadCollector collector{FileTree("/"), 0, counts ? &*counts : nullptr};
    collector.watch({"subject", "app", subject, ""});
    SampleSink sink;
    auto next = std::chrono::steady_clock::now();
    for (int i = 0; i < readings; ++i, next += 1s) {
        std::this_thread::sleep_until(next);
        sink.begin(std::chrono::steady_clock::now().time_since_epoch().count());
        collector.tick(0, sink);
        const Tick tick = sink.take(0);
        if (collector.take_affinity_news().looks.empty()) return 1;
        if (!tick.findings.empty() || !tick.collector_errors.empty() ||
            collector.threads() != 1 + sleeping_threads + running_threads) {
            std::fprintf(stderr, "the collector read %zu threads; %s %s\n", collector.threads(),
                         tick.collector_errors.empty() ? "no errors" : tick.collector_errors[0].c_str(),
                         tick.findings.empty() ? "" : tick.findings[0].c_str());
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
// `with_helper`: the first line of its output names another process whose CPU time is its own too.
double cpu_seconds_of(const std::vector<std::string>& command, int seconds, bool with_helper) {
    std::FILE* output = std::tmpfile();
    if (output == nullptr) return -1;
    const auto start = std::chrono::steady_clock::now();
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::dup2(::fileno(output), 1) < 0) ::_exit(126);
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    std::this_thread::sleep_until(start + 1500ms);
    std::vector<pid_t> pids = {pid};
    std::array<char, 32> line{};
    if (with_helper && ::pread(::fileno(output), line.data(), line.size() - 1, 0) > 0)
        pids.push_back(std::atoi(line.data()));
    bool good = !with_helper || pids.back() > 1;
    const auto used = [&] { // by all of them together
        double sum = 0;
        for (const pid_t one : pids) {
            clockid_t clock{};
            timespec time{};
            good = good && ::clock_getcpuclockid(one, &clock) == 0 && ::clock_gettime(clock, &time) == 0;
            sum += seconds_of(time);
        }
        return sum;
    };
    const double before = used();
    std::this_thread::sleep_until(start + 1500ms + std::chrono::seconds(seconds));
    const double after = used();
    good = good && ::waitpid(pid, nullptr, WNOHANG) == 0;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    std::fclose(output);
    return good ? after - before : -1;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Way {
    const char* name;
    std::vector<std::string> command;
    bool with_helper;
    std::vector<double> costs; // CPU seconds per thread-sample, a round each
};

int compare(const std::string& self, int pairs, int seconds) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return 1;
    const pid_t subject = ::fork();
    if (subject == 0) be_the_subject(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) return 1;

    constexpr int threads = 1 + sleeping_threads + running_threads;
    const double samples = static_cast<double>(threads) * seconds;
    const std::string pid = std::to_string(subject);
    const std::string count = std::to_string(seconds + 10); // more readings than are counted: all are ended from here
    std::vector<Way> ways = {{"files", {self, "--read", pid, count}, false, {}},
                             {"pidstat", {"pidstat", "-u", "-w", "-t", "-p", pid, "1", count}, false, {}}};
    const auto taskstats = TaskStats::open();
    if (taskstats) ways.insert(ways.begin(), {"taskstats", {self, "--read-taskstats", pid, count}, true, {}});
    std::printf("# one process of %d threads, %d of which run for some 50 us in each second\n", threads,
                running_threads);
    std::printf(
        "# %d interleaved rounds: our reader with taskstats, ours with files alone, then\n"
        "# `pidstat -u -w -t -p PID 1`, each a program of its own that writes to a file; its CPU clock (user and\n"
        "# system, and that of the process that reads taskstats for us) over %d readings a second apart,\n"
        "# start-up and first reading excluded; CPU seconds per thread-sample = CPU time / (threads x readings);\n"
        "# a ratio is the median of the rounds' ratios\n",
        pairs, seconds);
    if (!taskstats) std::printf("# without taskstats: %s\n", taskstats.error().text().c_str());
    bool good = true;
    for (int i = 0; good && i < pairs; ++i) {
        std::printf("# round %d, us per thread-sample:", i + 1);
        for (Way& way : ways) {
            way.costs.push_back(cpu_seconds_of(way.command, seconds, way.with_helper) / samples);
            good = good && way.costs.back() > 0;
            std::printf(" %s %.2f", way.name, way.costs.back() * 1e6);
            std::fflush(stdout);
        }
        std::printf("\n");
    }
    ::kill(subject, SIGKILL);
    ::waitpid(subject, nullptr, 0);
    if (!good) {
        std::fprintf(stderr, "a reader failed: is pidstat (sysstat) installed?\n");
        return 1;
    }
    const auto ratio = [&](const Way& way) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < way.costs.size(); ++i) ratios.push_back(way.costs[i] / ways.back().costs[i]);
        return median(ratios);
    };
    for (const Way& way : ways)
        std::printf("figure collect.%s_cpu_per_thread_sample %.3g s\n", way.name, median(way.costs));
    const Way& files = ways[ways.size() - 2];
    if (taskstats) std::printf("figure collect.taskstats_cpu_vs_pidstat %.4f ratio\n", ratio(ways.front()));
    std::printf("figure collect.files_cpu_vs_pidstat %.4f ratio\n", ratio(files));
    std::printf("# what an agent here uses: %s\n", ways.front().name);
    std::printf("figure collect.cpu_vs_pidstat %.4f ratio\n", ratio(ways.front()));
    std::printf("limit collect.cpu_vs_pidstat at_most 0.2\n");
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() == 3 && args[0].starts_with("--read"))
        return be_the_reader(std::atoi(args[1].c_str()), std::atoi(args[2].c_str()), args[0] == "--read-taskstats");
    const int pairs = args.empty() ? 5 : std::max(1, std::atoi(args[0].c_str()));
    const int seconds = args.size() < 2 ? 10 : std::max(1, std::atoi(args[1].c_str()));
    return compare(argv[0], pairs, seconds);
}
