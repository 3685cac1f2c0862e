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
        {"key": "requests_per_second", "title": "requests/s", "unit": "1/s", "metric": "requests_per_second", "labels": {}, "main": true},
        {"key": "latency_seconds{stat=mean}", "title": "latency mean", "unit": "s", "metric": "latency_seconds", "labels": {"stat": "mean"}, "main": true},
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
    CHECK(table.find("0.3100") != std::string::npos); // ms
    CHECK(table.find("[ms]") != std::string::npos);
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
    CHECK(results_as_table(results, false).find("replicates") == std::string::npos);
    values = Json::parse(R"([{"value": 8000.0}, {"value": 16000.0}])");
    CHECK(results_as_table(results, false).find("\nconnections=1: requests/s from 8,000 to 16,000 over 2 replicates") !=
          std::string::npos);
}

TEST_CASE("CSV holds every column in SI units with nothing in place of a missing value") {
    const std::string csv = results_as_csv(sample_results());
    CHECK(csv.starts_with("connections,requests_per_second [1/s],latency_seconds{stat=mean} "
                          "[s],bytes_read [bytes],n,outcome\r\n"));
    CHECK(csv.find("1,12345.678,0.00031,1000000000.0,2,\r\n") != std::string::npos);
    CHECK(csv.find("2,,,,0,\"1 voided, 1 failed: wrk hung, \"\"really\"\"\"\r\n") != std::string::npos);
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

TEST_CASE("numbers keep four significant digits whatever their size") {
    CHECK(readable_number(0, "ratio") == "0.0000");
    CHECK(readable_number(0.9981, "ratio") == "99.81");
    CHECK(readable_number(15690.4, "requests_per_second") == "15,690");
    CHECK(readable_number(1234567, "") == "1,234,567");
    CHECK(readable_number(-1234, "") == "-1,234");
    CHECK(readable_number(0.000254, "s") == "0.2540");
    CHECK(readable_number(0.0000001, "") == "1.000e-07");
    CHECK(readable_number(1e50, "1/s") == "1.000e+50");
    CHECK(readable_number(0.0000050124, "s") == "0.005012"); // 5 us: two digits would hide what is compared
}

TEST_CASE("columns align by what is seen, not by bytes") {
    CHECK(aligned({"a", "b"}, {{"\xc3\xa4", "1"}, {"xyz", "22"}}) == "a     b\n\xc3\xa4     1\nxyz  22\n");
    CHECK(aligned({"latency mean [ms]"}, {{"1"}}) == "  latency\nmean [ms]\n        1\n");
}
