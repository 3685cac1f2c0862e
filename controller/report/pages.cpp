#include "controller/report/pages.hpp"

#include <algorithm>

namespace perfrig::report {

namespace {

template <class Same> Json* find(Json& list, Same same) {
    const auto found = std::find_if(list.begin(), list.end(), same);
    return found == list.end() ? nullptr : &*found;
}

void add_column(Json& columns, Json column) {
    Json* known = find(columns, [&](const Json& one) { return one.at("key") == column.at("key"); });
    if (!known)
        columns.push_back(std::move(column));
    else if (column.value("main", false)) // with the title that it has as such
        *known = std::move(column);
}

void add_group(Json& groups, Json group) {
    Json* known = find(groups, [&](const Json& one) {
        return one.at("check") == group.at("check") && one.at("severity") == group.at("severity") &&
               one.at("subject") == group.at("subject") && one.at("kind") == group.at("kind");
    });
    if (!known) return groups.push_back(std::move(group));
    for (Json& one : group.at("in")) known->at("in").push_back(std::move(one));
}

} // namespace

void add_page(Json& results, Json page) {
    for (Json& column : page.at("columns")) add_column(results.at("columns"), std::move(column));
    for (Json& row : page.at("rows")) results.at("rows").push_back(std::move(row));
    for (Json& group : page.at("findings")) add_group(results.at("findings"), std::move(group));
    results["finding_groups_left_out"] =
        results.value("finding_groups_left_out", 0) + page.value("finding_groups_left_out", 0);
}

} // namespace perfrig::report
