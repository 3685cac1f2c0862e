#include "tests/unit/agent/session/spool_rig.hpp"

#include "common/base/file_tree.hpp"

#include <fstream>
#include <sys/mount.h>
#include <thread>
#include <unistd.h>

using namespace perfrig;
using namespace perfrig::testing;

namespace {

std::unique_ptr<Spool> open_spool(const std::string& folder, std::int64_t epoch, SpoolLimits limits = {}) {
    auto spool = Spool::open(folder, epoch, limits);
    REQUIRE(spool);
    return std::move(*spool);
}

std::vector<std::filesystem::path> segments_of(const std::string& folder, std::int64_t epoch) {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/" + std::to_string(epoch)))
        if (entry.path().extension() == ".seg") out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
}

void flip_byte(const std::filesystem::path& file, std::streamoff at) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const char c = static_cast<char>(f.get() ^ 0x55);
    f.seekp(at);
    f.put(c);
}

} // namespace

TEST_CASE("records come back in the order in which they were appended, however the chunks are cut") {
    TempFolder folder;
    const auto spool = open_spool(folder.path("spool"), 3, {1 << 30, 1 << 20, 4'000, 0});
    for (int i = 1; i <= 200; ++i) {
        if (i % 3 == 0)
            REQUIRE(spool->append_samples(samples_text(7)));
        else
            REQUIRE(spool->append_event(event_text(7, std::to_string(i))));
    }
    CHECK(segments_of(folder.path("spool"), 3).size() > 2); // several segments
    for (const std::size_t most : {std::size_t(1), std::size_t(500), std::size_t(1) << 20}) {
        const auto records = read_all(*spool, {}, most);
        REQUIRE(records.size() == 200);
        for (std::size_t i = 0; i < records.size(); ++i) {
            CHECK(records[i].first == 3);
            CHECK(records[i].second.seq == i + 1);
        }
    }
    CHECK(read_all(*spool, {3, 150}).size() == 50);
    CHECK(read_all(*spool, {3, 200}).empty());
}

TEST_CASE("what append returned for is there after the process is gone, without any sync") {
    TempFolder folder;
    open_spool(folder.path("spool"), 1)->append_event(event_text(5, "last words")).value();
    const auto again = open_spool(folder.path("spool"), 2);
    again->append_event(event_text(5, "new words")).value();
    const auto records = read_all(*again);
    REQUIRE(records.size() == 2);
    CHECK(records[0].first == 1); // the older epoch first
    CHECK(records[0].second.payload == event_text(5, "last words"));
    CHECK(records[1].first == 2);
    CHECK(records[1].second.seq == 1);
    const auto ranges = again->ranges();
    REQUIRE(ranges.size() == 2);
    CHECK(ranges[0].epoch == 1);
    CHECK(ranges[0].last_seq == 1);
}

TEST_CASE("a torn last record is cut off at the start, and nothing before it is lost") {
    for (const int cut : {1, 3, 10, 30}) {
        TempFolder folder;
        {
            const auto spool = open_spool(folder.path("spool"), 1);
            for (int i = 0; i < 10; ++i) REQUIRE(spool->append_event(event_text(1, "x" + std::to_string(i))));
        }
        const auto file = segments_of(folder.path("spool"), 1).back();
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - static_cast<std::uintmax_t>(cut));
        const auto spool = open_spool(folder.path("spool"), 2);
        CHECK(spool->take_damage().empty()); // a kill in the middle of a write is no damage
        CHECK(read_all(*spool).size() == 9);
    }
}

TEST_CASE("zeros at the end, as a power cut may leave them, are a torn end too") {
    TempFolder folder;
    { open_spool(folder.path("spool"), 1)->append_event(event_text(1, "x")).value(); }
    const auto file = segments_of(folder.path("spool"), 1).back();
    std::filesystem::resize_file(file, std::filesystem::file_size(file) + 4096);
    const auto spool = open_spool(folder.path("spool"), 2);
    CHECK(read_all(*spool).size() == 1);
    CHECK(spool->take_damage().empty());
}

TEST_CASE("a damaged record in the middle is reported, and has a stand-in that voids its run; the rest is read") {
    TempFolder folder;
    {
        const auto spool = open_spool(folder.path("spool"), 1);
        for (int i = 1; i <= 20; ++i) REQUIRE(spool->append_event(event_text(42, "x" + std::to_string(i))));
    }
    const auto file = segments_of(folder.path("spool"), 1).back();
    const auto record_bytes = static_cast<std::streamoff>(std::filesystem::file_size(file) / 20);
    flip_byte(file, record_bytes * 10);
    const auto spool = open_spool(folder.path("spool"), 2);
    const auto damage = spool->take_damage();
    REQUIRE(damage.size() == 1);
    CHECK(damage[0].epoch == 1);
    CHECK(damage[0].run == 42);
    CHECK(damage[0].before_seq == damage[0].after_seq + 2);
    const auto records = read_all(*spool);
    REQUIRE(records.size() == 20); // no gap: the controller takes sequence numbers one by one
    const auto lost = protocol::decode_run_event(records[damage[0].after_seq].second.payload);
    REQUIRE(lost);
    CHECK(lost->run == 42);
    CHECK(std::get<protocol::Found>(lost->body).severity == "void");
    CHECK(records[damage[0].after_seq + 1].second.payload ==
          event_text(42, "x" + std::to_string(damage[0].before_seq)));
}

TEST_CASE("a missing segment leaves no gap in the numbers either") {
    TempFolder folder;
    {
        const auto spool = open_spool(folder.path("spool"), 1, {1 << 30, 1 << 20, 1'000, 0});
        for (int i = 1; i <= 60; ++i) REQUIRE(spool->append_event(event_text(9, "y")));
    }
    const auto files = segments_of(folder.path("spool"), 1);
    REQUIRE(files.size() > 4);
    std::filesystem::remove(files[2]);
    const auto records = read_all(*open_spool(folder.path("spool"), 2));
    REQUIRE(records.size() == 60);
    for (std::size_t i = 0; i < 60; ++i) CHECK(records[i].second.seq == i + 1);
}

TEST_CASE("acknowledged segments are deleted, unacknowledged records never") {
    TempFolder folder;
    const auto spool = open_spool(folder.path("spool"), 1, {1 << 30, 1 << 20, 2'000, 0});
    for (int i = 0; i < 100; ++i) REQUIRE(spool->append_event(event_text(1, "z")));
    const std::size_t before = segments_of(folder.path("spool"), 1).size();
    spool->acknowledge({1, 50});
    CHECK(segments_of(folder.path("spool"), 1).size() < before);
    CHECK(spool->figures().records == 50);
    CHECK(read_all(*spool, {1, 50}).size() == 50);
    CHECK(read_all(*spool).size() == 50); // what is acknowledged isn't sent again
    spool->acknowledge({1, 100});
    CHECK(read_all(*spool).empty());
    REQUIRE(spool->append_event(event_text(1, "later")));
    CHECK(read_all(*spool).back().second.seq == 101); // numbers go on
}

TEST_CASE("every start has a random id of its own, which stays with its records") {
    TempFolder folder;
    std::string first;
    {
        const auto spool = open_spool(folder.path("spool"), 1);
        first = spool->start_id();
        CHECK(first.size() == 32);
        spool->append_event(event_text(1, "x")).value();
        CHECK(spool->ranges().at(0).start_id == first);
    }
    std::filesystem::copy(folder.path("spool"), folder.path("copy"), std::filesystem::copy_options::recursive);
    const auto again = open_spool(folder.path("spool"), 2), copy = open_spool(folder.path("copy"), 2);
    CHECK(again->start_id() != first);
    CHECK(again->start_id() != copy->start_id());
    CHECK(again->ranges().at(0).start_id == first); // the records are the same: so is their start
    CHECK(copy->ranges().at(0).start_id == first);
    std::filesystem::remove(folder.path("spool/1/start"));
    CHECK(open_spool(folder.path("spool"), 3)->ranges().at(0).start_id.empty());
}

TEST_CASE("an epoch whose records are all acknowledged leaves nothing on disk") {
    TempFolder folder;
    { open_spool(folder.path("spool"), 1)->append_event(event_text(1, "x")).value(); }
    const auto spool = open_spool(folder.path("spool"), 2);
    spool->acknowledge({1, 1});
    CHECK_FALSE(std::filesystem::exists(folder.path("spool/1")));
    CHECK(spool->ranges().empty());
}

TEST_CASE("a full spool refuses samples and counts them, and still takes events") {
    TempFolder folder;
    const auto spool = open_spool(folder.path("spool"), 1, {20'000, 10'000, 4'000, 0});
    int stored = 0, refused = 0;
    for (int i = 0; i < 400; ++i) {
        const auto answer = spool->append_samples(samples_text(1));
        REQUIRE(answer);
        (*answer == EventSink::Stored::yes ? stored : refused) += 1;
    }
    CHECK(stored > 0);
    CHECK(refused > 0);
    CHECK(spool->figures().samples_refused == static_cast<std::uint64_t>(refused));
    CHECK(spool->append_event(event_text(1, "the end of the run")));
    spool->acknowledge({1, spool->last_sequence()}); // space again
    CHECK(spool->append_samples(samples_text(1)).value() == EventSink::Stored::yes);
}

TEST_CASE("a record that is too long is refused as such, and the spool goes on") {
    TempFolder folder;
    const auto spool = open_spool(folder.path("spool"), 1);
    const auto answer = spool->append_event(std::string(2 << 20, 'x'));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().kind == ErrorKind::bad_input);
    CHECK(spool->append_event(event_text(1, "x")));
    CHECK(read_all(*spool).size() == 1);
}

TEST_CASE("an epoch that isn't above what lies there is refused") {
    TempFolder folder;
    { open_spool(folder.path("spool"), 5)->append_event(event_text(1, "x")).value(); }
    const auto spool = Spool::open(folder.path("spool"), 5, {});
    REQUIRE_FALSE(spool);
    CHECK(spool.error().kind == ErrorKind::conflict);
}

TEST_CASE("a full disk is an error for samples, and the ballast lets the run's end be written") {
    TempFolder folder;
    if (::geteuid() != 0 || ::mount("none", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) {
        MESSAGE("skipped: no small file system can be mounted here");
        return;
    }
    struct Unmount {
        std::string path;
        ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
    } unmount{folder.path()};
    const auto spool = open_spool(folder.path("spool"), 1, {1 << 30, 1 << 20, 256 << 10, 256 << 10});
    std::string big = protocol::encode_samples({1, 1, std::vector<protocol::Sample>(5'000, {1, 1.0})});
    Result<EventSink::Stored> answer = EventSink::Stored::yes;
    std::uint64_t good = 0;
    while ((answer = spool->append_samples(big)) && good < 1'000) ++good;
    REQUIRE_FALSE(answer);
    CHECK(answer.error().kind == ErrorKind::unavailable);
    CHECK(answer.error().text().find("No space left") != std::string::npos);
    CHECK(spool->append_event(event_text(1, "failed: the disk is full")));
    const auto records = read_all(*spool); // nothing torn in the middle
    CHECK(records.size() == good + 1);
    CHECK(records.back().second.payload == event_text(1, "failed: the disk is full"));
    spool->acknowledge({1, good}); // the controller took them: space again
    CHECK(spool->append_samples(big));
}

TEST_CASE("appends from many threads get one number each while the link reads") {
    TempFolder folder;
    const auto spool = open_spool(folder.path("spool"), 1, {1 << 30, 1 << 20, 8'000, 0});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 250; ++i) (void)spool->append_event(event_text(1, "t"));
        });
    SpoolPosition at{1, 0};
    std::uint64_t seen = 0;
    while (seen < 1'000) {
        const auto chunk = spool->read_after(at, 3'000);
        REQUIRE(chunk);
        if (!*chunk) continue;
        CHECK((*chunk)->first_seq == seen + 1);
        seen = (*chunk)->last_seq;
        at = {1, seen};
        spool->acknowledge(at);
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(spool->last_sequence() == 1'000);
}
