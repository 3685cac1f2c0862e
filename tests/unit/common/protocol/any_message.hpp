// Arbitrary messages and events, every member filled: what the properties of the codecs are tested on.
#pragma once

#include "common/protocol/messages.hpp"
#include "common/protocol/run_event.hpp"

#include <random>

namespace perfrig::protocol::testing {

class Any {
  public:
    explicit Any(std::uint64_t seed) : random_(seed) {}
    std::int64_t number(std::int64_t least, std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
    }
    std::int64_t id() { return number(1, 1LL << 60); }
    std::string text() {
        static const std::vector<std::string> pieces = {"a", "\"", "\\", "\n", "\t", "ü", "€", "\x01", "/", "名"};
        std::string out;
        for (std::int64_t i = number(0, 12); i > 0; --i) out += pieces[static_cast<std::size_t>(number(0, 9))];
        return out;
    }
    Json object() {
        Json out = Json::object();
        for (std::int64_t i = number(0, 3); i > 0; --i) out[text()] = Json{{"n", number(-5, 5)}, {"t", text()}};
        return out;
    }
    std::map<std::string, std::string> map() {
        std::map<std::string, std::string> out;
        for (std::int64_t i = number(0, 3); i > 0; --i) out[text()] = text();
        return out;
    }
    std::string one_of(std::vector<std::string> words) {
        return words[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(words.size()) - 1))];
    }
    AssignedRun assigned() { return {id(), static_cast<int>(number(1, 99)), object()}; }
    Cursor cursor() { return {id(), static_cast<int>(number(0, 255)), static_cast<std::uint64_t>(id())}; }

    std::vector<FromAgent> from_agent() {
        Hello hello;
        hello.machine = text(), hello.agent_version = text(), hello.boot_id = text(), hello.metrics_url = text();
        hello.epoch = id(), hello.open_block = id(), hello.open_run = id(), hello.highest_token = id();
        hello.open_changes = static_cast<int>(number(0, 9));
        hello.profile = object(), hello.labels = object(), hello.environment = object();
        hello.start_id = text();
        hello.spool = {{id(), 0, 0, ""}, {id(), 3, 9, text()}};
        Heartbeat beat{id(), id(), id(), id(), number(-1000, 1000), std::nullopt, text()};
        return {hello,
                BlockReady{id(), id()},
                BlockRefused{id(), id(), text(), number(0, 1) == 1},
                BlockWorked{id(), id()},
                BlockReleased{id(), id()},
                beat};
    }
    std::vector<FromController> from_controller() {
        Welcome welcome;
        welcome.session = text(), welcome.cursors = {cursor(), cursor()}, welcome.keep_block = id();
        welcome.scrape_token_hashes = {text(), text()};
        return {welcome,
                PrepareBlock{id(), id(), {assigned(), assigned()}},
                AssignRun{id(), id(), assigned()},
                CancelRun{id(), id(), number(0, 9), text()},
                EndBlock{id(), id()},
                Ack{cursor()},
                HeartbeatReply{id(), id(), id()},
                Refusal{text(), number(0, 1) == 1}};
    }
    std::vector<RunEvent> events() {
        const std::vector<RunEventBody> bodies = {
            StateChanged{one_of({"preparing", "measuring", "completed", "interrupted"}), text(), number(0, 99)},
            PhaseStarted{
                static_cast<int>(number(0, 9)), one_of({"build", "warm_up", "measure"}), id(), {id(), id(), 5}},
            PhaseEnded{1, id()},
            SeriesDeclared{static_cast<std::uint32_t>(number(0, INT32_MAX)), text(), text(), "counter", map()},
            ProcessStarted{2, text(), text(), text(), 77, text(), text(), object(), id()},
            ProcessObserved{2, text(), text()},
            ProcessEnded{2, id(), text()},
            MetricRead{text(), text(), map(), 0.1 * static_cast<double>(number(-99, 99)), id(), id(), "tool",
                       "too_short"},
            MetricRead{text(), text(), map(), std::nullopt, 0, 0, "collector", "no_result"},
            Found{text(), one_of({"info", "warning", "void"}), text(), text(), object()},
            ArtifactOffered{text(), text(), id()},
            EnvironmentTaken{one_of({"before", "after"}), text(), text(), object(), object()},
            RolesGranted{map()}};
        std::vector<RunEvent> out;
        for (const RunEventBody& body : bodies) out.push_back({id(), number(0, 99), id(), body});
        return out;
    }

  private:
    std::mt19937_64 random_;
};

} // namespace perfrig::protocol::testing
