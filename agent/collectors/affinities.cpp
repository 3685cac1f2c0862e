#include "agent/collectors/process_threads.hpp"
#include "agent/collectors/threads.hpp"

#include <charconv>
#include <fcntl.h>

namespace perfrig {

namespace {

// Nothing where the thread is gone.
Result<void> add_thread(const FileTree& tree, pid_t pid, pid_t tid, std::vector<ThreadAffinity>& out) {
    const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/status";
    const auto text = tree.read(path);
    if (!text) {
        if (!tree.exists(path)) return {};
        return text.error();
    }
    auto status = parse_status(*text);
    if (!status) {
        Error e = std::move(status).error();
        e.on = tree.real_path(path) + " " + e.on;
        return e;
    }
    ThreadAffinity a;
    a.pid = pid;
    a.tid = tid;
    a.comm = unescaped_name(status->name);
    PERFRIG_TRY(a.cpus, CpuList::parse(status->cpus_allowed));
    PERFRIG_TRY(a.nodes, CpuList::parse(status->mems_allowed));
    out.push_back(std::move(a));
    return {};
}

} // namespace

Result<std::vector<ThreadAffinity>> read_affinities(const FileTree& tree, const std::vector<pid_t>& pids) {
    std::vector<ThreadAffinity> out;
    for (const pid_t pid : pids) {
        const std::string folder = "/proc/" + std::to_string(pid) + "/task";
        const auto tids = tree.list(folder);
        if (!tids && !tree.exists(folder)) continue; // ended
        if (!tids) return tids.error();
        for (const std::string& name : *tids) {
            pid_t tid = 0;
            const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tid);
            if (error != std::errc{} || end != name.data() + name.size()) continue;
            PERFRIG_CHECK(add_thread(tree, pid, tid, out));
        }
    }
    return out;
}

} // namespace perfrig
