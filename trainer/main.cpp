// paceline-train: the reference trainer, one MPI rank a process.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>

#include "trainer/comm/communicator.h"
#include "trainer/data/shapes.h"
#include "trainer/error.h"
#include "trainer/loop/options.h"
#include "trainer/loop/training.h"
#include "trainer/ranges.h"

namespace {

using namespace paceline::train;

int make(const MakeDatasetOptions& options) {
  try {
    make_dataset(options.directory, options.train, options.test, options.seed);
  } catch (const Error& error) {
    fmt::print(stderr, "paceline-train: {}\n", error.what());
    return static_cast<int>(error.status);
  }
  fmt::print("{}: {} training and {} test images of 10 classes, CIFAR-10's binary format\n", options.directory.string(),
             options.train, options.test);
  return 0;
}

std::string who() {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return "paceline-train: ";
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("paceline-train: rank {} on {}: ", rank, host.data());
}

// For errors of one rank: the other ranks do not know and would wait for ever.
int abandon(const std::exception& error) {
  fmt::print(stderr, "{}{}\n", who(), error.what());
  std::fflush(nullptr);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

// For errors that all ranks meet alike, those of the command line.
int refuse(const Error& error) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fmt::print(stderr, "paceline-train: {}\n", error.what());
  return static_cast<int>(error.status);
}

int bench(const BenchAllreduceOptions& options) {
  try {
    return bench_allreduce(options);
  } catch (const Error& error) {
    return refuse(error);
  } catch (const std::exception& error) {
    return abandon(error);
  }
}

int train(const TrainOptions& options, Communicator& communicator, Training::Clock::time_point start,
          std::optional<Range>& startup) {
  try {
    Training training(options, communicator, start);
    startup.reset();
    training.run();
    return 0;
  } catch (const AgreedError& error) {
    if (communicator.rank() == error.reporter) fmt::print(stderr, "{}{}\n", who(), error.what());
    return error.status;
  } catch (const std::exception& error) {
    return abandon(error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = Training::Clock::now();
  std::optional<Range> startup(std::in_place, Category::startup);
  const CommandLine command = parse_command_line(argc, argv);
  if (command.action == CommandLine::Action::exit) return command.status;
  if (command.action == CommandLine::Action::make_dataset) return make(command.make_dataset);

  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);  // the loader's thread makes no MPI calls
  int status = 0;
  if (command.action == CommandLine::Action::bench_allreduce) {
    startup.reset();
    status = bench(command.bench_allreduce);
  } else {
    try {
      const auto communicator = make_communicator(command.train.communicator, command.train.allreduce_dtype);
      status = train(command.train, *communicator, start, startup);
    } catch (const Error& error) {
      status = refuse(error);
    }
  }
  MPI_Finalize();
  return status;
}
