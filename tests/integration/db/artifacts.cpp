#include "controller/db/artifacts.hpp"
#include "common/base/hash.hpp"
#include "tests/integration/db/scratch.hpp"

#include <random>

using namespace perfrig;
using namespace perfrig::test;
namespace artifacts = perfrig::db::artifacts;

namespace {
std::string random_bytes(std::size_t size) {
    std::mt19937 random(3);
    std::string out(size, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
}
std::string read_all(db::Connection& c, model::Id artifact) {
    std::string out;
    for (std::int64_t part = 0;; ++part) {
        const std::string bytes = good(artifacts::read_part(c, artifact, part));
        if (bytes.empty()) return out;
        CHECK(bytes.size() <= std::size_t(artifacts::most_part_bytes));
        out += bytes;
    }
}
} // namespace

TEST_CASE("an upload goes on where it stopped, whatever the size of its parts") {
    Scratch db;
    const Rig r = rig(db.c());
    const std::string content = random_bytes(3'500'000);
    auto artifact = good(artifacts::offer(db.c(), r.run(), r.machine.id, "out/wrk.log", sha256_hex(content),
                                          std::int64_t(content.size())));
    CHECK(!artifact.complete);
    const auto put = [&](std::int64_t offset, std::size_t size) {
        return artifacts::append(db.c(), artifact.id, offset,
                                 std::string_view(content).substr(std::size_t(offset), size));
    };
    CHECK(good(put(0, 1 << 20)).stored_bytes == 1 << 20);
    CHECK(good(put(0, 1 << 20)).stored_bytes == 1 << 20);             // sent twice
    CHECK(good(put(1'000'000, 700'000)).stored_bytes == 1'700'000);   // overlaps
    CHECK(put(2'000'000, 1'000).error().kind == ErrorKind::conflict); // a gap
    CHECK(put(1'700'000, (1 << 20) + 1).error().kind == ErrorKind::bad_input);
    CHECK(artifacts::read_part(db.c(), artifact.id, 0).error().kind == ErrorKind::not_found);
    // The agent asks where to go on.
    artifact = good(artifacts::find(db.c(), r.run(), r.machine.id, "out/wrk.log"));
    while (!artifact.complete) artifact = good(put(artifact.stored_bytes, 1'000'000));
    CHECK(artifact.stored_bytes == std::int64_t(content.size()));
    CHECK(read_all(db.c(), artifact.id) == content);
    CHECK(good(put(3'000'000, 500'000)).complete); // the last part, sent again
    CHECK(count(db.c(), "select count(*) from upload_part") == 0);
}

TEST_CASE("bytes whose hash is wrong are dropped and can be sent again") {
    Scratch db;
    const Rig r = rig(db.c());
    const auto artifact = good(artifacts::offer(db.c(), r.run(), r.machine.id, "log", sha256_hex("right"), 5));
    const auto wrong = artifacts::append(db.c(), artifact.id, 0, "wrong");
    REQUIRE(!wrong);
    CHECK(wrong.error().kind == ErrorKind::bad_input);
    CHECK(good(artifacts::find_by_id(db.c(), artifact.id)).stored_bytes == 0);
    CHECK(count(db.c(), "select count(*) from blob") == 0);
    CHECK(good(artifacts::append(db.c(), artifact.id, 0, "right")).complete);
    CHECK(artifacts::append(db.c(), artifact.id, 5, "!").error().kind == ErrorKind::bad_input);
}

TEST_CASE("equal contents are kept once, empty ones need no upload") {
    Scratch db;
    const Rig r = rig(db.c(), 2);
    const auto offer = [&](std::size_t run, const char* name, std::string_view content) {
        return artifacts::offer(db.c(), r.run(run), r.machine.id, name, sha256_hex(content),
                                std::int64_t(content.size()));
    };
    CHECK(good(offer(0, "empty", "")).complete);
    good(artifacts::append(db.c(), good(offer(0, "a", "same")).id, 0, "same"));
    const auto second = good(offer(1, "b", "same"));
    CHECK(second.complete);
    CHECK(read_all(db.c(), second.id) == "same");
    CHECK(count(db.c(), "select count(*) from blob") == 1);
    CHECK(good(offer(1, "b", "same")).id == second.id);
    CHECK(offer(1, "b", "else").error().kind == ErrorKind::conflict);
    CHECK(offer(1, "../b", "x").error().kind == ErrorKind::bad_input);
}
