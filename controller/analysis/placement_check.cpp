#include "controller/analysis/placement_check.hpp"

#include "common/base/cpu_list.hpp"

#include <algorithm>

namespace perfrig::analysis {

namespace {

struct Judge {
    const RunData& data;
    Evaluation out;

    // The agent judges as it reads, thread by thread; what it said already is not said twice.
    bool agent_said(std::string_view check, std::string_view subject, model::Severity severity) const {
        return std::ranges::any_of(data.findings, [&](const model::Finding& f) {
            return f.source == "agent" && f.check_name == check && f.subject == subject && f.severity == severity;
        });
    }

    void find(const char* check, model::Severity severity, const std::string& subject, std::string message,
              Json evidence) {
        if (severity == model::Severity::void_) out.void_run = true;
        if (agent_said("placement", subject, severity) || agent_said(check, subject, severity)) return;
        model::Finding one;
        one.run_id = data.run;
        one.check_name = check;
        one.severity = severity;
        one.subject = subject;
        one.message = std::move(message);
        one.evidence = std::move(evidence);
        one.source = "analysis";
        out.findings.push_back(std::move(one));
    }

    void judge(const model::Process& process);
};

void Judge::judge(const model::Process& process) {
    if (process.granted_cpus.empty()) return; // it was not pinned: nothing was promised
    const auto granted = CpuList::parse(process.granted_cpus);
    const auto observed = CpuList::parse(process.observed_cpus);
    const Json evidence{{"granted", process.granted_cpus}, {"observed", process.observed_cpus}};
    if (!granted || !observed) {
        find("placement_unreadable", model::Severity::warning, process.name,
             process.name + ": the CPU lists can't be understood: " + (granted ? observed : granted).error().text(),
             evidence);
    } else if (observed->empty()) {
        find("placement_not_read", model::Severity::warning, process.name,
             process.name + " was granted " + process.granted_cpus +
                 "; which CPUs its threads had was not read back during measure",
             evidence);
    } else if (!granted->contains_all(*observed)) {
        find("placement_outside_grant", model::Severity::void_, process.name,
             process.name + " could run on " + process.observed_cpus + ", outside its grant " + process.granted_cpus +
                 ": CPUs " + observed->without(*granted).text() + " were not its own",
             evidence);
    } else if (*observed != *granted) {
        find("placement_narrower", model::Severity::info, process.name,
             process.name + " ran on " + process.observed_cpus + " only, of its grant " + process.granted_cpus,
             evidence);
    }
}

} // namespace

Evaluation check_placement(const RunData& data) {
    Judge judge{data, {}};
    const auto window = measure_window(data.phases);
    for (const model::Process& process : data.processes) {
        const bool measured = window && process.started_ns < window->end_ns &&
                              process.ended_ns.value_or(window->end_ns) > window->start_ns;
        if (measured) judge.judge(process);
    }
    const auto told = [&](const model::Finding& f) { return f.check_name == "shared_cpus"; };
    if (std::ranges::none_of(data.findings, told)) {
        for (auto one = data.roles.begin(); one != data.roles.end(); ++one)
            for (auto other = std::next(one); other != data.roles.end(); ++other) {
                const auto first = CpuList::parse(one->second), second = CpuList::parse(other->second);
                if (!first || !second || first->both(*second).empty()) continue;
                judge.find("shared_cpus", model::Severity::warning, one->first + ", " + other->first,
                           "the roles " + one->first + " and " + other->first + " share CPUs " +
                               first->both(*second).text() + ": each takes time from the other",
                           {{one->first, one->second}, {other->first, other->second}});
            }
    }
    return std::move(judge.out);
}

Evaluation evaluate(const RunData& data) {
    Evaluation out = check_placement(data);
    Evaluation derived = derive(data);
    out.metrics.insert(out.metrics.end(), derived.metrics.begin(), derived.metrics.end());
    out.findings.insert(out.findings.end(), derived.findings.begin(), derived.findings.end());
    for (const model::Finding& finding : data.findings)
        if (finding.source == "agent" && finding.severity == model::Severity::void_) out.void_run = true;
    return out;
}

} // namespace perfrig::analysis
