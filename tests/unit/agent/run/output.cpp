#include "agent/run/output_pump.hpp"
#include "agent/run/redactor.hpp"

#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"
#include "tests/support/doctest.hpp"

#include <filesystem>
#include <random>
#include <unistd.h>

using namespace perfrig;

namespace {

struct TempFile {
    std::string path = (std::filesystem::temp_directory_path() / ("perfrig-log-" + random_hex(8))).string();
    ~TempFile() { ::unlink(path.c_str()); }
};

std::string logged(const std::string& text, std::uint64_t most, std::size_t chunk, std::uint64_t* dropped = nullptr) {
    TempFile file;
    auto log = BoundedLog::create(file.path, most).value();
    for (std::size_t at = 0; at < text.size(); at += chunk) log.add(std::string_view(text).substr(at, chunk));
    if (dropped) *dropped = log.dropped_bytes();
    CHECK(log.total_bytes() == text.size());
    REQUIRE(log.finish());
    return read_file(file.path).value();
}

} // namespace

TEST_CASE("a log within its bound is kept whole") {
    for (const std::size_t chunk : {1, 7, 1000}) CHECK(logged("line 1\nline 2\n", 1000, chunk) == "line 1\nline 2\n");
    const std::string exactly(1000, 'x');
    CHECK(logged(exactly, 1000, 13) == exactly);
    CHECK(logged("", 1000, 1).empty());
}

TEST_CASE("a log beyond its bound keeps beginning and end, and says how much was dropped") {
    std::string text;
    for (int i = 0; text.size() < 100'000; ++i) text += "line " + std::to_string(i) + "\n";
    for (const std::size_t chunk : {1, 7, 499, 501, 4096, 200'000}) {
        std::uint64_t dropped = 0;
        const std::string kept = logged(text, 1000, chunk, &dropped);
        CHECK(dropped == text.size() - 1000);
        CHECK(kept.substr(0, 500) == text.substr(0, 500));
        CHECK(kept.substr(kept.size() - 500) == text.substr(text.size() - 500));
        CHECK(kept.find("[" + std::to_string(dropped) + " bytes were dropped here]") != std::string::npos);
        CHECK(kept.size() < 1100);
    }
}

TEST_CASE("a secret never gets through, wherever the stream is cut") {
    const std::string text = "user=a password=hunter2 and hunter2hunter2 again; token-hunter2-x huntr2 hunter";
    const std::string clean = "user=a password=[secret] and [secret][secret] again; [secret] huntr2 hunter";
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
        StreamRedactor redactor({"hunter2", "token-hunter2-x"});
        std::string out;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t length = random() % 9 + 1;
            out += redactor.add(std::string_view(text).substr(at, length));
            at += length;
        }
        out += redactor.flush();
        CHECK(out == clean);
    }
}

TEST_CASE(
    "the pump drains what a process prints: whole in the log, line by line to the listener, the last lines kept") {
    TempFile file;
    std::vector<std::string> lines;
    std::mutex mutex;
    auto output = std::make_shared<ProcessOutput>(BoundedLog::create(file.path, 1 << 20).value(),
                                                  std::vector<std::string>{"hunter2"}, [&](std::string_view line) {
                                                      const std::lock_guard lock(mutex);
                                                      lines.emplace_back(line);
                                                  });
    {
        OutputPump pump({});
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        pump.watch(UniqueFd(ends[0]), output);
        std::string text;
        for (int i = 0; i < 30; ++i) text += "line " + std::to_string(i) + "\r\n";
        text += "the password is hunter2\nno end of line";
        REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        ::close(ends[1]);
        for (const Deadline deadline = Deadline::in(Milliseconds(5'000)); !output->ended() && !deadline.passed();)
            ::usleep(1'000);
    }
    CHECK(output->ended());
    REQUIRE(lines.size() == 32);
    CHECK(lines[3] == "line 3");
    CHECK(lines[30] == "the password is [secret]");
    CHECK(lines[31] == "no end of line");
    CHECK(output->last_lines().size() == 20);
    CHECK(output->last_lines().back() == "no end of line");
    REQUIRE(output->finish());
    CHECK(read_file(file.path).value().find("hunter2") == std::string::npos);
}

TEST_CASE("a pipe that a grandchild holds open does not keep the pump from ending") {
    TempFile file;
    auto output = std::make_shared<ProcessOutput>(BoundedLog::create(file.path, 1 << 20).value(),
                                                  std::vector<std::string>(), ProcessOutput::LineListener());
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const UniqueFd held(ends[1]);
    {
        OutputPump pump({});
        pump.watch(UniqueFd(ends[0]), output);
        REQUIRE(::write(held.get(), "kept", 4) == 4);
    }
    REQUIRE(output->finish());
    CHECK(read_file(file.path).value() == "kept");
}
