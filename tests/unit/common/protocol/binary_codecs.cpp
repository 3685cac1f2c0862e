#include "common/protocol/sample_frame.hpp"
#include "common/protocol/spool_record.hpp"

#include "tests/support/doctest.hpp"

#include <limits>
#include <random>

using namespace perfrig;
using namespace perfrig::protocol;

namespace {

SampleFrame any_frame(std::mt19937_64& random) {
    SampleFrame frame{static_cast<std::int64_t>(random() >> 1) | 1, static_cast<std::int64_t>(random() >> 1), {}};
    for (std::uint64_t i = random() % 50; i > 0; --i)
        frame.samples.push_back({static_cast<std::uint32_t>(random() >> 33), static_cast<double>(random()) / 7});
    return frame;
}

SpoolRecord any_record(std::mt19937_64& random, std::uint64_t seq) {
    SpoolRecord record{random() % 2 ? RecordKind::samples : RecordKind::run_event, seq, {}};
    for (std::uint64_t i = random() % 300; i > 0; --i) record.payload.push_back(static_cast<char>(random()));
    return record;
}

} // namespace

TEST_CASE("a frame of samples comes back from its bytes as it was") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 500; ++i) {
        const SampleFrame frame = any_frame(random);
        const auto back = decode_samples(encode_samples(frame));
        REQUIRE(back);
        CHECK(*back == frame);
    }
}

TEST_CASE("the bytes of a frame are those of the documented format") {
    const std::string bytes = encode_samples({258, 3, {{1, 1.0}}});
    const std::string expected("\x01"
                               "\x02\x01\0\0\0\0\0\0"
                               "\x03\0\0\0\0\0\0\0"
                               "\x01\0\0\0"
                               "\x01\0\0\0"
                               "\0\0\0\0\0\0\xF0\x3F",
                               1 + 8 + 8 + 4 + 4 + 8);
    CHECK(bytes == expected);
}

TEST_CASE("values that are not finite never enter a frame, and a frame that holds one is refused") {
    const SampleFrame frame{1, 1, {{1, std::numeric_limits<double>::infinity()}, {2, 5}, {3, std::nan("")}}};
    CHECK(decode_samples(encode_samples(frame)).value().samples == std::vector<Sample>{{2, 5}});
    std::string bytes = encode_samples({1, 1, {{1, 1.0}}});
    bytes.replace(bytes.size() - 2, 2, "\xF0\x7F");
    CHECK_FALSE(decode_samples(bytes));
}

TEST_CASE("a frame that is cut, too long, of another version or of no run is refused") {
    const std::string good = encode_samples({1, 1, {{1, 1.0}, {2, 2.0}}});
    for (std::size_t cut = 0; cut < good.size(); ++cut) CHECK_FALSE(decode_samples(good.substr(0, cut)));
    CHECK_FALSE(decode_samples(good + "x"));
    std::string other = good;
    other[0] = 2;
    CHECK(decode_samples(other).error().why.find("version 2") != std::string::npos);
    CHECK_FALSE(decode_samples(encode_samples({0, 1, {}})));
    std::string huge_count = good;
    huge_count.replace(17, 4, "\xFF\xFF\xFF\xFF"); // must not be believed before the length is checked
    CHECK_FALSE(decode_samples(huge_count));
}

TEST_CASE("records lie one behind the other and come back in order") {
    std::mt19937_64 random(2);
    std::vector<SpoolRecord> records;
    std::string bytes;
    for (std::uint64_t seq = 1; seq <= 200; ++seq)
        bytes += encode_record(records.emplace_back(any_record(random, seq)));
    std::string_view left = bytes;
    for (const SpoolRecord& record : records) CHECK(take_record(left).value() == record);
    CHECK(left.empty());
}

TEST_CASE("a record that ends early is torn, which is told from a record that is wrong") {
    const std::string good = encode_record({RecordKind::run_event, 7, "payload"});
    for (std::size_t cut = 0; cut < good.size(); ++cut) {
        std::string_view left = std::string_view(good).substr(0, cut);
        const auto taken = take_record(left);
        REQUIRE_FALSE(taken);
        CHECK(taken.error().kind == ErrorKind::unavailable);
        CHECK(left.size() == cut); // nothing was consumed
    }
    for (std::size_t at = 4; at < good.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::string flipped = good;
            flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
            std::string_view left = flipped;
            CHECK(take_record(left).error().kind == ErrorKind::bad_input);
        }
    std::string_view zeros("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17); // what a file system may leave after a power cut
    CHECK(take_record(zeros).error().kind == ErrorKind::bad_input);
    std::string endless = good;
    endless.replace(0, 4, "\xFF\xFF\xFF\x7F");
    std::string_view left = endless;
    CHECK(take_record(left).error().kind == ErrorKind::bad_input);
}

TEST_CASE("the largest record that there may be fits into a batch") {
    const SpoolRecord record{RecordKind::run_event, 1, std::string(most_record_bytes - record_overhead_bytes, 'x')};
    const auto batch = decode_batch(encode_batch_header(4) + encode_record(record));
    REQUIRE(batch);
    CHECK(batch->epoch == 4);
    CHECK(batch->records.at(0) == record);
    const SpoolRecord bigger{RecordKind::run_event, 1, record.payload + "x"};
    CHECK_FALSE(decode_batch(encode_batch_header(4) + encode_record(bigger)));
}

TEST_CASE("a batch is refused whole when it is empty, torn, disordered, or of no epoch") {
    const std::string header = encode_batch_header(9);
    const std::string one = encode_record({RecordKind::samples, 1, "a"}),
                      two = encode_record({RecordKind::samples, 2, "b"});
    CHECK(decode_batch(header + one + two).value().records.size() == 2);
    CHECK_FALSE(decode_batch(header));
    CHECK_FALSE(decode_batch(""));
    CHECK_FALSE(decode_batch(header + one + two.substr(0, two.size() - 1)));
    CHECK(decode_batch(header + one + two.substr(0, 5)).error().kind == ErrorKind::bad_input);
    CHECK_FALSE(decode_batch(header + two + one));
    CHECK_FALSE(decode_batch(header + one + one));
    CHECK_FALSE(decode_batch(encode_batch_header(0) + one));
    CHECK_FALSE(decode_batch("\x02" + header.substr(1) + one));
}
