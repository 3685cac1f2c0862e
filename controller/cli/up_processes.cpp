#include "controller/cli/up_processes.hpp"

#include "common/base/file_tree.hpp"
#include "common/base/json.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace perfrig::cli {

Result<UpProcess> identify(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/stat";
    PERFRIG_TRY(const std::string text, FileTree().read(path));
    const auto name_end = text.rfind(')'); // names may hold blanks and parentheses
    const auto broken = [&] { return fail(ErrorKind::internal, "read", path, "it is not in the format of proc(5)"); };
    if (name_end == std::string::npos) return broken();
    std::istringstream rest(text.substr(name_end + 1));
    std::string state, field;
    rest >> state;
    for (int number = 4; number < 22; ++number) rest >> field;
    UpProcess process{pid, 0};
    if (!(rest >> process.start_ticks)) return broken();
    if (state == "Z" || state == "X")
        return fail(ErrorKind::not_found, "find process", std::to_string(pid), "it has ended");
    return process;
}

bool alive(const UpProcess& process) {
    const auto now = identify(process.pid);
    return now && now->start_ticks == process.start_ticks;
}

Result<void> end_process(const UpProcess& process, Milliseconds grace) {
    const auto gone_within = [&](Milliseconds time) {
        for (const Deadline deadline = Deadline::in(time); alive(process);
             std::this_thread::sleep_for(Milliseconds(20)))
            if (deadline.passed()) return false;
        return true;
    };
    if (!alive(process)) return {};
    if (::kill(process.pid, SIGTERM) != 0 && errno != ESRCH)
        return fail_errno(errno, "end process", std::to_string(process.pid), "call as the user who called up");
    if (gone_within(grace)) return {};
    ::kill(process.pid, SIGKILL);
    if (gone_within(Milliseconds(5'000))) return {};
    return fail(ErrorKind::timed_out, "end process", std::to_string(process.pid), "it lives on after SIGKILL");
}

Result<UniqueFd> lock_folder(const std::string& folder) {
    const std::string path = folder + "/up.lock";
    UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock) return fail_errno(errno, "open the lock", path);
    for (const Deadline deadline = Deadline::in(Milliseconds(120'000)); ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
         std::this_thread::sleep_for(Milliseconds(50)))
        if (errno != EWOULDBLOCK || deadline.passed())
            return fail(ErrorKind::unavailable, "lock", path, "another perfrig up or down is at work there");
    return lock;
}

Result<std::map<std::string, UpProcess>> read_up_file(const std::string& path) {
    std::map<std::string, UpProcess> out;
    if (::access(path.c_str(), F_OK) != 0) return out;
    PERFRIG_TRY(const std::string text, read_file(path));
    PERFRIG_TRY(const Json json, parse_json(text, path));
    if (!json.is_object()) return fail(ErrorKind::bad_input, "read", path, "it is not an object", "remove it");
    for (const auto& [name, entry] : json.items()) {
        JsonReader in(entry, path);
        out[name] = {static_cast<pid_t>(in.integer("pid")), in.unsigned_integer("start_ticks")};
        PERFRIG_CHECK(in.finish());
    }
    return out;
}

Result<void> write_up_file(const std::string& path, const std::map<std::string, UpProcess>& processes) {
    Json json = Json::object();
    for (const auto& [name, process] : processes)
        json[name] = {{"pid", process.pid}, {"start_ticks", process.start_ticks}};
    return write_file_atomically(path, json.dump(2) + "\n", 0644);
}

} // namespace perfrig::cli
