// The agent link: one WebSocket, JSON text frames for control, binary frames for spooled records.
//
// Text frames are objects {"type": NAME, ...}. The version is negotiated at hello. Messages that act on a machine carry
// the fencing token of its lease; the agent persists the highest token it has seen and refuses lower ones. What the
// agent measured is never fenced off: it travels as spool records keyed by (machine, epoch, stream, sequence), and
// storing one twice changes nothing. The whole flow is told in common/protocol/README.md.
#pragma once

#include "common/base/json.hpp"
#include "common/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace perfrig::protocol {

constexpr int version = 1; // of this link; hello names the range an agent speaks, welcome the one chosen

// One agent start's records that the spool still holds, oldest epoch first.
struct SpoolRange {
    std::int64_t epoch = 0;
    std::uint64_t first_seq = 0; // 0 and 0: nothing
    std::uint64_t last_seq = 0;
    std::string start_id; // of that start; empty: its spool doesn't say
};

// The last record of an epoch that PostgreSQL holds.
struct Cursor {
    std::int64_t epoch = 0;
    int stream = 0;
    std::uint64_t last_seq = 0;
};

// ---- agent -> controller --------------------------------------------------------------------------------------
struct Hello {
    int version_min = version, version_max = version;
    std::string machine; // must be the machine that the agent's token belongs to
    std::string agent_version;
    std::string boot_id;
    std::int64_t epoch = 0;
    std::string start_id; // 128 random bits of this start, in hex: tells two agents with one state directory apart
    std::int64_t open_block = 0; // 0: none
    std::int64_t open_run = 0;
    std::int64_t highest_token = 0;
    int open_changes = 0; // settings not yet restored
    Json profile = Json::object();
    Json labels = Json::object();
    Json environment = Json::object(); // {"facts": ..., "raw": ..., "fingerprint": ...}
    std::string metrics_url;
    std::vector<SpoolRange> spool;
};

struct BlockReady {
    std::int64_t block = 0, token = 0;
};
struct BlockRefused {
    std::int64_t block = 0, token = 0;
    std::string reason;
    bool unclean = false; // nothing can be measured on this machine: a process of an earlier run can't be ended
};
// All runs that the agent was given have ended and their records are in its spool.
struct BlockWorked {
    std::int64_t block = 0, token = 0;
};
struct BlockReleased {
    std::int64_t block = 0, token = 0;
};

// NTP's four timestamps, in UTC nanoseconds: the agent sends t1; the reply adds t2 (received) and t3 (sent); the agent
// takes t4 and reports offset and error (half the round trip) in its next heartbeat.
struct Heartbeat {
    std::int64_t t1_utc_ns = 0;
    std::int64_t monotonic_ns = 0;
    std::int64_t block = 0, token = 0; // the lease it renews; 0: none
    std::optional<std::int64_t> offset_ns, offset_error_ns;
    std::string doing; // for people: "measuring run 12, 14 s left"
};

// ---- controller -> agent --------------------------------------------------------------------------------------
struct Welcome {
    int version = protocol::version;
    std::string session;
    std::vector<Cursor> cursors;
    std::int64_t heartbeat_every_ms = 2'000;
    std::int64_t lease_ms = 15'000;
    std::vector<std::string> scrape_token_hashes; // who may read the agent's /metrics
    std::int64_t keep_block = 0;                  // the open block that is still the agent's; 0: give up any it has
};

struct AssignedRun {
    std::int64_t run = 0;
    int attempt = 1;
    Json resolved; // ResolvedRun as JSON: parsed by the agent, so that a bad one refuses this run alone
};

struct PrepareBlock {
    std::int64_t block = 0, token = 0;
    std::vector<AssignedRun> runs; // in order
};
// One more run for a block in hand: a retry, worked next.
struct AssignRun {
    std::int64_t block = 0, token = 0;
    AssignedRun run;
};
struct CancelRun {
    std::int64_t block = 0, token = 0;
    std::int64_t run = 0; // 0: every run of the block
    std::string reason;
};
struct EndBlock {
    std::int64_t block = 0, token = 0;
};
struct Ack {
    Cursor cursor;
};
struct HeartbeatReply {
    std::int64_t t1_utc_ns = 0, t2_utc_ns = 0, t3_utc_ns = 0;
};
// The controller refuses the last message or, if `fatal`, the link, which it then closes; the agent logs why.
// `lasting`: the same will be refused again until a person has acted, so there is no hurry to ask.
struct Refusal {
    std::string reason;
    bool fatal = false;
    bool lasting = false;
};

using FromAgent = std::variant<Hello, BlockReady, BlockRefused, BlockWorked, BlockReleased, Heartbeat>;
using FromController =
    std::variant<Welcome, PrepareBlock, AssignRun, CancelRun, EndBlock, Ack, HeartbeatReply, Refusal>;

// Decoding is strict: an unknown type, an unknown or missing member, a wrong type, a value out of bounds or a message
// above 64 MiB is bad_input that names the place ("hello.spool[0].epoch must be ...").
std::string encode(const FromAgent& message);
std::string encode(const FromController& message);
Result<FromAgent> decode_from_agent(std::string_view text);
Result<FromController> decode_from_controller(std::string_view text);

} // namespace perfrig::protocol
