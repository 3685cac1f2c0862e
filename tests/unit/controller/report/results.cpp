#include "controller/report/results.hpp"

#include "controller/report/text.hpp"
#include "tests/support/doctest.hpp"

using namespace perfrig;
using namespace perfrig::report;

namespace {
Json sample_results() {
    return Json::parse(R"({
      "submission": 7, "experiment": "web/scaling", "state": "completed", "factors": ["connections"],
      "columns": [
        {"key": "requests_per_second", "title": "requests/s", "unit": "1/s", "metric": "requests_per_second", "labels": {}, "main": true, "source": "tool"},
        {"key": "latency_seconds{stat=mean}", "title": "latency mean", "unit": "s", "metric": "latency_seconds", "labels": {"stat": "mean"}, "main": true, "source": "tool"},
        {"key": "bytes_read", "title": "bytes read", "unit": "bytes", "metric": "bytes_read", "labels": {}, "main": false}],
      "rows": [
        {"cell_key": "a", "levels": {"connections": "1"}, "n": 2, "voided": 0, "failed": 0, "refused": 0, "open": 0, "replicates": [],
         "values": {"requests_per_second": {"median": 12345.678, "values": []}, "latency_seconds{stat=mean}": {"median": 0.00031, "values": []},
                    "bytes_read": {"median": 1e9, "values": []}}},
        {"cell_key": "b", "levels": {"connections": "2"}, "n": 0, "voided": 1, "failed": 1, "refused": 0, "open": 0,
         "replicates": [{"run": 4, "replicate": 1, "attempt": 1, "state": "failed", "verdict": "unreviewed", "reason": "wrk hung, \"really\""}],
         "values": {}}]})");
}
} // namespace

TEST_CASE("the table shows medians in readable units and says why a cell has none") {
    const std::string table = results_as_table(sample_results(), false);
    CHECK(table.find("12,346") != std::string::npos);
    CHECK(table.find(" 310 ") != std::string::npos); // us
    CHECK(table.find("[us]") != std::string::npos);
    CHECK(table.find("1 voided, 1 failed: wrk hung") != std::string::npos);
    CHECK(table.find("bytes read") == std::string::npos); // not a main column
    CHECK(table.find("\x1b") == std::string::npos);
    CHECK(results_as_table(sample_results(), true).find("\x1b[31m") != std::string::npos);
}

TEST_CASE("cancelled runs are not called failed") {
    Json results = sample_results();
    results["rows"][1]["failed"] = 2;
    results["rows"][1]["voided"] = 0;
    results["rows"][1]["replicates"][0]["state"] = "cancelled";
    const std::string table = results_as_table(results, false);
    CHECK(table.find("1 failed, 1 cancelled: wrk hung") != std::string::npos);
    results["rows"][1]["failed"] = 1;
    CHECK(results_as_table(results, false).find("failed") == std::string::npos);
}

TEST_CASE("the table says where replicates differ by more than a tenth of their median") {
    Json results = sample_results();
    Json& values = results["rows"][0]["values"]["requests_per_second"]["values"];
    values = Json::parse(R"([{"value": 12000.0}, {"value": 12600.0}])");
    CHECK(results_as_table(results, false).find("differ") == std::string::npos);
    values = Json::parse(R"([{"value": 8000.0}, {"value": 16000.0}])");
    CHECK(results_as_table(results, false)
              .find("\nreplicates differ by more than a tenth of the median of requests/s: connections=1\n") !=
          std::string::npos);
    // Of whatever a tool reports, and wherever its column stands.
    results["columns"].push_back({{"key", "evenness"},
                                  {"title", "evenness"},
                                  {"unit", "ratio"},
                                  {"metric", "evenness"},
                                  {"labels", Json::object()},
                                  {"main", true},
                                  {"source", "tool"}});
    results["rows"][0]["values"]["evenness"] =
        Json::parse(R"({"median": 0.5, "values": [{"value": 0.4}, {"value": 0.6}]})");
    CHECK(results_as_table(results, false).find("median of evenness: connections=1\n") != std::string::npos);
    results["columns"].back()["source"] = "derived";
    CHECK(results_as_table(results, false).find("median of evenness") == std::string::npos);
}

TEST_CASE("a median of fewer runs than the row has says of how many") {
    Json results = sample_results();
    Json& values = results["rows"][0]["values"]["requests_per_second"]["values"];
    values = Json::parse(R"([{"value": 12345.678}])");
    CHECK(results_as_table(results, false).find("12,346 (n=1)") != std::string::npos);
    CHECK(results_as_markdown(results).find("12,346 (n=1) |") != std::string::npos);
    values = Json::parse(R"([{"value": 12000.0}, {"value": 12691.356}])");
    CHECK(results_as_table(results, false).find("(n=") == std::string::npos);
}

TEST_CASE("CSV has a row a cell: every column in SI units with its spread, nothing in place of a missing value") {
    Json results = sample_results();
    results["rows"][0]["values"]["requests_per_second"]["values"] =
        Json::parse(R"([{"value": 12000.0}, {"value": 12691.356}])");
    results["rows"][1]["replicates"][0]["findings"] = 3;
    const std::string csv = results_as_csv(results);
    CHECK(
        csv.starts_with("connections,n,findings,outcome,requests_per_second.median [1/s],requests_per_second.min [1/s],"
                        "requests_per_second.max [1/s],requests_per_second.n,latency_seconds{stat=mean}.median [s],"));
    CHECK(csv.find("\r\n1,2,0,,12345.678,12000.0,12691.356,2,0.00031,0.00031,0.00031,0,") != std::string::npos);
    CHECK(csv.find("\r\n2,0,3,\"1 voided, 1 failed: wrk hung, \"\"really\"\"\",,,,0,,,,0,,,,0\r\n") !=
          std::string::npos);
}

TEST_CASE("CSV of runs has a row a run, good or not, each with as many fields as the header") {
    Json results = sample_results();
    results["rows"][0]["replicates"] = Json::parse(R"([
      {"run": 1, "replicate": 1, "attempt": 1, "state": "completed", "verdict": "unreviewed", "reason": "", "findings": 2},
      {"run": 2, "replicate": 2, "attempt": 2, "state": "completed", "verdict": "void", "reason": "outside", "findings": 1}])");
    results["rows"][0]["values"]["requests_per_second"]["values"] =
        Json::parse(R"([{"run": 1, "replicate": 1, "value": 12000.5}])");
    CHECK(results_as_csv_of_runs(results) ==
          "run,connections,replicate,attempt,state,verdict,findings,reason,requests_per_second "
          "[1/s],latency_seconds{stat=mean} [s],bytes_read [bytes]\r\n"
          "1,1,1,1,completed,unreviewed,2,,12000.5,,\r\n"
          "2,1,2,2,completed,void,1,outside,,,\r\n"
          "4,2,1,1,failed,unreviewed,0,\"wrk hung, \"\"really\"\"\",,,\r\n");
}

namespace {
Json with_findings() {
    Json results = sample_results();
    results["rows"][0]["replicates"] = Json::parse(R"([{"run": 1, "replicate": 1}, {"run": 2, "replicate": 2}])");
    results["findings"] = Json::parse(R"([
      {"check": "placement", "severity": "void", "subject": "nginx", "in": [{"run": 2, "message": "nginx ran | elsewhere"}]},
      {"check": "cpu_other", "severity": "warning", "subject": "app",
       "in": [{"run": 1, "message": "others: 12 %"}, {"run": 2, "message": "others: 9 %"}]},
      {"check": "shared_cpus", "severity": "warning", "subject": "load, monitor",
       "in": [{"run": 1, "message": "they share"}, {"run": 2, "message": "they share"}, {"run": 4, "message": "they share"}]},
      {"check": "tool_facts", "severity": "info", "subject": "wrk", "in": [{"run": 1, "message": "what wrk said"}]}])");
    results["finding_groups_left_out"] = 0;
    return results;
}
std::size_t times(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++count;
    return count;
}
} // namespace

TEST_CASE("what was found stands below the table: each kind once, with its runs") {
    const std::string table = results_as_table(with_findings(), false);
    CHECK(table.find("\nfindings\n  void  placement  1 run: connections=1 #2\n      nginx ran | elsewhere\n") !=
          std::string::npos);
    CHECK(table.find("  warning  cpu_other  2 runs: connections=1 #1 #2\n      the first: others: 12 %\n") !=
          std::string::npos);
    CHECK(table.find("  warning  shared_cpus  every run\n      they share\n") != std::string::npos);
    CHECK(times(table, "they share") == 1);
    CHECK(table.find("what wrk said") == std::string::npos);
    CHECK(table.find("1 kind of remark: see") != std::string::npos);
    const std::string markdown = results_as_markdown(with_findings());
    CHECK(markdown.find("* **void** `placement`, 1 run: connections=1 #2: nginx ran \\| elsewhere\n") !=
          std::string::npos);
    CHECK(results_as_table(sample_results(), false).find("findings") == std::string::npos);
}

TEST_CASE("a flood of findings is cut, and the rest counted") {
    Json results = with_findings();
    for (int i = 0; i < 40; ++i)
        results["findings"].push_back(
            {{"check", "odd"}, {"severity", "warning"}, {"in", {{{"run", 1}, {"message", std::string(5'000, 'x')}}}}});
    results["finding_groups_left_out"] = 7;
    const std::string table = results_as_table(results, false);
    CHECK(times(table, "  warning  ") + times(table, "  void  ") == 20);
    CHECK(table.find("30 kinds of findings more and 1 kind of remark") != std::string::npos);
    CHECK(table.size() < 20'000);
}

TEST_CASE("JUnit carries what was found of each run") {
    const Json runs = Json::parse(R"([
      {"id": 1, "levels": {}, "state": "completed", "verdict": "unreviewed", "reason": ""},
      {"id": 2, "levels": {}, "state": "completed", "verdict": "void", "reason": "it <ran> elsewhere"},
      {"id": 3, "levels": {}, "state": "completed", "verdict": "unreviewed", "reason": ""}])");
    const std::string xml = results_as_junit(with_findings(), runs);
    CHECK(xml.find("<system-out>warning cpu_other: others: 12 %&#10;warning shared_cpus: they share&#10;</system-out>"
                   "</testcase>") != std::string::npos);
    CHECK(xml.find("it &lt;ran&gt; elsewhere\">run 2</failure><system-out>void placement: nginx ran | elsewhere") !=
          std::string::npos);
    CHECK(times(xml, "<system-out>") == 2);
    CHECK(times(xml, "</testcase>") == 2);
}

TEST_CASE("rates and times show half of their range, aligned, and a legend says so") {
    Json results = sample_results();
    results["rows"][0]["values"]["requests_per_second"]["values"] =
        Json::parse(R"([{"value": 12200.0}, {"value": 12492.0}])");
    Json second = results["rows"][0];
    second["levels"]["connections"] = "100";
    second["values"]["requests_per_second"] =
        Json::parse(R"({"median": 99.66, "values": [{"value": 99.0}, {"value": 100.32}]})");
    results["rows"].push_back(second);
    const std::string table = results_as_table(results, false);
    CHECK(table.find("12,346 \xc2\xb1"
                     "146") != std::string::npos);
    CHECK(table.find("  99.7 \xc2\xb1"
                     "0.7") != std::string::npos);
    CHECK(table.find("half of their range") != std::string::npos);
    CHECK(results_as_table(sample_results(), false).find("half of their range") == std::string::npos);
}

TEST_CASE("Markdown has a rule below its header and as many cells in every line") {
    const std::string markdown = results_as_markdown(sample_results());
    std::size_t lines = 0, bars = 0;
    for (const char c : markdown) lines += c == '\n', bars += c == '|';
    CHECK(lines == 4);
    CHECK(bars == 4 * 6);
}

TEST_CASE("JUnit counts a void run as a failure and a refused one as skipped") {
    const Json runs = Json::parse(R"([
      {"id": 1, "levels": {"c": "1"}, "replicate": 1, "attempt": 1, "state": "completed", "verdict": "unreviewed", "reason": ""},
      {"id": 2, "levels": {"c": "<2>"}, "replicate": 1, "attempt": 1, "state": "completed", "verdict": "void", "reason": ""},
      {"id": 3, "levels": {"c": "3"}, "replicate": 1, "attempt": 2, "state": "failed", "verdict": "unreviewed", "reason": "a & b"},
      {"id": 4, "levels": {"c": "4"}, "replicate": 1, "attempt": 1, "state": "refused", "verdict": "unreviewed", "reason": "EPERM"}])");
    const std::string xml = results_as_junit(sample_results(), runs);
    CHECK(xml.find("tests=\"4\" failures=\"2\" skipped=\"1\"") != std::string::npos);
    CHECK(xml.find("c=&lt;2&gt;") != std::string::npos);
    CHECK(xml.find("a &amp; b") != std::string::npos);
}

TEST_CASE("of interrupted attempts only one that nothing came behind is a failure") {
    const Json runs = Json::parse(R"([
      {"id": 1, "levels": {}, "attempt": 1, "state": "interrupted", "verdict": "unreviewed", "reason": "killed", "retry_of": null},
      {"id": 2, "levels": {}, "attempt": 2, "state": "completed", "verdict": "unreviewed", "reason": "", "retry_of": 1},
      {"id": 3, "levels": {}, "attempt": 3, "state": "interrupted", "verdict": "unreviewed", "reason": "killed", "retry_of": null}])");
    const std::string xml = results_as_junit(sample_results(), runs);
    CHECK(xml.find("tests=\"3\" failures=\"1\" skipped=\"1\"") != std::string::npos);
}

TEST_CASE("numbers have three significant digits, whatever their size, and keep their whole part") {
    CHECK(readable_number(0) == "0");
    CHECK(readable_number(99.81) == "99.8");
    CHECK(readable_number(9.996) == "10.0");
    CHECK(readable_number(999.6) == "1,000");
    CHECK(readable_number(15690.4) == "15,690");
    CHECK(readable_number(1234567) == "1,234,567");
    CHECK(readable_number(-1234) == "-1,234");
    CHECK(readable_number(-0.0254) == "-0.0254");
    CHECK(readable_number(0.0000001) == "1.00e-07");
    CHECK(readable_number(1e50) == "1.00e+50");
}

TEST_CASE("times of a column have the unit that suits them all") {
    const auto unit = [](std::vector<double> values) { return scale_of(values, "s").unit; };
    CHECK(unit({0.5, 2}) == "ms");
    CHECK(unit({1.2, 90}) == "s");
    CHECK(unit({30e-6, 4e-3}) == "us");
    CHECK(unit({30e-6, 0.5}) == "ms"); // 500,000 us can't be read
    CHECK(unit({5e-9, 90e-9}) == "ns");
    CHECK(unit({0, 3e-3}) == "ms");
    CHECK(unit({0.9999e-3}) == "ms"); // reads 1.00
    CHECK(unit({}) == "s");
    CHECK(scale_of({}, "ratio").unit == "%");
    CHECK(scale_of({}, "B").factor == 1);
}

TEST_CASE("columns align by what is seen, not by bytes") {
    CHECK(aligned({"a", "b"}, {{"\xc3\xa4", "1"}, {"xyz", "22"}}) == "a     b\n\xc3\xa4     1\nxyz  22\n");
    CHECK(aligned({"latency mean [ms]"}, {{"1"}}) == "  latency\nmean [ms]\n        1\n");
}
