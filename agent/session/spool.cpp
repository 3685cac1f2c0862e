#include "agent/session/spool.hpp"

#include "common/base/clock.hpp"
#include "common/base/file_tree.hpp"
#include "common/base/hash.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

namespace perfrig {

namespace {
constexpr const char* tried = "write to the spool";
constexpr const char* remedy = "free space on the file system of the state directory";
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr const char* start_file = "/start";

std::int64_t epoch_of_name(const std::string& name) {
    std::int64_t epoch = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), epoch);
    return error == std::errc() && end == name.data() + name.size() ? epoch : 0;
}

Result<void> make_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(errno, "make the folder", path);
    return {};
}

void sync_folder(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) ::fsync(fd.get());
}
} // namespace

Spool::Spool(std::string folder, std::int64_t epoch, const SpoolLimits& limits)
    : folder_(std::move(folder)), epoch_(epoch), limits_(limits) {
    start_ids_[epoch] = random_hex(16);
}

std::string Spool::epoch_folder(std::int64_t epoch) const { return folder_ + "/" + std::to_string(epoch); }

Result<std::unique_ptr<Spool>> Spool::open(const std::string& folder, std::int64_t epoch, const SpoolLimits& limits) {
    std::unique_ptr<Spool> spool(new Spool(folder, epoch, limits));
    PERFRIG_CHECK(make_folder(folder));
    PERFRIG_TRY(const auto names, FileTree(folder).list("/"));
    std::vector<std::int64_t> epochs;
    for (const std::string& name : names)
        if (const std::int64_t found = epoch_of_name(name); found > 0) epochs.push_back(found);
    std::sort(epochs.begin(), epochs.end());
    for (const std::int64_t old : epochs) {
        if (old >= epoch)
            return fail(ErrorKind::conflict, "open the spool", folder,
                        "it holds epoch " + std::to_string(old) + ", this start is epoch " + std::to_string(epoch),
                        "the file 'epoch' of the state directory was lost or put back: write a larger number into it");
        PERFRIG_CHECK(spool->recover_epoch(old));
    }
    spool->make_ballast();
    return spool;
}

Result<void> Spool::recover_epoch(std::int64_t epoch) {
    const std::string folder = epoch_folder(epoch);
    const FileTree tree(folder);
    PERFRIG_TRY(auto names, tree.list("/"));
    std::erase_if(names, [](const std::string& name) { return seq_of_segment_name(name) == 0; });
    std::deque<Segment> segments;
    std::uint64_t last_seq = 0;
    for (const std::string& name : names) {
        const std::string path = folder + "/" + name;
        PERFRIG_TRY(const std::string bytes, read_file(path));
        SegmentScan scan = scan_segment(bytes, epoch);
        // A torn end is what a kill leaves behind in the newest segment; anywhere else it is damage.
        if (scan.torn && name != names.back())
            scan.damage.push_back({epoch, scan.last_seq, 0, bytes.size() - scan.good_bytes, 0});
        if (scan.torn && ::truncate(path.c_str(), static_cast<off_t>(scan.good_bytes)) != 0)
            return fail_errno(errno, "cut the torn end off the spool's segment", path);
        damage_.insert(damage_.end(), scan.damage.begin(), scan.damage.end());
        if (scan.records == 0 || scan.first_seq <= last_seq) {
            ::unlink(path.c_str());
            continue;
        }
        last_seq = scan.last_seq;
        segments.push_back({path, scan.first_seq, scan.last_seq, scan.good_bytes});
    }
    if (segments.empty()) {
        remove_epoch(epoch);
        return {};
    }
    segments_[epoch] = std::move(segments);
    if (auto id = read_file(folder + start_file, 64); id && id->size() == 32) start_ids_[epoch] = std::move(*id);
    return {};
}

void Spool::remove_epoch(std::int64_t epoch) {
    ::unlink((epoch_folder(epoch) + start_file).c_str());
    ::rmdir(epoch_folder(epoch).c_str());
}

std::string Spool::start_id() const { return start_ids_.at(epoch_); }

void Spool::make_ballast() {
    if (ballast_ || limits_.ballast_bytes == 0) return;
    const std::string path = folder_ + "/ballast";
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ballast_ = fd && ::posix_fallocate(fd.get(), 0, static_cast<off_t>(limits_.ballast_bytes)) == 0;
    if (!ballast_) ::unlink(path.c_str());
}

bool Spool::drop_ballast() {
    if (!ballast_) return false;
    ballast_ = false;
    return ::unlink((folder_ + "/ballast").c_str()) == 0;
}

Result<void> Spool::new_segment() {
    PERFRIG_CHECK(make_folder(epoch_folder(epoch_)));
    if (last_seq_ == 0) PERFRIG_CHECK(write_file_atomically(epoch_folder(epoch_) + start_file, start_id(), 0600));
    const std::string path = epoch_folder(epoch_) + "/" + segment_name(last_seq_ + 1);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(errno, tried, path, remedy);
    if (file_) ::fdatasync(file_.get());
    sync_folder(epoch_folder(epoch_));
    sync_folder(folder_);
    file_ = std::move(fd);
    segments_[epoch_].push_back({path, last_seq_ + 1, last_seq_, 0});
    return {};
}

Result<void> Spool::write_whole(std::string_view bytes) {
    Segment& segment = segments_[epoch_].back();
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
        if (n > 0) {
            done += static_cast<std::size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        const int why = n < 0 ? errno : ENOSPC;
        if (::ftruncate(file_.get(), static_cast<off_t>(segment.bytes)) != 0)
            file_.reset(); // the next append: a new file
        return fail_errno(why, tried, segment.path, remedy);
    }
    return {};
}

Result<void> Spool::append(protocol::RecordKind kind, std::string_view payload) {
    if (payload.size() + protocol::record_overhead_bytes > protocol::most_record_bytes)
        return fail(ErrorKind::bad_input, tried, folder_,
                    "a record of " + std::to_string(payload.size()) + " bytes is longer than 1 MiB");
    const std::string bytes = protocol::encode_record({kind, last_seq_ + 1, std::string(payload)});
    if (!file_ || segments_[epoch_].empty() || segments_[epoch_].back().bytes + bytes.size() > limits_.segment_bytes)
        if (!file_ || segments_[epoch_].empty() || segments_[epoch_].back().bytes > 0) PERFRIG_CHECK(new_segment());
    PERFRIG_CHECK(write_whole(bytes));
    Segment& segment = segments_[epoch_].back();
    segment.bytes += bytes.size();
    segment.last_seq = ++last_seq_;
    const std::int64_t now = SystemClock().monotonic_ns();
    if (written_at_.empty() || now - written_at_.back().second > second_ns) written_at_.emplace_back(last_seq_, now);
    if (written_at_.size() > 100'000) written_at_.pop_front();
    return {};
}

Result<void> Spool::append_event(std::string_view payload) {
    std::function<void()> tell;
    {
        const std::lock_guard lock(mutex_);
        auto done = append(protocol::RecordKind::run_event, payload);
        if (!done && done.error().kind != ErrorKind::bad_input && drop_ballast())
            done = append(protocol::RecordKind::run_event, payload);
        if (!done) return done;
        tell = on_append_;
    }
    if (tell) tell();
    return {};
}

Result<EventSink::Stored> Spool::append_samples(std::string_view payload) {
    std::function<void()> tell;
    {
        const std::lock_guard lock(mutex_);
        if (bytes_unlocked() + payload.size() + limits_.event_reserve_bytes > limits_.most_bytes) {
            ++samples_refused_;
            return Stored::refused_full;
        }
        PERFRIG_CHECK(append(protocol::RecordKind::samples, payload));
        tell = on_append_;
    }
    if (tell) tell();
    return Stored::yes;
}

Result<void> Spool::sync() {
    int fd = -1;
    { // a copy of the descriptor: fdatasync may take long, and appends must not wait for it
        const std::lock_guard lock(mutex_);
        if (!file_) return {};
        fd = ::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0);
    }
    const UniqueFd copy(fd);
    if (!copy || ::fdatasync(copy.get()) != 0) return fail_errno(errno, "sync the spool", folder_, remedy);
    return {};
}

std::uint64_t Spool::last_sequence() const {
    const std::lock_guard lock(mutex_);
    return last_seq_;
}

std::uint64_t Spool::bytes_unlocked() const {
    std::uint64_t bytes = 0;
    for (const auto& [epoch, segments] : segments_)
        for (const Segment& segment : segments) bytes += segment.bytes;
    return bytes;
}

void Spool::on_append(std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    on_append_ = std::move(callback);
}

std::vector<SpoolDamage> Spool::take_damage() {
    const std::lock_guard lock(mutex_);
    return std::move(damage_);
}

} // namespace perfrig
