#include "agent/collectors/thread_files.hpp"

#include <algorithm>
#include <cerrno>

namespace perfrig {

ThreadFiles::ThreadFiles(pid_t tid)
    : tid_(tid), schedstat_name_(std::to_string(tid) + "/schedstat"), stat_name_(std::to_string(tid) + "/stat"),
      status_name_(std::to_string(tid) + "/status") {}

bool ThreadFiles::read(int task_folder, ReadContext& context, SampleSink& sink) {
    // The order matters: what runs between this and the two reads below changes schedstat again, and is read next time.
    wants_counts_ = false;
    const bool moved = affinity_moved(context); // others may change it while the thread sleeps
    const bool counted = context.counts != nullptr && context.ask_affinity;
    if (!counted || !counts_first_ || !complete_) {
        const Step step = read_schedstat(task_folder, context, sink);
        if (step == Step::gone) return false;
        const bool ran = step == Step::changed || !complete_;
        if (!ran && !moved) return true;
        if (ran && !read_stat_where_due(task_folder, context, sink)) return false;
    }
    if ((!counted || moved || !status_read_) && !read_status(task_folder, context, sink)) return false;
    wants_counts_ = counted;
    if (counted) context.counts_wanted.push_back(tid_);
    return true;
}

bool ThreadFiles::read_stat_where_due(int task_folder, ReadContext& context, SampleSink& sink) {
    if (stat_can_wait(context)) {
        ++ticks_since_stat_;
        return true;
    }
    complete_ = false;
    if (!read_stat(task_folder, context, sink)) return false;
    stat_read_at_ns_ = sched_ ? sched_->cpu_ns : 0;
    ticks_since_stat_ = 0;
    if (sched_ && *sched_ == SchedStat{} && user_ticks_ + system_ticks_ > 0)
        context.has_schedstat = false; // switched off: all zero
    return true;
}

// The number may be another thread's by now if this one ended since its schedstat was read. Therefore status, which is
// bound to the thread, is read next wherever the mask isn't what it was: a mask counts only if its thread still lives.
bool ThreadFiles::affinity_moved(ReadContext& context) {
    if (!context.ask_affinity) return false;
    AffinityMask& now = context.mask;
    if (const int error = read_affinity_mask(tid_, now); error != 0) {
        if (error != ESRCH) context.ask_affinity = false; // forbidden here: status tells it, where the thread ran
        return false;
    }
    const auto same = [&] {
        return mask_ && mask_->used == now.used &&
               std::equal(now.words.begin(), now.words.begin() + static_cast<std::ptrdiff_t>(now.used),
                          mask_->words.begin());
    };
    if (same()) return false;
    mask_ = now;
    return affinity_is_news_ = true;
}

bool ThreadFiles::read_without_counts(int task_folder, ReadContext& context, SampleSink& sink) {
    complete_ = false; // everything anew
    return read(task_folder, context, sink);
}

bool ThreadFiles::take_counts(const ThreadCounts& counts, int task_folder, ReadContext& context, SampleSink& sink) {
    wants_counts_ = false;
    if (counts.alive == 0 || counts.age_us < age_us_) return false;
    age_us_ = counts.age_us;
    voluntary_ = counts.voluntary;
    involuntary_ = counts.involuntary;
    if (comm_ != counts.name()) {
        comm_ = counts.name();
        name_text_.clear(); // status may yet say the older name again
    }
    if (counts.timeslices == 0 || !sched_) return true; // not known: schedstat is read at every tick
    const SchedStat now{counts.cpu_ns, counts.run_queue_wait_ns, counts.timeslices};
    if (!std::exchange(counts_first_, true)) return true; // schedstat was read in this tick, and said that it ran
    counts_first_ = *sched_ != now;
    sched_ = now;
    return !counts_first_ || read_stat_where_due(task_folder, context, sink);
}

// stat counts in clock ticks (10 ms): until one has been used up there is hardly anything new to read in it.
bool ThreadFiles::stat_can_wait(const ReadContext& context) const {
    if (!complete_ || !sched_ || ticks_since_stat_ >= most_ticks_late) return false;
    return static_cast<double>(sched_->cpu_ns - stat_read_at_ns_) < 1e9 / context.ticks_per_second;
}

ThreadFiles::Step ThreadFiles::read_schedstat(int task_folder, ReadContext& context, SampleSink& sink) {
    if (!context.has_schedstat) {
        sched_.reset();
        return Step::changed;
    }
    const Reading reading = schedstat_file_.read(task_folder, schedstat_name_.c_str(), context.buffer, context.budget);
    if (reading.vanished()) { // the thread, or the file on a kernel without it?
        if (sched_ || !stat_file_.read(task_folder, stat_name_.c_str(), context.buffer, context.budget))
            return Step::gone;
        context.has_schedstat = false;
        return Step::changed;
    }
    if (!reading) {
        sink.error(place("schedstat") + reading.why());
        return Step::changed;
    }
    const auto now = parse_schedstat(reading.text);
    if (!now) {
        sink.error(place("schedstat") + now.error().text());
        return Step::changed;
    }
    if (sched_ == *now) return Step::unchanged;
    sched_ = *now;
    return Step::changed;
}

bool ThreadFiles::read_stat(int task_folder, ReadContext& context, SampleSink& sink) {
    const Reading reading = stat_file_.read(task_folder, stat_name_.c_str(), context.buffer, context.budget);
    if (reading.vanished()) return false;
    if (!reading) {
        sink.error(place("stat") + reading.why());
        return true;
    }
    const auto stat = parse_stat(reading.text);
    if (!stat) {
        sink.error(place("stat") + stat.error().text());
        return true;
    }
    user_ticks_ = stat->user_ticks;
    system_ticks_ = stat->system_ticks;
    complete_ = true; // so far; status decides
    return true;
}

bool ThreadFiles::read_status(int task_folder, ReadContext& context, SampleSink& sink) {
    const bool stat_good = std::exchange(complete_, false);
    const Reading reading = status_file_.read(task_folder, status_name_.c_str(), context.buffer, context.budget);
    if (reading.vanished()) return false;
    if (!reading) {
        sink.error(place("status") + reading.why());
        return true;
    }
    const auto status = parse_status(reading.text);
    if (!status) {
        sink.error(place("status") + status.error().text());
        return true;
    }
    if (status->name != name_text_) {
        name_text_ = status->name;
        comm_ = unescaped_name(name_text_);
    }
    voluntary_ = status->voluntary_switches;
    involuntary_ = status->involuntary_switches;
    take_list(status->cpus_allowed, cpus_text_, cpus_, sink);
    take_list(status->mems_allowed, nodes_text_, nodes_, sink);
    complete_ = stat_good;
    status_read_ = true;
    return true;
}

void ThreadFiles::take_list(std::string_view text, std::string& last_text, CpuList& list, SampleSink& sink) {
    if (text == last_text) return; // nearly always: parsing is for changes
    last_text = text;
    affinity_is_news_ = true;
    auto parsed = CpuList::parse(text);
    if (parsed)
        list = *std::move(parsed);
    else
        sink.error(place("status") + parsed.error().text());
}

void ThreadFiles::tell_affinity(const ProcessLabels& labels, AffinityNews& news) {
    affinity_is_news_ = false;
    const auto tell = [&](const CpuList& cpus) {
        news.add({labels.process, labels.role, labels.pid_number, tid_, comm_, cpus, nodes_});
    };
    if (status_read_) tell(cpus_);
    if (!mask_) return;
    // Of CPUs that aren't active the mask says nothing. More than status: it was changed back between the two.
    if (const CpuList asked = mask_->list(); !cpus_.contains_all(asked)) tell(asked);
}

void ThreadFiles::emit(const ProcessLabels& labels, ReadContext& context, SampleSink& sink) {
    if (affinity_is_news_) tell_affinity(labels, context.affinities);
    if (!complete_) return; // an error was reported instead
    if (ids_[user] != 0 && registered_comm_ != comm_) {
        add_values(context, sink); // the old name's last value is the new one's first: no interval is lost
        end_series(sink);
    }
    if (ids_[user] == 0) register_series(labels, context.has_schedstat && sched_, sink);
    add_values(context, sink);
}

void ThreadFiles::register_series(const ProcessLabels& labels, bool has_schedstat, SampleSink& sink) {
    registered_comm_ = comm_;
    auto all = labels.map();
    all["tid"] = std::to_string(tid_);
    all["comm"] = comm_;
    const auto counter = [&](const char* name, const char* unit) {
        return sink.series(name, unit, SeriesKind::counter, all);
    };
    ids_[user] = counter("thread_cpu_user_seconds", "s");
    ids_[system] = counter("thread_cpu_system_seconds", "s");
    if (has_schedstat) {
        ids_[cpu] = counter("thread_cpu_seconds", "s");
        ids_[wait] = counter("thread_run_queue_wait_seconds", "s");
    }
    ids_[voluntary] = counter("thread_voluntary_switches", "count");
    ids_[involuntary] = counter("thread_involuntary_switches", "count");
}

void ThreadFiles::add_values(const ReadContext& context, SampleSink& sink) {
    sink.add(ids_[user], static_cast<double>(user_ticks_) / context.ticks_per_second);
    sink.add(ids_[system], static_cast<double>(system_ticks_) / context.ticks_per_second);
    if (ids_[cpu] != 0 && sched_) {
        sink.add(ids_[cpu], static_cast<double>(sched_->cpu_ns) / 1e9);
        sink.add(ids_[wait], static_cast<double>(sched_->run_queue_wait_ns) / 1e9);
    }
    sink.add(ids_[voluntary], static_cast<double>(voluntary_));
    sink.add(ids_[involuntary], static_cast<double>(involuntary_));
}

void ThreadFiles::end_series(SampleSink& sink) {
    for (int& id : ids_)
        if (id != 0) sink.end(std::exchange(id, 0));
}

} // namespace perfrig
