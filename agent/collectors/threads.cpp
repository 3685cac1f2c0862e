#include "agent/collectors/threads.hpp"

#include "agent/collectors/process_table.hpp"
#include "agent/collectors/process_threads.hpp"

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
    State(FileTree t, std::size_t files)
        : tree(std::move(t)), table(tree),
          context{.budget = OpenFileBudget(files != 0 ? files : OpenFileBudget::of_this_process()),
                  .ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK)),
                  .page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE))} {}

    std::set<pid_t> members(Watched& w, SampleSink& sink);
    void follow(Watched& w, SampleSink& sink);
    void tick(Watched& w, SampleSink& sink);

    FileTree tree;
    ProcessTable table;
    ReadContext context;
    std::map<std::string, Watched> watched;
    std::vector<Watched> unwatched; // series to be ended with the next tick
    std::size_t threads = 0;
};

ThreadCollector::ThreadCollector(FileTree tree, std::size_t most_open_files)
    : state_(std::make_unique<State>(std::move(tree), most_open_files)) {}
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
        auto process = ProcessThreads::open(tree, pid, {w.what.process, w.what.role, std::to_string(pid)}, sink);
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

void ThreadCollector::State::tick(Watched& w, SampleSink& sink) {
    follow(w, sink);
    for (auto it = w.processes.begin(); it != w.processes.end();) {
        ProcessThreads& process = *it->second;
        const std::size_t others = threads;
        const bool alive = process.tick(context, most_threads - std::min(most_threads, others), sink);
        if (process.threads_left_out() > 0)
            sink.finding("more than " + std::to_string(most_threads) + " threads: those beyond were not read");
        if (alive) {
            threads += process.threads();
            ++it;
            continue;
        }
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
    for (auto& [name, w] : state_->watched) state_->tick(w, sink);
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

std::vector<ThreadAffinity> ThreadCollector::affinities() const {
    std::vector<ThreadAffinity> out;
    for (const auto& [name, w] : state_->watched)
        for (const auto& [pid, process] : w.processes)
            process->each_thread([&, id = pid](const ThreadFiles& t) {
                out.push_back({w.what.process, w.what.role, id, t.tid(), t.comm(), t.cpus(), t.nodes()});
            });
    return out;
}

std::size_t ThreadCollector::threads() const { return state_->threads; }

void ThreadCollector::forget_series() {
    state_->unwatched.clear();
    for (const auto& [name, w] : state_->watched)
        for (const auto& [pid, process] : w.processes) process->forget_series();
}

} // namespace perfrig
