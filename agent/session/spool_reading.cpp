// The spool's other half: reading back for the link, and forgetting what is acknowledged.
#include "agent/session/spool.hpp"

#include "common/base/clock.hpp"
#include "common/protocol/run_event.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

namespace perfrig {

namespace {

// `most` bytes from `offset`; fewer at the end of the file.
Result<std::string> read_range(const std::string& path, std::uint64_t offset, std::size_t most) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "read the spool", path);
    std::string bytes(most, '\0');
    std::size_t done = 0;
    while (done < most) {
        const ssize_t n = ::pread(fd.get(), bytes.data() + done, most - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "read the spool", path);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    bytes.resize(done);
    return bytes;
}

// Stands in for a record that is lost for good, so that the stream has no gap: the controller takes sequence numbers
// one by one. It voids the run that the record was about, as far as that can be told.
std::string stand_in(std::int64_t epoch, std::uint64_t seq, std::int64_t run) {
    protocol::SpoolRecord record{protocol::RecordKind::run_event, seq, R"({"event":"record_lost"})"};
    if (run != 0)
        record.payload = protocol::encode(
            protocol::RunEvent{run, 0, 0,
                               protocol::Found{"spool", "void", "spool",
                                               "record " + std::to_string(seq) + " of the agent's start " +
                                                   std::to_string(epoch) + " was damaged on its disk and is lost"}});
    return protocol::encode_record(record);
}

} // namespace

Result<std::optional<SpoolChunk>> Spool::read_after(SpoolPosition after, std::size_t most_bytes) {
    const std::lock_guard lock(mutex_);
    for (const auto& [epoch, segments] : segments_) {
        if (epoch < after.epoch) continue;
        const auto known = acknowledged_.find(epoch);
        const std::uint64_t seq =
            std::max(epoch == after.epoch ? after.seq : 0, known == acknowledged_.end() ? 0 : known->second);
        for (const Segment& segment : segments) {
            if (segment.last_seq <= seq || segment.bytes == 0) continue;
            const bool goes_on = last_read_.path == segment.path && last_read_.seq == seq;
            // From where the last read ended; else from the segment's beginning, over what is dealt with.
            const std::uint64_t offset = goes_on ? last_read_.offset : 0;
            const std::size_t want = goes_on ? most_bytes + protocol::most_record_bytes : segment.bytes;
            PERFRIG_TRY(const std::string bytes,
                        read_range(segment.path, offset, std::min<std::size_t>(want, segment.bytes - offset)));
            SpoolChunk chunk{epoch, 0, 0, {}};
            std::string_view left = bytes;
            std::uint64_t last = seq;
            while (!left.empty()) {
                const std::string_view before = left;
                const auto record = protocol::take_record(left);
                if (!record) { // found at the start (take_damage) or come since: skip it the same way
                    left = before;
                    if (record.error().kind == ErrorKind::unavailable || !skip_to_good_record(left, last)) break;
                    continue;
                }
                if (record->seq <= seq) continue;
                const std::string_view raw = before.substr(0, before.size() - left.size());
                const auto fits = [&](std::size_t more) {
                    return chunk.records.empty() || chunk.records.size() + more <= most_bytes;
                };
                bool full = false;
                const auto put = [&](std::uint64_t number, std::string_view bytes_of) {
                    full = !fits(bytes_of.size());
                    if (full) return;
                    if (chunk.records.empty()) chunk.first_seq = number;
                    chunk.last_seq = last = number;
                    chunk.records += bytes_of;
                };
                const std::int64_t run = record->seq > last + 1 ? run_of(*record) : 0;
                while (!full && last + 1 < record->seq) put(last + 1, stand_in(epoch, last + 1, run));
                if (!full) put(record->seq, raw);
                if (full) {
                    left = before;
                    break;
                }
            }
            if (chunk.records.empty()) { // the disk went bad under us: what is behind it still counts
                if (unreadable_.insert(segment.path).second)
                    damage_.push_back({epoch, seq, segment.last_seq + 1, segment.bytes, 0});
                continue;
            }
            last_read_ = {segment.path, offset + (bytes.size() - left.size()), chunk.last_seq};
            return std::optional<SpoolChunk>(std::move(chunk));
        }
    }
    return std::optional<SpoolChunk>();
}

void Spool::acknowledge(SpoolPosition upto) {
    const std::lock_guard lock(mutex_);
    auto& known = acknowledged_[upto.epoch];
    known = std::max(known, upto.seq);
    const auto found = segments_.find(upto.epoch);
    if (found == segments_.end()) return;
    auto& segments = found->second;
    while (!segments.empty() && segments.front().last_seq <= known && segments.front().bytes > 0) {
        // The open segment goes too once all of it is stored; the next append begins another.
        if (upto.epoch == epoch_ && segments.size() == 1) {
            if (segments.front().bytes < limits_.segment_bytes / 8) break; // not for every small ack
            file_.reset();
        }
        ::unlink(segments.front().path.c_str());
        segments.pop_front();
    }
    if (segments.empty()) {
        if (upto.epoch != epoch_) remove_epoch(upto.epoch);
        segments_.erase(found);
    }
    if (upto.epoch == epoch_)
        while (!written_at_.empty() && written_at_.front().first <= known) written_at_.pop_front();
    make_ballast();
}

std::vector<protocol::SpoolRange> Spool::ranges() const {
    const std::lock_guard lock(mutex_);
    std::vector<protocol::SpoolRange> out;
    for (const auto& [epoch, segments] : segments_)
        if (!segments.empty() && segments.back().last_seq > 0)
            out.push_back({epoch, segments.front().first_seq, segments.back().last_seq,
                           start_ids_.contains(epoch) ? start_ids_.at(epoch) : ""});
    return out;
}

SpoolFigures Spool::figures() const {
    const std::lock_guard lock(mutex_);
    SpoolFigures out;
    out.bytes = bytes_unlocked();
    out.samples_refused = samples_refused_;
    for (const auto& [epoch, segments] : segments_) {
        const auto known = acknowledged_.find(epoch);
        const std::uint64_t acknowledged = known == acknowledged_.end() ? 0 : known->second;
        for (const Segment& segment : segments)
            if (segment.last_seq > acknowledged)
                out.records += segment.last_seq - std::max(acknowledged, segment.first_seq - 1);
    }
    if (!written_at_.empty()) out.oldest_age_ns = SystemClock().monotonic_ns() - written_at_.front().second;
    return out;
}

} // namespace perfrig
