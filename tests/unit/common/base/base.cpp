#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "common/base/json.hpp"
#include "common/base/units.hpp"

#include "tests/support/doctest.hpp"
#include <sys/stat.h>

using namespace perfrig;

TEST_CASE("an error reads as a sentence with the place, the reason and the remedy") {
    const Error e = fail(ErrorKind::not_found, "read the profile", "/etc/x.yaml", "no such file", "write one");
    CHECK(e.text() == "can't read the profile /etc/x.yaml: no such file (write one)");
}

TEST_CASE("durations carry units") {
    CHECK(parse_duration("30s").value() == std::chrono::seconds(30));
    CHECK(parse_duration("1.5s").value() == Milliseconds(1500));
    CHECK(parse_duration("2m").value() == std::chrono::minutes(2));
    CHECK(parse_duration("0").value().count() == 0);
    for (const int seconds : {1, 59, 60, 61, 90, 3599, 3600, 3661, 86399})
        CHECK(parse_duration(format_duration(std::chrono::seconds(seconds))).value() == std::chrono::seconds(seconds));
    for (const char* bad :
         {"", "s", "30", "-1s", "30 s", "30sec", "1e3s", "nan", "inf", "400000h", "0x1s", "30s1m", "1m30", "1m1m"}) {
        INFO(bad);
        CHECK_FALSE(parse_duration(bad));
    }
    CHECK(format_duration(std::chrono::seconds(90)) == "1m30s");
    CHECK(format_duration(Milliseconds(250)) == "250ms");
}

TEST_CASE("sizes carry units") {
    CHECK(parse_size("512MiB").value() == 512ull << 20);
    CHECK(parse_size("10kB").value() == 10'000);
    CHECK_FALSE(parse_size("10"));
    CHECK_FALSE(parse_size("10mb"));
}

TEST_CASE("SHA-256 and CRC-32C give the published check values") {
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); // FIPS 180-2
    CHECK(crc32c("123456789") == 0xE3069283u);                                                      // RFC 3720
    CHECK(random_hex(16).size() == 32);
    CHECK(random_hex(16) != random_hex(16));
}

TEST_CASE("UTC prints as RFC 3339 in UTC") {
    CHECK(to_rfc3339(0) == "1970-01-01T00:00:00.000000Z");
    CHECK(to_rfc3339(1'796'070'227'123'456'789) == "2026-11-30T20:23:47.123456Z");
    CHECK(to_rfc3339(-1'000) == "1969-12-31T23:59:59.999999Z");
}

TEST_CASE("a clock anchor binds both clocks within its stated error") {
    const ClockAnchor anchor = SystemClock().anchor();
    CHECK(anchor.error_ns >= 0);
    CHECK(anchor.error_ns < 1'000'000'000);
    CHECK(anchor.utc_ns > 1'700'000'000'000'000'000);
}

TEST_CASE("reading JSON names the member that is wrong") {
    const Json j = parse_json(R"({"epoch": "x", "n": 3})", "hello").value();
    JsonReader in(j, "hello");
    in.integer("epoch");
    CHECK(in.integer("n") == 3);
    CHECK(in.finish().error().why.find("'epoch'") != std::string::npos);
    CHECK(parse_json("{", "x").error().text().starts_with("can't parse x: parse error at line 1"));
    CHECK_FALSE(parse_json(std::string(100, '['), "x"));
}

TEST_CASE("an atomic write leaves the whole content and its mode") {
    const std::string path = "/tmp/perfrig-test-" + random_hex(8);
    REQUIRE(write_file_atomically(path, "one", 0600));
    REQUIRE(write_file_atomically(path, "two", 0600));
    CHECK(read_file(path).value() == "two");
    struct stat st {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    ::unlink(path.c_str());
    CHECK(read_file(path).error().kind == ErrorKind::not_found);
}
