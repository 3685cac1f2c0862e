#include "tests/support/doctest.hpp"
#include "tests/unit/common/protocol/any_message.hpp"

#include <functional>

using namespace perfrig;
using namespace perfrig::protocol;
using perfrig::protocol::testing::Any;

namespace {

using Decode = std::function<Result<std::string>(std::string_view)>; // decodes, and encodes what came out

Decode decode_agent() {
    return [](std::string_view text) -> Result<std::string> {
        PERFRIG_TRY(const FromAgent message, decode_from_agent(text));
        return encode(message);
    };
}
Decode decode_controller() {
    return [](std::string_view text) -> Result<std::string> {
        PERFRIG_TRY(const FromController message, decode_from_controller(text));
        return encode(message);
    };
}
Decode decode_event() {
    return [](std::string_view text) -> Result<std::string> {
        PERFRIG_TRY(const RunEvent event, decode_run_event(text));
        return encode(event);
    };
}

// Every text with the function that must understand it.
std::vector<std::pair<std::string, Decode>> every_text(std::uint64_t seed) {
    Any any(seed);
    std::vector<std::pair<std::string, Decode>> out;
    for (const auto& m : any.from_agent()) out.emplace_back(encode(m), decode_agent());
    for (const auto& m : any.from_controller()) out.emplace_back(encode(m), decode_controller());
    for (const auto& m : any.events()) out.emplace_back(encode(m), decode_event());
    return out;
}

} // namespace

TEST_CASE("every message and event comes back from its text as it was") {
    for (std::uint64_t seed = 0; seed < 200; ++seed)
        for (const auto& [text, decode] : every_text(seed)) {
            INFO(text);
            const auto again = decode(text);
            REQUIRE(again);
            CHECK(*again == text);
        }
}

TEST_CASE("the members' values travel, not only their names") {
    Any any(1);
    const auto hello = std::get<Hello>(any.from_agent()[0]);
    const auto got = std::get<Hello>(decode_from_agent(encode(FromAgent(hello))).value());
    CHECK(got.machine == hello.machine);
    CHECK(got.epoch == hello.epoch);
    CHECK(got.spool[1].last_seq == 9);
    CHECK(got.profile == hello.profile);
    const RunEvent event{7, 3, 55, MetricRead{"requests", "1/s", {{"q", "0.5"}}, 12.5, 1, 2, "tool", "suspect"}};
    const RunEvent back = decode_run_event(encode(event)).value();
    CHECK(back.run == 7);
    CHECK(back.block == 3);
    CHECK(back.time_ns == 55);
    const auto& metric = std::get<MetricRead>(back.body);
    CHECK(metric.value == 12.5);
    CHECK(metric.labels.at("q") == "0.5");
    CHECK(metric.status == "suspect");
}

TEST_CASE("a message or event without one of its members is refused, and the error names the member") {
    for (const auto& [text, decode] : every_text(3)) {
        const Json whole = Json::parse(text);
        for (const auto& [key, value] : whole.items()) {
            Json without = whole;
            without.erase(key);
            INFO(without.dump());
            const auto decoded = decode(without.dump());
            REQUIRE_FALSE(decoded);
            CHECK(decoded.error().kind == ErrorKind::bad_input);
            CHECK(decoded.error().why.find(key) != std::string::npos);
        }
    }
}

TEST_CASE("a message or event with a member that nobody knows is refused, and the error names it") {
    for (const auto& [text, decode] : every_text(4)) {
        Json more = Json::parse(text);
        more["frobnicate"] = 1;
        const auto decoded = decode(more.dump());
        INFO(more.dump());
        REQUIRE_FALSE(decoded);
        CHECK(decoded.error().why.find("frobnicate") != std::string::npos);
    }
}

TEST_CASE("a member of another type is refused") {
    for (const auto& [text, decode] : every_text(5)) {
        const Json whole = Json::parse(text);
        for (const auto& [key, value] : whole.items()) {
            Json other = whole;
            other[key] = value.is_boolean() ? Json("yes") : Json(true);
            INFO(other.dump());
            CHECK_FALSE(decode(other.dump()));
        }
    }
}

TEST_CASE("cut, flipped and foreign texts are refused or read, and never more than that") {
    Any any(6);
    for (const auto& [text, decode] : every_text(6)) {
        for (std::size_t cut = 0; cut < text.size(); ++cut) CHECK_FALSE(decode(text.substr(0, cut)));
        for (int i = 0; i < 200; ++i) {
            std::string flipped = text;
            flipped[static_cast<std::size_t>(any.number(0, static_cast<std::int64_t>(text.size()) - 1))] =
                static_cast<char>(any.number(0, 255));
            (void)decode(flipped); // whatever it is, it returns
        }
    }
    for (const char* text : {"", "[]", "null", "7", "\"hello\"", "{}", R"({"type":7})", R"({"type":"reboot"})",
                             R"({"event":"exploded","run":1,"block":1,"time_ns":1})"}) {
        INFO(text);
        CHECK_FALSE(decode_from_agent(text));
        CHECK_FALSE(decode_from_controller(text));
        CHECK_FALSE(decode_run_event(text));
    }
}

TEST_CASE("values out of bounds are refused, and the error names the place") {
    const auto why = [](const Json& json) { return decode_from_agent(json.dump()).error().why; };
    CHECK(why({{"type", "block_ready"}, {"block", 0}, {"token", 1}}).find("block_ready.block") != std::string::npos);
    CHECK(why({{"type", "block_ready"}, {"block", 1}, {"token", -1}}).find("block_ready.token") != std::string::npos);
    CHECK(why({{"type", "block_ready"}, {"block", 1e3}, {"token", 1}}).find("integer") != std::string::npos);
    CHECK(why({{"type", "block_ready"}, {"block", 18446744073709551615ULL}, {"token", 1}}).find("block") !=
          std::string::npos);
    Json hello = Json::parse(encode(Any(7).from_agent()[0]));
    hello["spool"][1]["epoch"] = 0;
    CHECK(why(hello).find("hello.spool[1].epoch") != std::string::npos);
    const Json state = {{"event", "state"}, {"run", 1},     {"block", 1},      {"time_ns", 1},
                        {"state", "happy"}, {"reason", ""}, {"deadline_ms", 0}};
    CHECK(decode_run_event(state.dump()).error().why.find("state.state must be one of preparing") != std::string::npos);
}

TEST_CASE("what an encoder writes can always be decoded: bad UTF-8, NULs, endless texts, numbers that are none") {
    const std::string nasty = std::string("a\0b", 3) + "\xff\xfe" + std::string(200'000, 'x') + "ü";
    const RunEvent found{1, 1, 1, Found{nasty, "info", nasty, nasty, Json{{"raw", nasty}}}};
    const auto back = decode_run_event(encode(found));
    REQUIRE(back);
    CHECK(std::get<Found>(back->body).message.size() <= 64 << 10);
    CHECK(std::get<Found>(back->body).message.substr(0, 5) == "a\xEF\xBF\xBD"
                                                              "b");
    CHECK(std::get<Found>(back->body).message.find("[cut]") != std::string::npos);
    const RunEvent metric{1, 1, 1, MetricRead{"m", "s", {}, std::numeric_limits<double>::quiet_NaN(), 0, 0}};
    CHECK_FALSE(std::get<MetricRead>(decode_run_event(encode(metric)).value().body).value.has_value());
    CHECK(decode_from_agent(encode(FromAgent(BlockRefused{1, 1, nasty, false}))));
}

TEST_CASE("the five end states of a run are the end states") {
    for (const char* state : {"completed", "refused", "failed", "cancelled", "interrupted"}) CHECK(is_end_state(state));
    for (const char* state : {"planned", "preparing", "measuring", "uploading", ""}) CHECK_FALSE(is_end_state(state));
}
