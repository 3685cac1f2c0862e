#include "agent/collectors/threads.hpp"

#include "agent/collectors/process_table.hpp"
#include "agent/collectors/process_threads.hpp"

#include <algorithm>
#include <map>
#include <unistd.h>

namespace perfrig {

namespace {

struct Watched {
    WatchedProcess what;
    bool seen = false;      // a process of it was opened at least once
    bool root_gone = false; // the root ended: its number may be another's
    std::map<pid_t, std::unique_ptr<ProcessThreads>> processes;
};

} // namespace

struct ThreadCollector::State {
    State(FileTree t, std::size_t files, ThreadCountsClient* counts)
        : tree(std::move(t)), living(tree.real_path("/") == "/"), table(tree),
          context{.budget = OpenFileBudget(files != 0 ? files : OpenFileBudget::of_this_process()),
                  .ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK)),
                  .page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE)),
                  .ask_affinity = living,
                  .counts = counts} {}

    std::set<pid_t> members(Watched& w, SampleSink& sink);
    void follow(Watched& w, SampleSink& sink);
    void read(Watched& w, SampleSink& sink);
    void take_counts(SampleSink& sink);
    void emit(Watched& w, SampleSink& sink);

    FileTree tree;
    const bool living; // a recorded tree has no threads to ask the kernel about
    ProcessTable table;
    ReadContext context;
    std::map<std::string, Watched> watched;
    std::vector<Watched> unwatched; // series to be ended with the next tick
    std::size_t threads = 0;
};

ThreadCollector::ThreadCollector(FileTree tree, std::size_t most_open_files, ThreadCountsClient* counts)
    : state_(std::make_unique<State>(std::move(tree), most_open_files, counts)) {}
ThreadCollector::~ThreadCollector() = default;

std::set<pid_t> ThreadCollector::State::members(Watched& w, SampleSink& sink) {
    if (!w.what.cgroup.empty()) return cgroup_processes(tree, w.what.cgroup, sink);
    std::set<pid_t> known;
    for (const auto& [pid, process] : w.processes) known.insert(pid);
    if (!w.root_gone) known.insert(w.what.root);
    return table.family(w.root_gone ? 0 : w.what.root, std::move(known));
}

void ThreadCollector::State::follow(Watched& w, SampleSink& sink) {
    for (const pid_t pid : members(w, sink)) {
        if (pid <= 0 || w.processes.contains(pid)) continue;
        auto process = ProcessThreads::open(tree, pid, {w.what.process, w.what.role, std::to_string(pid), pid}, sink);
        if (process) {
            w.processes.emplace(pid, std::move(process));
            w.seen = true;
        } else {
            table.forget(pid);
            if (pid == w.what.root) w.root_gone = true;
        }
    }
    if (!w.seen) sink.finding("no process of '" + w.what.process + "' lived when its threads were first read");
}

void ThreadCollector::State::read(Watched& w, SampleSink& sink) {
    follow(w, sink);
    for (const auto& [pid, process] : w.processes) {
        process->read(context, most_threads - std::min(most_threads, threads), sink);
        threads += process->threads();
        if (context.ask_affinity) context.affinities.looks[w.what.process] += process->threads();
        if (process->threads_left_out() > 0)
            sink.finding("more than " + std::to_string(most_threads) + " threads: those beyond were not read");
    }
}

// What one process wants to know is asked for together with what the others do: a question costs two switches.
void ThreadCollector::State::take_counts(SampleSink& sink) {
    std::span<const ThreadCounts> counts;
    if (context.counts != nullptr && !context.counts_wanted.empty()) {
        std::ranges::sort(context.counts_wanted);
        const auto read = context.counts->read(context.counts_wanted);
        if (read) {
            counts = *read;
        } else {
            context.counts = nullptr;
            sink.finding("thread_source is proc from here on: " + read.error().text());
        }
        context.counts_wanted.clear();
        for (auto& [name, w] : watched)
            for (const auto& [pid, process] : w.processes) process->take_counts(counts, context, sink);
    }
}

void ThreadCollector::State::emit(Watched& w, SampleSink& sink) {
    for (auto it = w.processes.begin(); it != w.processes.end();) {
        ProcessThreads& process = *it->second;
        const std::size_t before = process.threads();
        if (process.emit(context, sink)) {
            ++it;
            continue;
        }
        threads -= before;
        table.forget(it->first);
        if (it->first == w.what.root) w.root_gone = true;
        it = w.processes.erase(it);
    }
}

void ThreadCollector::tick(std::int64_t, SampleSink& sink) {
    for (const Watched& w : state_->unwatched)
        for (const auto& [pid, process] : w.processes) process->end_series(sink);
    state_->unwatched.clear();
    state_->threads = 0;
    bool any_root = false;
    for (const auto& [name, w] : state_->watched) any_root |= w.what.cgroup.empty();
    if (any_root) state_->table.refresh(sink);
    for (auto& [name, w] : state_->watched) state_->read(w, sink);
    state_->take_counts(sink);
    for (auto& [name, w] : state_->watched) state_->emit(w, sink);
    if (state_->living && !state_->context.ask_affinity)
        sink.finding("the kernel doesn't let threads' affinities be asked for here: they, and switches, are read from "
                     "status where a thread ran");
    if (!state_->context.has_schedstat)
        sink.finding("this kernel keeps no schedstat per thread: thread_cpu_seconds and thread_run_queue_wait_seconds "
                     "are absent");
}

void ThreadCollector::watch(WatchedProcess process) {
    unwatch(process.process);
    const std::string name = process.process;
    state_->watched[name].what = std::move(process);
}

void ThreadCollector::unwatch(const std::string& process) {
    const auto found = state_->watched.find(process);
    if (found == state_->watched.end()) return;
    state_->unwatched.push_back(std::move(found->second));
    state_->watched.erase(found);
}

AffinityNews ThreadCollector::take_affinity_news() { return std::exchange(state_->context.affinities, {}); }

std::size_t ThreadCollector::threads() const { return state_->threads; }

void ThreadCollector::forget_series() {
    state_->unwatched.clear();
    for (const auto& [name, w] : state_->watched)
        for (const auto& [pid, process] : w.processes) process->forget_series();
}

} // namespace perfrig
