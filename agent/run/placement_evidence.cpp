#include "agent/run/placement_evidence.hpp"

namespace perfrig {

void PlacementEvidence::add(const ThreadAffinity& thread) {
    ++readings_;
    cpus_ = cpus_.either(thread.cpus);
    nodes_ = nodes_.either(thread.nodes);
    if (granted_.empty() || compare_affinity(granted_, thread.cpus) != AffinityFit::outside) return;
    if (++outside_ == 1)
        first_outside_ =
            "thread " + std::to_string(thread.tid) + " (" + thread.comm + ") on CPUs " + thread.cpus.text();
}

protocol::ProcessObserved PlacementEvidence::observed(int ordinal) const {
    return {ordinal, cpus_.text(), nodes_.text()};
}

std::optional<protocol::Found> PlacementEvidence::finding() const {
    if (granted_.empty()) return std::nullopt;
    const Json evidence = {{"granted_cpus", granted_.text()},
                           {"observed_cpus", cpus_.text()},
                           {"readings", readings_},
                           {"readings_outside", outside_}};
    // It was pinned before its first instruction; that nobody looked while it lived is a gap, not a breach.
    if (empty())
        return protocol::Found{"placement", "warning", process_,
                               process_ + " was granted CPUs " + granted_.text() +
                                   ", but ended before the affinity of any of its threads could be read",
                               evidence};
    if (outside_ > 0)
        return protocol::Found{
            "placement", "void", process_,
            process_ + " was granted CPUs " + granted_.text() + " and ran outside them: " + first_outside_, evidence};
    if (compare_affinity(granted_, cpus_) == AffinityFit::narrower)
        return protocol::Found{
            "placement", "info", process_,
            process_ + " was granted CPUs " + granted_.text() + " and kept itself to " + cpus_.text(), evidence};
    return std::nullopt;
}

} // namespace perfrig
