// The collectors of the whole machine: CPU times, memory, frequency and throttling, and what the agent itself costs.
//
//   cpu_{user,nice,system,idle,iowait,irq,softirq,steal}_seconds   label cpu; clock ticks of /proc/stat; guest time is
//                                                                  part of user and nice, as the kernel counts it
//   memory_{available,free,buffers,cached,anonymous,dirty}_bytes, swap_used_bytes
//   cpu_frequency_hertz                      label cpu; scaling_cur_freq: on some drivers the last request, not a
//                                            measurement; reading it may interrupt the CPU, so once a second at most
//   cpu_core_throttles, cpu_package_throttles label cpu; x86 thermal throttling events since boot
//   agent_cpu_seconds                        this process (all threads) and its reader of thread counts: user, system
#pragma once

#include "agent/collectors/collector.hpp"
#include "agent/collectors/kept_file.hpp"
#include "common/base/file_tree.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace perfrig {

// A file for the whole machine, read whole at each tick.
class MachineFile {
  public:
    MachineFile(const FileTree& tree, std::string_view path) : path_(tree.real_path(path)) {}
    Reading read() { return file_.read(AT_FDCWD, path_.c_str(), buffer_, budget_); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    std::vector<char> buffer_ = std::vector<char>(512 * 1024); // /proc/stat lists every interrupt of large machines
    OpenFileBudget budget_{1};
    KeptFile file_;
};

class ThreadCountsClient;

class CpuCollector final : public Collector {
  public:
    explicit CpuCollector(const FileTree& tree);
    std::string_view name() const override { return "cpu"; }
    void tick(std::int64_t now_ns, SampleSink& sink) override;
    void forget_series() override { ids_.clear(); }

  private:
    static constexpr std::size_t kinds = 8;
    MachineFile file_;
    double ticks_per_second_;
    std::map<int, std::array<int, kinds>> ids_; // by CPU
};

class MemoryCollector final : public Collector {
  public:
    explicit MemoryCollector(const FileTree& tree);
    std::string_view name() const override { return "memory"; }
    void tick(std::int64_t now_ns, SampleSink& sink) override;
    void forget_series() override { ids_.clear(); }

  private:
    void add(const char* name, double bytes, SampleSink& sink);
    MachineFile file_;
    std::map<std::string, int> ids_;
};

// Files that the machine doesn't have when the collector is made are no error: their series are absent.
class FrequencyCollector final : public Collector {
  public:
    explicit FrequencyCollector(const FileTree& tree);
    std::string_view name() const override { return "frequency"; }
    void tick(std::int64_t now_ns, SampleSink& sink) override;
    void forget_series() override;

  private:
    struct Source {
        std::string path, series, unit, cpu;
        SeriesKind kind;
        double factor; // to the series' unit
        KeptFile file;
        int id = 0;
        bool broken = false; // reported once, then left alone
    };
    OpenFileBudget budget_;
    std::vector<std::unique_ptr<Source>> sources_;
};

class OverheadCollector final : public Collector {
  public:
    explicit OverheadCollector(const ThreadCountsClient* counts = nullptr) : counts_(counts) {}
    std::string_view name() const override { return "overhead"; }
    void tick(std::int64_t now_ns, SampleSink& sink) override;
    void forget_series() override { id_ = 0; }

  private:
    const ThreadCountsClient* counts_;
    int id_ = 0;
};

} // namespace perfrig
