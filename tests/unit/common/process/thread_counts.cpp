// taskstats against the real kernel, and what is made of answers that aren't ones.
#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/process/affinity.hpp"
#include "common/process/thread_counts_channel.hpp"

#include "tests/support/doctest.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <mutex>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace perfrig;

namespace {

pid_t own_tid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

bool skipped(const Result<TaskStats>& stats) {
    if (stats) return false;
    const ErrorKind kind = stats.error().kind;
    CHECK((kind == ErrorKind::forbidden || kind == ErrorKind::not_found)); // and nothing else
    MESSAGE("skipped: " << stats.error().text());
    return true;
}

// Threads that wait until it goes.
struct Sleepers {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::vector<pid_t> tids;
    std::vector<std::thread> threads;
    explicit Sleepers(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            threads.emplace_back([this] {
                std::unique_lock lock(mutex);
                tids.push_back(own_tid());
                changed.notify_all();
                changed.wait(lock, [this] { return over; });
            });
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return tids.size() == count; });
    }
    ~Sleepers() {
        {
            const std::lock_guard lock(mutex);
            over = true;
        }
        changed.notify_all();
        for (auto& thread : threads) thread.join();
    }
};

std::uint64_t status_number(pid_t tid, const std::string& field) {
    const auto text = read_file("/proc/self/task/" + std::to_string(tid) + "/status").value();
    return std::stoull(text.substr(text.find("\n" + field + ":") + field.size() + 2));
}

} // namespace

TEST_CASE("taskstats counts the switches of sleeping threads as their status does, more than one batch of them") {
    auto stats = TaskStats::open();
    if (skipped(stats)) return;
    Sleepers sleepers(300);
    std::vector<pid_t> tids = sleepers.tids;
    tids.insert(tids.begin() + 7, 1 << 30); // no such thread
    const auto by_status = [&] {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
        for (const pid_t tid : sleepers.tids)
            all.emplace_back(status_number(tid, "voluntary_ctxt_switches"),
                             status_number(tid, "nonvoluntary_ctxt_switches"));
        return all;
    };
    std::vector<ThreadCounts> counts;
    const auto deadline = Deadline::in(Milliseconds(30'000));
    auto before = by_status();
    do {
        REQUIRE_FALSE(deadline.passed());
        before = by_status();
        REQUIRE(stats->read(tids, counts));
    } while (by_status() != before); // until the last of them sleeps
    REQUIRE(counts.size() == 301);
    CHECK(counts[7].tid == 1 << 30);
    CHECK(counts[7].alive == 0);
    counts.erase(counts.begin() + 7);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        REQUIRE(counts[i].tid == sleepers.tids[i]);
        REQUIRE(counts[i].alive == 1);
        CHECK(counts[i].voluntary == before[i].first);
        CHECK(counts[i].involuntary == before[i].second);
        if (counts[i].timeslices == 0) continue; // an older kernel
        CHECK(read_file("/proc/self/task/" + std::to_string(counts[i].tid) + "/schedstat").value() ==
              std::to_string(counts[i].cpu_ns) + " " + std::to_string(counts[i].run_queue_wait_ns) + " " +
                  std::to_string(counts[i].timeslices) + "\n");
    }
    CHECK(counts[0].voluntary >= 1);
    REQUIRE(stats->read({}, counts));
    CHECK(counts.empty());
}

TEST_CASE("age and name are the thread's own") {
    auto stats = TaskStats::open();
    if (skipped(stats)) return;
    const pid_t self = own_tid();
    std::vector<ThreadCounts> first, second;
    REQUIRE(stats->read({&self, 1}, first));
    std::string name = read_file("/proc/self/task/" + std::to_string(self) + "/comm").value();
    name.pop_back();
    CHECK(first[0].name() == name);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE(stats->read({&self, 1}, second));
    CHECK(second[0].age_us >= first[0].age_us + 20'000);
    CHECK(second[0].age_us < first[0].age_us + 10'000'000);
    CHECK(second[0].voluntary > first[0].voluntary); // it slept
}

TEST_CASE("what is no answer of the kernel is refused, however it is cut") {
    auto stats = TaskStats::open();
    if (skipped(stats)) return;
    std::vector<char> bytes(700, '\xff');
    for (std::size_t size = 0; size < bytes.size(); size += 3)
        CHECK_FALSE(parse_taskstats_answer({bytes.data(), size}));
    std::fill(bytes.begin(), bytes.end(), '\0');
    nlmsghdr header{};
    for (std::uint32_t length = 0; length < 600; ++length) { // a header, then attributes of zeros
        header.nlmsg_len = length;
        header.nlmsg_type = 31;
        std::memcpy(bytes.data(), &header, sizeof header);
        CHECK_FALSE(parse_taskstats_answer(bytes));
    }
    header.nlmsg_len = 36;
    header.nlmsg_seq = 5;
    header.nlmsg_type = NLMSG_ERROR;
    const auto with_error = [&](int error) {
        std::memcpy(bytes.data(), &header, sizeof header);
        std::memcpy(bytes.data() + sizeof header, &error, sizeof error);
        return parse_taskstats_answer(bytes);
    };
    REQUIRE(with_error(-ESRCH));
    CHECK(with_error(-ESRCH)->index == 5);
    CHECK_FALSE(with_error(-ESRCH)->alive);
    CHECK_FALSE(with_error(-EPERM));
}

TEST_CASE("the reader answers over its socket, tells what it cost, and ends when asked for what it never would be") {
    auto stats = TaskStats::open();
    if (skipped(stats)) return;
    for (const std::size_t rubbish : {std::size_t{3}, (ThreadCountsClient::most_threads_asked + 1) * sizeof(pid_t)}) {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        UniqueFd theirs(ends[1]);
        std::thread reader([&] {
            serve_thread_counts(*stats, theirs.get());
            theirs.reset();
        });
        ThreadCountsClient client{UniqueFd(ends[0])};
        const std::vector<pid_t> many(2 * ThreadCountsClient::most_threads_asked + 1, own_tid());
        const auto counts = client.read(many);
        REQUIRE(counts);
        REQUIRE(counts->size() == many.size());
        CHECK(counts->front().alive == 1);
        CHECK(counts->back().tid == own_tid());
        CHECK(client.reader() == ::getpid());
        CHECK(client.cpu_seconds() > 0);
        const std::vector<char> bytes(rubbish, 'x');
        REQUIRE(::send(ends[0], bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(rubbish));
        reader.join();
        const auto after = client.read(many);
        REQUIRE_FALSE(after);
        CHECK(after.error().kind == ErrorKind::unavailable);
        CHECK_FALSE(client.read(many)); // for good
    }
}

TEST_CASE("without CAP_NET_ADMIN taskstats is forbidden, whoever opened the socket") {
    const auto as_root = TaskStats::open();
    if (skipped(as_root)) return;
    const pid_t child = ::fork();
    if (child == 0) {
        auto opened_by_root = TaskStats::open();
        if (!opened_by_root || ::setuid(65534) != 0) ::_exit(1);
        std::vector<ThreadCounts> counts;
        const pid_t self = ::getpid();
        const auto read = opened_by_root->read({&self, 1}, counts);
        if (read || read.error().kind != ErrorKind::forbidden) ::_exit(2);
        const auto own = TaskStats::open();
        ::_exit(own || own.error().kind != ErrorKind::forbidden ? 3 : 0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("an affinity mask is what was set, of any thread, and a thread that isn't there is told") {
    AffinityMask mask;
    REQUIRE(read_affinity_mask(own_tid(), mask) == 0);
    const CpuList all = mask.list();
    REQUIRE_FALSE(all.empty());
    std::thread pinned([&] {
        CHECK(pin_this_thread({all.ids().back()}));
        AffinityMask own;
        REQUIRE(read_affinity_mask(own_tid(), own) == 0);
        CHECK(own.list() == CpuList{all.ids().back()});
        CHECK_FALSE(pin_this_thread({}));
        CHECK_FALSE(pin_this_thread({CpuList::most_cpus - 1}));
    });
    pinned.join();
    REQUIRE(read_affinity_mask(own_tid(), mask) == 0);
    CHECK(mask.list() == all);
    CHECK(read_affinity_mask(1 << 30, mask) == ESRCH);
}

TEST_CASE("where a sandbox or kernel has no netlink, taskstats is not found, which no agent stops for") {
    for (const int refusal : {EAFNOSUPPORT, EPROTONOSUPPORT}) {
        CAPTURE(refusal);
        sock_filter steps[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(refusal)),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const sock_fprog filter{std::size(steps), steps};
        constexpr int no_seccomp = 77;
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
                ::_exit(no_seccomp);
            const auto stats = TaskStats::open();
            ::_exit(!stats && stats.error().kind == ErrorKind::not_found ? 0 : 1);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        REQUIRE(WIFEXITED(status));
        if (WEXITSTATUS(status) == no_seccomp) {
            MESSAGE("skipped: this kernel takes no seccomp filter");
            return;
        }
        CHECK(WEXITSTATUS(status) == 0);
    }
}
