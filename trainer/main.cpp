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

std::string who(const Communicator& communicator) {
  if (communicator.size() == 1) return "paceline-train: ";
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("paceline-train: rank {} on {}: ", communicator.rank(), host.data());
}

int train(const TrainOptions& options, Communicator& communicator, Training::Clock::time_point start,
          std::optional<Range>& startup) {
  try {
    Training training(options, communicator, start);
    startup.reset();
    training.run();
    return 0;
  } catch (const AgreedError& error) {
    if (communicator.rank() == error.reporter) fmt::print(stderr, "{}{}\n", who(communicator), error.what());
    return error.status;
  } catch (const std::exception& error) {
    // The other ranks do not know and would wait for ever.
    fmt::print(stderr, "{}{}\n", who(communicator), error.what());
    std::fflush(nullptr);
    if (communicator.size() > 1) MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
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
  {
    const auto communicator = make_communicator(command.train.communicator);
    status = train(command.train, *communicator, start, startup);
  }
  MPI_Finalize();
  return status;
}
