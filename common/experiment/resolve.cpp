#include "common/base/cpu_list.hpp"
#include "common/experiment/document.hpp"
#include "common/experiment/plan.hpp"

#include <algorithm>

namespace perfrig {

namespace {

Error refuse(const Experiment& experiment, std::string why, std::string remedy) {
    return fail(ErrorKind::bad_input, "resolve a run of", experiment.name, std::move(why), std::move(remedy));
}

std::set<std::string> roles_used(const ResolvedRun& run) {
    std::set<std::string> roles;
    for (const ServiceSpec& service : run.services) roles.insert(service.role);
    for (const ToolSpec& tool : run.tools) roles.insert(tool.role);
    if (!run.build.empty() && !run.build_role.empty()) roles.insert(run.build_role);
    return roles;
}

std::string list_of(const std::map<std::string, std::string>& roles) {
    std::string out;
    for (const auto& [role, cpus] : roles) out += (out.empty() ? "" : ", ") + role;
    return out.empty() ? "none" : out;
}

Result<std::string> granted(const Experiment& experiment, const std::string& role, const RoleGrants& grants) {
    const auto found = grants.roles.find(role);
    if (found != grants.roles.end()) return found->second;
    return refuse(experiment,
                  "it uses the role '" + role + "', which the machine's profile does not have (it has " +
                      list_of(grants.roles) + ")",
                  "give '" + role + "' CPUs in the profile, or choose another machine");
}

// The first CPUs of a made role's sources, in the order in which these are named.
Result<CpuList> make_role(const Experiment& experiment, const std::string& role, const RoleRecipe& recipe,
                          const RoleGrants& grants) {
    CpuList cpus, all;
    for (const std::string& source : recipe.from) {
        PERFRIG_TRY(const std::string text, granted(experiment, source, grants));
        PERFRIG_TRY(const CpuList list, CpuList::parse(text));
        all = all.either(list);
        for (const int id : list)
            if (static_cast<int>(cpus.size()) < recipe.cpus) cpus.add(id);
    }
    if (static_cast<int>(cpus.size()) == recipe.cpus) return cpus;
    std::string from;
    for (const std::string& source : recipe.from) from += (from.empty() ? "" : " and ") + source;
    return refuse(experiment,
                  "the role '" + role + "' takes " + std::to_string(recipe.cpus) + " CPUs from " + from +
                      ", and the machine's profile gives these " + std::to_string(all.size()),
                  "give them more CPUs in the profile, or choose another machine");
}

// A made role may share CPUs wherever its sources may, and no further.
void extend_share(std::vector<std::vector<std::string>>& share, const std::string& role, const RoleRecipe& recipe,
                  const RoleGrants& grants, const CpuList& cpus) {
    const auto cpus_of = [&](const std::string& name) {
        const auto found = grants.roles.find(name);
        const Result<CpuList> list = found == grants.roles.end() ? CpuList() : CpuList::parse(found->second);
        return list ? *list : CpuList();
    };
    for (std::vector<std::string>& group : share) {
        CpuList covered, others;
        for (const std::string& member : group) {
            const bool source = std::find(recipe.from.begin(), recipe.from.end(), member) != recipe.from.end();
            (source ? covered : others) = (source ? covered : others).either(cpus_of(member));
        }
        if (!covered.empty() && covered.contains_all(cpus.both(others)) &&
            std::find(group.begin(), group.end(), role) == group.end())
            group.push_back(role);
    }
}

} // namespace

Result<ResolvedRun> resolve(const Experiment& experiment, const Cell& cell, int replicate, const RoleGrants& grants) {
    for (const Factor& factor : experiment.factors) {
        const auto level = cell.levels.find(factor.name);
        if (level == cell.levels.end() ||
            std::find(factor.levels.begin(), factor.levels.end(), level->second) == factor.levels.end())
            return refuse(experiment, "the cell has no level of its own for the factor '" + factor.name + "'",
                          "take cells from the experiment's plan");
    }
    Findings found;
    Parts parts;
    for (const Section& section : sections_of(*experiment.tree, experiment.factors))
        section.read(cell.levels, found, parts);
    if (!found.faults.empty()) // beyond the validator's bound on combinations
        return refuse(experiment, found.faults.front().text("line"), "mend the file");
    ResolvedRun run = std::move(parts.run);
    run.experiment = experiment.name;
    run.levels = cell.levels;
    run.replicate = replicate;
    run.secrets.assign(found.secrets.begin(), found.secrets.end());
    if (const YamlNode* ports = experiment.tree->find("ports"))
        for (const YamlNode& port : ports->items) run.ports.push_back(port.text);
    if (run.build_role.empty() && !run.build.empty())
        run.build_role = run.services.empty() ? run.tools.front().role : run.services.front().role;

    std::vector<std::vector<std::string>> share = grants.share;
    for (const std::string& role : roles_used(run)) {
        const auto recipe = parts.roles.find(role);
        if (recipe == parts.roles.end()) {
            PERFRIG_TRY(run.roles[role], granted(experiment, role, grants));
            continue;
        }
        PERFRIG_TRY(const CpuList cpus, make_role(experiment, role, recipe->second, grants));
        extend_share(share, role, recipe->second, grants, cpus);
        run.roles[role] = cpus.text();
    }
    if (const auto monitor = grants.roles.find("monitor"); monitor != grants.roles.end())
        run.roles.emplace("monitor", monitor->second);
    for (std::vector<std::string>& group : share) {
        std::erase_if(group, [&](const std::string& role) { return !run.roles.contains(role); });
        if (group.size() > 1) run.share.push_back(std::move(group));
    }
    return run;
}

std::vector<std::string> roles_needed(const Experiment& experiment) {
    std::set<std::string> needed;
    for (const Section& section : sections_of(*experiment.tree, experiment.factors)) {
        const bool names_roles =
            section.path.starts_with("services.") || section.path.starts_with("tools.") || section.path == "build";
        const Combinations combinations(experiment.factors, section.factors);
        for (std::uint64_t i = 0; names_roles && i < std::min<std::uint64_t>(combinations.size(), 10'000); ++i) {
            Findings found;
            Parts parts;
            section.read(combinations.at(i), found, parts);
            needed.merge(roles_used(parts.run));
        }
    }
    for (const Section& section : sections_of(*experiment.tree, experiment.factors)) {
        if (section.path != "roles") continue;
        Findings found;
        Parts parts;
        section.read(Combinations(experiment.factors, section.factors).at(0), found, parts);
        std::set<std::string> sources;
        for (const auto& [role, recipe] : parts.roles)
            if (needed.erase(role) > 0) sources.insert(recipe.from.begin(), recipe.from.end());
        needed.merge(sources);
    }
    return {needed.begin(), needed.end()};
}

} // namespace perfrig
