// The closed lists of verbs, decoded and checked: what gets past here is well-formed, whoever sent it.
#pragma once

#include "agent/helper/messages.hpp"

#include <variant>

namespace perfrig {

struct BeginRun {
    RunName run;
    std::int64_t most_processes = 0; // 0: no limit
};
struct EndRun {
    std::int64_t run_id = 0;
    bool remove_directory = false;
};
struct Sweep {
    bool remove_directories = false;
};
struct WriteFile { // its content comes as a sealed-size memory file
    RunName run;
    std::string path; // relative, without ".."
    int mode = 0644;
};
struct OpenFile {
    RunName run;
    std::string path;
};
struct OpenCounts {
    CpuList cpus; // where its reader keeps to; empty: anywhere
};
struct AskFacts {};
using HelperVerb = std::variant<BeginRun, EndRun, Sweep, WriteFile, OpenFile, OpenCounts, AskFacts>;

struct SignalProcess {
    pid_t pid = -1;
    int signal = 0;
};
struct EndThisRun {};
using GuardianVerb =
    std::variant<SpawnOrder, SignalProcess, EndThisRun>; // of the order's fds: -1 or 0, 1, 2 (n-th sent)

template <class Verb> struct Request {
    std::int64_t id = 0; // the reply repeats it
    Verb verb;
};

// `fds`: how many descriptors came with the message. Each verb takes an exact number of them.
Result<Request<HelperVerb>> decode_helper_request(std::string_view text, std::size_t fds);
Result<Request<GuardianVerb>> decode_guardian_request(std::string_view text, std::size_t fds);
// The id of a request that is otherwise refused, so that its sender recognises the answer; 0 where none can be read.
std::int64_t request_id(std::string_view text);

Message encode(const HelperVerb& verb);
Message encode(const GuardianVerb& verb);

// Replies and events.
Message encode(const Error& error);
Error decode_error(const Message& message);
Message encode(const Spawned& spawned);
Result<Spawned> decode_spawned(const Message& message);
Message encode(const ProcessExited& exited);
Result<ProcessExited> decode_exited(const Message& message);
Message encode(const RunEnded& ended);
Result<RunEnded> decode_ended(const Message& message);
Message encode(const SweepReport& report);
Result<SweepReport> decode_swept(const Message& message);
Message encode(const HelperFacts& facts);
Result<HelperFacts> decode_facts(const Message& message);
Message encode(const RunLost& lost);
Result<RunLost> decode_lost(const Message& message);

// A path within a run's directory, as its parts; bad_input for absolute ones, "..", empty parts and zero bytes.
Result<std::vector<std::string>> split_path(std::string_view path);

// {"id":..,"ok":..} and {"id":..,"error":..} as text; bytes that aren't UTF-8 are replaced.
std::string reply_text(std::int64_t id, const Message& result);
std::string error_text(std::int64_t id, const Error& error);
// A request as text; bad_input where a string isn't UTF-8.
Result<std::string> request_text(std::int64_t id, Message request);

} // namespace perfrig
