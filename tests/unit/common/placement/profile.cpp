#include "common/placement/profile.hpp"

#include "tests/support/doctest.hpp"

using namespace perfrig;

namespace {
std::string error_of(const char* json) {
    const auto profile = profile_from_json(parse_json(json, "test").value());
    return profile ? "" : profile.error().text();
}
} // namespace

TEST_CASE("a profile survives the way to JSON and back") {
    const auto json =
        parse_json(R"({"roles": {"app": "0-3", "db": "4-6", "load": "6-9", "monitor": 10}, "memory": {"app": "0"},
        "share": [["db", "load"]], "limits": {"run_seconds": 600}, "allow": {"kernel_args": ["mitigations"]}})",
                   "test");
    const auto profile = profile_from_json(json.value());
    REQUIRE(profile);
    CHECK(profile->roles.at("monitor").text() == "10");
    CHECK(profile->limits.run_seconds == 600);
    CHECK(profile->limits.processes == ProfileLimits{}.processes);
    CHECK(profile->share.at(0).contains("load"));
    CHECK(profile_from_json(to_json(*profile)).value() == *profile);
}

TEST_CASE("an empty profile is the default profile") { CHECK(profile_from_json(Json::object()).value() == Profile{}); }

TEST_CASE("what a profile doesn't know or can't be is refused with its place") {
    CHECK(error_of(R"({"role": {}})").find("did you mean 'roles'?") != std::string::npos);
    CHECK(error_of(R"({"roles": {"app": "3-1"}})").find("the profile, roles.app") != std::string::npos);
    CHECK(error_of(R"({"roles": {"app": ""}})").find("empty") != std::string::npos);
    CHECK(error_of(R"({"roles": {"a b": "1"}})").find("not a role name") != std::string::npos);
    CHECK(error_of(R"({"roles": {"app": [1]}})").find("must be a list") != std::string::npos);
    CHECK(error_of(R"({"roles": {"app": "1"}, "share": [["app"]]})").find("at least two") != std::string::npos);
    CHECK(error_of(R"({"roles": {"app": "1"}, "share": [["app", "db"]]})").find("'db' has no CPUs") !=
          std::string::npos);
    CHECK(error_of(R"({"roles": {"app": "1"}, "share": [["app", "app"]]})").find("named twice") != std::string::npos);
    CHECK(error_of(R"({"memory": {"app": "1"}})").find("no CPUs") != std::string::npos);
    CHECK(error_of(R"({"limits": {"run_seconds": 0}})").find("out of range") != std::string::npos);
    CHECK(error_of(R"({"limits": {"run_seconds": "1h"}})").find("must be an integer") != std::string::npos);
    CHECK(error_of(R"({"allow": {"settings": [1]}})").find("must be a name") != std::string::npos);
    CHECK(error_of(R"([])").find("must be an object") != std::string::npos);
}
