#include "agent/collectors/process_threads.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <set>
#include <sys/stat.h>

namespace perfrig {

Result<std::vector<pid_t>> list_numbers(int folder) {
    // opendir takes the descriptor over: give it one of its own. It starts at the front: "." opens the folder anew.
    const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) return fail_errno(errno, "list", "the threads of a process");
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(own), ::closedir);
    if (!dir) return fail_errno(errno, "list", "the threads of a process");
    std::vector<pid_t> out;
    while (const dirent* entry = ::readdir(dir.get())) {
        const char* name = entry->d_name;
        const char* end = name + std::strlen(name);
        pid_t id = 0;
        if (const auto r = std::from_chars(name, end, id); r.ec == std::errc{} && r.ptr == end) out.push_back(id);
    }
    return out;
}

std::unique_ptr<ProcessThreads> ProcessThreads::open(const FileTree& tree, pid_t pid, ProcessLabels labels,
                                                     SampleSink& errors) {
    const std::string path = tree.real_path("/proc/" + std::to_string(pid));
    UniqueFd process_folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    UniqueFd task_folder(process_folder ? ::openat(process_folder.get(), "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                        : -1);
    if (!task_folder) {
        if (errno != ENOENT && errno != ESRCH) errors.error(path + "/task: " + std::strerror(errno));
        return nullptr;
    }
    return std::unique_ptr<ProcessThreads>(
        new ProcessThreads(pid, std::move(process_folder), std::move(task_folder), std::move(labels)));
}

ProcessThreads::ProcessThreads(pid_t pid, UniqueFd process_folder, UniqueFd task_folder, ProcessLabels labels)
    : pid_(pid), process_folder_(std::move(process_folder)), task_folder_(std::move(task_folder)),
      labels_(std::move(labels)) {}

void ProcessThreads::read(ReadContext& context, std::size_t most_threads, SampleSink& sink) {
    keep_threads([&](ThreadFiles& thread) { return thread.read(task_folder_.get(), context, sink); }, sink);
    if (something_to_find()) find_threads(context, most_threads, sink);
}

void ProcessThreads::take_counts(std::span<const ThreadCounts> counts, ReadContext& context, SampleSink& sink) {
    const auto take = [&](ThreadFiles& thread) {
        if (!thread.wants_counts()) return true;
        const auto found = std::ranges::lower_bound(counts, thread.tid(), {}, &ThreadCounts::tid);
        if (found == counts.end()) return thread.read_without_counts(task_folder_.get(), context, sink);
        return thread.take_counts(*found, task_folder_.get(), context, sink);
    };
    keep_threads(take, sink);
}

bool ProcessThreads::emit(ReadContext& context, SampleSink& sink) {
    for (const auto& [tid, thread] : threads_) thread->emit(labels_, context, sink);
    if (read_totals(context, sink)) return true;
    end_series(sink);
    return false;
}

template <class StillThere> void ProcessThreads::keep_threads(StillThere still_there, SampleSink& sink) {
    for (auto it = threads_.begin(); it != threads_.end();) {
        if (still_there(*it->second)) {
            ++it;
            continue;
        }
        it->second->end_series(sink);
        it = threads_.erase(it);
        vanished_ = true;
    }
}

// Listing costs about 1 us a thread. If none vanished and there are as many as before, they are the same.
bool ProcessThreads::something_to_find() const {
    struct stat folder {};
    if (vanished_ || ::fstat(task_folder_.get(), &folder) != 0) return true;
    return folder.st_nlink != threads_.size() + left_out_ + 2; // proc_task_getattr() of Linux; elsewhere: always list
}

void ProcessThreads::find_threads(ReadContext& context, std::size_t most_threads, SampleSink& sink) {
    vanished_ = false;
    left_out_ = 0;
    const auto tids = list_numbers(task_folder_.get());
    if (!tids) return; // the process ended: read_totals says so
    const std::set<pid_t> listed(tids->begin(), tids->end());
    std::erase_if(threads_, [&](const auto& known) {
        const bool gone = !listed.contains(known.first);
        if (gone) known.second->end_series(sink);
        return gone;
    });
    for (const pid_t tid : listed) {
        if (threads_.contains(tid)) continue;
        if (threads_.size() >= most_threads) {
            ++left_out_;
            continue;
        }
        auto thread = std::make_unique<ThreadFiles>(tid);
        if (thread->read(task_folder_.get(), context, sink))
            threads_.emplace(tid, std::move(thread));
        else
            vanished_ = true; // ended since it was listed: look again next time
    }
}

bool ProcessThreads::read_totals(ReadContext& context, SampleSink& sink) {
    const std::string place = "process " + labels_.pid + ", ";
    const Reading stat_reading = stat_file_.read(process_folder_.get(), "stat", context.buffer, context.budget);
    if (stat_reading.vanished()) return false;
    const auto stat = stat_reading ? parse_stat(stat_reading.text) : Result<StatLine>(StatLine{});
    if (!stat_reading)
        sink.error(place + "stat: " + stat_reading.why());
    else if (!stat)
        sink.error(place + "stat: " + stat.error().text());
    if (ids_[cpu] == 0) register_series(sink);
    if (stat_reading && stat) {
        sink.add(ids_[cpu], static_cast<double>(stat->user_ticks + stat->system_ticks) / context.ticks_per_second);
        sink.add(ids_[waited_children], static_cast<double>(stat->children_user_ticks + stat->children_system_ticks) /
                                            context.ticks_per_second);
    }
    const Reading statm_reading = statm_file_.read(process_folder_.get(), "statm", context.buffer, context.budget);
    if (statm_reading.vanished()) return true; // it ended just now: the next tick finds out
    const auto pages = statm_reading ? parse_statm_resident_pages(statm_reading.text) : Result<std::uint64_t>(0);
    if (!statm_reading)
        sink.error(place + "statm: " + statm_reading.why());
    else if (!pages)
        sink.error(place + "statm: " + pages.error().text());
    else
        sink.add(ids_[rss], static_cast<double>(*pages) * context.page_bytes);
    return true;
}

void ProcessThreads::register_series(SampleSink& sink) {
    ids_[cpu] = sink.series("process_cpu_seconds", "s", SeriesKind::counter, labels_.map());
    ids_[waited_children] = sink.series("process_waited_children_cpu_seconds", "s", SeriesKind::counter, labels_.map());
    ids_[rss] = sink.series("process_rss_bytes", "B", SeriesKind::gauge, labels_.map());
}

void ProcessThreads::end_series(SampleSink& sink) {
    for (int& id : ids_)
        if (id != 0) sink.end(std::exchange(id, 0));
    for (const auto& [tid, thread] : threads_) thread->end_series(sink);
}

void ProcessThreads::forget_series() {
    ids_.fill(0);
    for (const auto& [tid, thread] : threads_) thread->forget_series();
}

} // namespace perfrig
