#include "controller/report/document.hpp"
#include "controller/report/results.hpp"
#include "controller/report/text.hpp"

#include <set>

namespace perfrig::report {

std::string results_as_junit(const Json& results, const Json& runs) {
    const std::string experiment = results.value("experiment", "");
    std::string cases;
    int failures = 0, skipped = 0, total = 0;
    const auto found = found_by_run(results);
    std::set<std::int64_t> tried_again;
    for (const Json& run : runs)
        if (const Json of = run.value("retry_of", Json()); of.is_number()) tried_again.insert(of.get<std::int64_t>());
    for (const Json& run : runs) {
        ++total;
        std::string name;
        if (const std::string levels = levels_text(run.at("levels")); !levels.empty()) name = levels + " ";
        name += "replicate " + std::to_string(run.value("replicate", 1));
        if (const int attempt = run.value("attempt", 1); attempt > 1) name += " attempt " + std::to_string(attempt);
        const std::string state = run.value("state", ""), verdict = run.value("verdict", ""),
                          reason = run.value("reason", "");
        const std::int64_t id = run.value("id", std::int64_t{0});
        std::string body;
        cases += "  <testcase classname=\"" + xml_text(experiment) + "\" name=\"" + xml_text(name) + "\"";
        // An interrupted attempt with another behind it is no loss; the last one is.
        const bool mended = state == "interrupted" && tried_again.contains(id);
        if (state == "refused" || state == "cancelled" || mended) {
            ++skipped;
            body = "<skipped message=\"" + xml_text(state + ": " + reason) + "\"/>";
        } else if (state != "completed" || verdict == "void") {
            ++failures;
            body = "<failure type=\"" + xml_text(verdict == "void" ? "void" : state) + "\" message=\"" +
                   xml_text(reason.empty() ? "see its findings" : reason) + "\">run " + std::to_string(id) +
                   "</failure>";
        }
        if (const auto text = found.find(id); text != found.end())
            body += "<system-out>" + xml_text(text->second) + "</system-out>";
        cases += body.empty() ? "/>\n" : ">" + body + "</testcase>\n";
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + xml_text(experiment) + "\" tests=\"" +
           std::to_string(total) + "\" failures=\"" + std::to_string(failures) + "\" skipped=\"" +
           std::to_string(skipped) + "\">\n" + cases + "</testsuite>\n";
}

} // namespace perfrig::report
