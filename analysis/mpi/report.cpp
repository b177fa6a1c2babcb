// SPDX-License-Identifier: Apache-2.0
// paceline-report-mpi: `paceline report` by several processes that mpirun started. `paceline` itself does not need MPI;
// it becomes this program where it finds that it is one of several processes.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "analysis/cli/commands.h"
#include "analysis/cli/print_line.h"
#include "analysis/run/read_run.h"

namespace {

constexpr int work_failed = 1, wrong_usage = 2;

class MpiProcesses : public paceline::analysis::ReadingProcesses {
 public:
  MpiProcesses() {
    MPI_Comm_rank(MPI_COMM_WORLD, &number_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
  }
  std::size_t number() const override { return static_cast<std::size_t>(number_); }
  std::size_t count() const override { return static_cast<std::size_t>(count_); }

  // One process after the other, in pieces, since MPI counts with an int.
  std::vector<std::string> gather(const std::string& bytes) override {
    constexpr std::uint64_t piece = 1U << 30;
    std::uint64_t size = bytes.size();
    if (number_ > 0) {
      MPI_Send(&size, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
      for (std::uint64_t at = 0; at < size; at += piece) {
        MPI_Send(bytes.data() + at, static_cast<int>(std::min(piece, size - at)), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      }
      return {};
    }
    std::vector<std::string> all{bytes};
    for (int from = 1; from < count_; ++from) {
      for (int there = 0; there == 0;) {
        MPI_Iprobe(from, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        if (there == 0) pause();
      }
      MPI_Recv(&size, 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::string& received = all.emplace_back(size, '\0');
      for (std::uint64_t at = 0; at < size; at += piece) {
        MPI_Recv(received.data() + at, static_cast<int>(std::min(piece, size - at)), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      }
    }
    return all;
  }

  bool broadcast(bool value) override {
    int shared = value ? 1 : 0, done = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&shared, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) pause();
    return shared != 0;
  }

 private:
  // MPI waits in a loop, which would take a core from those that still work.
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

  int number_ = 0, count_ = 1;
};

void complain(std::string why) {
  std::ranges::replace(why, '\n', ' ');
  paceline::cli::print_line(stderr, "paceline report: {}", why);
}

// Only process 0 prints, also where the usage is wrong.
int run(int argc, char** argv, MpiProcesses& processes) {
  CLI::App app("Shares the ranks of a report over MPI", "paceline");
  app.require_subcommand(1);
  paceline::cli::Command chosen;
  paceline::cli::add_report(app, chosen, &processes);
  const bool speaks = processes.number() == 0;
  try {
    app.parse(argc, argv);
    const int status = chosen();
    if (speaks) paceline::cli::flush_output();
    return status;
  } catch (const CLI::ParseError& error) {
    if (!speaks) return 0;
    if (error.get_exit_code() == 0) return app.exit(error);
    complain(fmt::format("{}; see paceline report --help", error.what()));
    return wrong_usage;
  } catch (const std::bad_alloc&) {
    if (speaks) complain("not enough memory");
  } catch (const std::exception& error) {
    if (speaks) complain(error.what());
  }
  return speaks ? work_failed : 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = work_failed;
  {
    MpiProcesses processes;
    status = run(argc, argv, processes);
    processes.broadcast(true);  // the others wait here while process 0 writes the report
  }
  MPI_Finalize();
  return status;
}
