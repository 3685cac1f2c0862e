#include "common/protocol/messages.hpp"

#include "common/protocol/fields.hpp"

namespace perfrig::protocol {

namespace {

constexpr std::size_t most_message_bytes = 64 << 20; // a block of thousands of resolved runs with their files
constexpr std::size_t most_runs = 100'000;           // of one block
constexpr std::size_t most_epochs = 10'000;          // in one spool

} // namespace

// Found by argument-dependent lookup from Reader and Writer, so not in the unnamed namespace.
template <class IO> static void members(IO& io, Of<IO, SpoolRange>& r) {
    io.integer("epoch", r.epoch, 1);
    io.integer("first_seq", r.first_seq);
    io.integer("last_seq", r.last_seq);
    io.name("start_id", r.start_id);
}
template <class IO> static void members(IO& io, Of<IO, Cursor>& c) {
    io.integer("epoch", c.epoch, 1);
    io.integer("stream", c.stream, 0, 255);
    io.integer("last_seq", c.last_seq);
}
template <class IO> static void members(IO& io, Of<IO, Hello>& m) {
    io.integer("version_min", m.version_min, 1, 1'000);
    io.integer("version_max", m.version_max, 1, 1'000);
    io.name("machine", m.machine);
    io.name("agent_version", m.agent_version);
    io.name("boot_id", m.boot_id);
    io.integer("epoch", m.epoch, 1);
    io.name("start_id", m.start_id);
    io.integer("open_block", m.open_block);
    io.integer("open_run", m.open_run);
    io.integer("highest_token", m.highest_token);
    io.integer("open_changes", m.open_changes);
    io.object("profile", m.profile);
    io.object("labels", m.labels);
    io.object("environment", m.environment);
    io.name("metrics_url", m.metrics_url);
    io.list("spool", m.spool, most_epochs);
}
template <class IO, class M> static void block_and_token(IO& io, M& m) {
    io.integer("block", m.block, 1);
    io.integer("token", m.token, 1);
}
template <class IO> static void members(IO& io, Of<IO, BlockReady>& m) { block_and_token(io, m); }
template <class IO> static void members(IO& io, Of<IO, BlockRefused>& m) {
    block_and_token(io, m);
    io.text("reason", m.reason);
    io.boolean("unclean", m.unclean);
}
template <class IO> static void members(IO& io, Of<IO, BlockWorked>& m) { block_and_token(io, m); }
template <class IO> static void members(IO& io, Of<IO, BlockReleased>& m) { block_and_token(io, m); }
template <class IO> static void members(IO& io, Of<IO, Heartbeat>& m) {
    io.integer("t1_utc_ns", m.t1_utc_ns);
    io.integer("monotonic_ns", m.monotonic_ns);
    io.integer("block", m.block);
    io.integer("token", m.token);
    io.optional_integer("offset_ns", m.offset_ns);
    io.optional_integer("offset_error_ns", m.offset_error_ns);
    io.text("doing", m.doing);
}
template <class IO> static void members(IO& io, Of<IO, Welcome>& m) {
    io.integer("version", m.version, 1, 1'000);
    io.name("session", m.session);
    io.list("cursors", m.cursors, most_epochs);
    io.integer("heartbeat_every_ms", m.heartbeat_every_ms, 10, 3'600'000);
    io.integer("lease_ms", m.lease_ms, 10, 86'400'000);
    io.text_list("scrape_token_hashes", m.scrape_token_hashes);
    io.integer("keep_block", m.keep_block);
}
template <class IO> static void members(IO& io, Of<IO, AssignedRun>& r) {
    io.integer("run", r.run, 1);
    io.integer("attempt", r.attempt, 1, 1'000'000);
    io.anything("resolved", r.resolved);
}
template <class IO> static void members(IO& io, Of<IO, PrepareBlock>& m) {
    block_and_token(io, m);
    io.list("runs", m.runs, most_runs);
}
template <class IO> static void members(IO& io, Of<IO, AssignRun>& m) {
    block_and_token(io, m);
    io.part("run", m.run);
}
template <class IO> static void members(IO& io, Of<IO, CancelRun>& m) {
    block_and_token(io, m);
    io.integer("run", m.run);
    io.text("reason", m.reason);
}
template <class IO> static void members(IO& io, Of<IO, EndBlock>& m) { block_and_token(io, m); }
template <class IO> static void members(IO& io, Of<IO, Ack>& m) { io.part("cursor", m.cursor); }
template <class IO> static void members(IO& io, Of<IO, HeartbeatReply>& m) {
    io.integer("t1_utc_ns", m.t1_utc_ns);
    io.integer("t2_utc_ns", m.t2_utc_ns);
    io.integer("t3_utc_ns", m.t3_utc_ns);
}
template <class IO> static void members(IO& io, Of<IO, Refusal>& m) {
    io.text("reason", m.reason);
    io.boolean("fatal", m.fatal);
    io.boolean("lasting", m.lasting);
}

namespace {

template <class M> constexpr const char* type_name = nullptr;
template <> constexpr const char* type_name<Hello> = "hello";
template <> constexpr const char* type_name<BlockReady> = "block_ready";
template <> constexpr const char* type_name<BlockRefused> = "block_refused";
template <> constexpr const char* type_name<BlockWorked> = "block_worked";
template <> constexpr const char* type_name<BlockReleased> = "block_released";
template <> constexpr const char* type_name<Heartbeat> = "heartbeat";
template <> constexpr const char* type_name<Welcome> = "welcome";
template <> constexpr const char* type_name<PrepareBlock> = "prepare_block";
template <> constexpr const char* type_name<AssignRun> = "assign_run";
template <> constexpr const char* type_name<CancelRun> = "cancel_run";
template <> constexpr const char* type_name<EndBlock> = "end_block";
template <> constexpr const char* type_name<Ack> = "ack";
template <> constexpr const char* type_name<HeartbeatReply> = "heartbeat_reply";
template <> constexpr const char* type_name<Refusal> = "refusal";

template <class Variant> std::string encode_any(const Variant& message) {
    return std::visit(
        [](const auto& m) {
            Writer out(Json{{"type", type_name<std::decay_t<decltype(m)>>}});
            members(out, m);
            return canonical_json(out.take());
        },
        message);
}

template <class Variant, std::size_t I = 0> Result<Variant> decode_as(const std::string& type, const Json& json) {
    if constexpr (I == std::variant_size_v<Variant>) {
        return fail(ErrorKind::bad_input, "read", "a message of the agent link",
                    "unknown type '" + presentable(type, most_name_bytes) + "'", "agree on a version at hello");
    } else {
        using M = std::variant_alternative_t<I, Variant>;
        if (type != type_name<M>) return decode_as<Variant, I + 1>(type, json);
        Reader in(json, type, {"type"});
        M message;
        members(in, message);
        PERFRIG_CHECK(in.finish());
        return Variant(std::move(message));
    }
}

template <class Variant> Result<Variant> decode_any(std::string_view text) {
    if (text.size() > most_message_bytes)
        return fail(ErrorKind::bad_input, "read", "a message of the agent link", "it is longer than 64 MiB");
    PERFRIG_TRY(const Json json, parse_json(text, "a message of the agent link"));
    JsonReader in(json, "a message of the agent link");
    const std::string type = in.string("type");
    PERFRIG_CHECK(in.finish());
    return decode_as<Variant>(type, json);
}

} // namespace

std::string encode(const FromAgent& message) { return encode_any(message); }
std::string encode(const FromController& message) { return encode_any(message); }
Result<FromAgent> decode_from_agent(std::string_view text) { return decode_any<FromAgent>(text); }
Result<FromController> decode_from_controller(std::string_view text) { return decode_any<FromController>(text); }

} // namespace perfrig::protocol
