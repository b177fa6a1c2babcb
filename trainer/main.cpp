// SPDX-License-Identifier: Apache-2.0
// paceline-train: the reference trainer, one process for each MPI rank.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>

#include "trainer/cli/option_table.h"
#include "trainer/cli/options.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/error.h"
#include "trainer/core/ranges.h"
#include "trainer/data/shapes.h"
#include "trainer/guard/agreement.h"
#include "trainer/pipeline/grid.h"
#include "trainer/run/faults.h"
#include "trainer/run/gpu_part.h"
#include "trainer/run/loop.h"
#include "trainer/run/start_up.h"
#include "trainer/updaters/kinds.h"

namespace {

using namespace paceline::train;
using Clock = std::chrono::steady_clock;

int make(const MakeDatasetOptions& options) {
  const bool jpeg = options.format == "jpeg";
  try {
    if (jpeg) {
      make_jpeg_dataset(options.directory, options.train, options.test, options.seed, options.image_size);
    } else {
      make_dataset(options.directory, options.train, options.test, options.seed);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "paceline-train: {}\n", error.what());
    return static_cast<int>(error.status);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "paceline-train: make-dataset: there is not enough memory: draw fewer images\n");
    return 1;
  }
  fmt::print("{}: {} training and {} test images of 10 classes, {}\n", options.directory.string(), options.train,
             options.test, jpeg ? "JPEGs" : "CIFAR-10's binary format");
  return 0;
}

std::string this_rank() {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return "paceline-train: ";
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("paceline-train: rank {} on {}: ", rank, host.data());
}

void print_error(const std::string& line) { fmt::print(stderr, "{}{}\n", this_rank(), with_option_names(line)); }

// For errors of one rank: the other ranks do not know of them and would wait for ever.
int abandon(const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  print_error(memory ? "there is not enough memory" : error.what());
  std::fflush(nullptr);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

// For errors that all ranks meet, such as those of the command line.
int refuse(const Error& error) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fmt::print(stderr, "paceline-train: {}\n", with_option_names(error.what()));
  return static_cast<int>(error.status);
}

int bench(const BenchAllreduceOptions& options) {
  try {
    return bench_allreduce(options, with_option_names);
  } catch (const Error& error) {
    return refuse(error);
  } catch (const std::exception& error) {
    return abandon(error);
  }
}

// pure_nccl if several ranks have a GPU each and the user has not chosen a communicator.
std::string communicator_name(const TrainOptions& options, const GpuPart* gpu, int ranks) {
  const bool free = !options.communicator_given && updater_kind(options.updater).allreduces;
  return free && gpu != nullptr && ranks > 1 && !options.share_gpu ? "pure_nccl" : options.communicator;
}

Communicator communicator_of(const TrainOptions& options, const GpuPart* gpu) {
  nccl::Options reduction = options.reduction;
  if (gpu == nullptr) return make_communicator(options.communicator, options.allreduce_dtype, reduction.ring_order);
  reduction.dtype = options.allreduce_dtype;
  if (reduction.registered && !nccl::uses_nccl(options.communicator)) {
    throw Error("‹registered-buffers›", fmt::format("communicator {} does not use NCCL", options.communicator),
                "take pure_nccl", Status::usage);
  }
  return gpu->make_communicator(options.communicator, reduction, std::make_unique<Ranks>(MPI_COMM_WORLD));
}

// The ranks of a pipeline; null if there is none.
std::unique_ptr<Grid> grid_of(const TrainOptions& options, int ranks) {
  const PipelineOptions& o = options.pipeline;
  if (!o.used()) return nullptr;
  if (ranks % o.stages != 0) {
    throw Error(fmt::format("‹pipeline-stages› {}", o.stages), fmt::format("does not divide the {} ranks", ranks),
                "start a multiple of that number", Status::usage);
  }
  return std::make_unique<Grid>(MPI_COMM_WORLD, o.stages, options.communicator, options.allreduce_dtype);
}

// Ends the job from a thread beside the main one, which may be waiting for ever: nothing is cleaned up.
[[noreturn]] void abandon_from_thread(const std::string& prefix, int ranks, const std::string& line) {
  fmt::print(stderr, "{}{}\n", prefix, with_option_names(line));
  std::fflush(stderr);
  alarm(10);  // in case MPI_Abort waits for the main thread
  if (ranks > 1) MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

int train_on_this_rank(const TrainOptions& options, const Communicator& communicator, const GpuPart* gpu,
                       const Grid* grid, Clock::time_point start, std::optional<Range>& startup) {
  std::unique_ptr<Job> job;  // outlives the handlers: its threads may wait for ranks that never come
  try {
    const auto abandon_job = [prefix = this_rank(), ranks = communicator.collectives->size()](const std::string& line) {
      abandon_from_thread(prefix, ranks, line);
    };
    job = start_up(options,
                   {.communicator = communicator, .start = start, .abandon = abandon_job, .gpu = gpu, .grid = grid});
    startup.reset();
    train(*job);
    return 0;
  } catch (const AgreedError& error) {
    if (communicator.collectives->rank() == error.reporter) print_error(error.what());
    return static_cast<int>(error.status);
  } catch (const std::exception& error) {
    return abandon(error);
  }
}

// The level of thread support that the updater needs from MPI_Init_thread.
int thread_level(const CommandLine& command) {
  if (command.action != CommandLine::Action::train || !updater_kind(command.train.updater).threaded) {
    return MPI_THREAD_FUNNELED;  // the loader's thread makes no MPI calls
  }
  // Open MPI waits in a loop that never sleeps. This setting makes the loop leave its core to a thread that computes.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  return MPI_THREAD_SERIALIZED;
}

int run(int argc, char** argv) {
  const auto start = Clock::now();
  std::optional<Range> startup(std::in_place, Category::startup);
  const CommandLine command = parse_command_line(argc, argv);
  if (command.action == CommandLine::Action::exit) return command.status;
  if (command.action == CommandLine::Action::make_dataset) return make(command.make_dataset);

  int provided = MPI_THREAD_SINGLE;
  const int wanted = thread_level(command);
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  int status = 0;
  if (command.action == CommandLine::Action::bench_allreduce) {
    startup.reset();
    status = bench(command.bench_allreduce);
  } else {
    try {
      if (provided < wanted) {
        throw Error("‹updater› " + command.train.updater, "this MPI library does not allow calls from a second thread",
                    "take allreduce", Status::usage);
      }
      const GpuPart* gpu = open_gpu(command.train.device, command.train.share_gpu);
      if (gpu == nullptr && command.train.dtype != "f32" && command.train.dtype != "bf16") {
        throw Error("‹dtype› " + command.train.dtype, "not available on CPUs, and ‹device› auto found no GPU",
                    "use f32", Status::usage);
      }
      TrainOptions options = command.train;
      int ranks = 1;
      MPI_Comm_size(MPI_COMM_WORLD, &ranks);
      options.communicator = communicator_name(options, gpu, ranks);
      check_updater(options.updater, ranks, options.communicator, options.allreduce_dtype);
      const Faults faults = parse_faults(options.faults, ranks);
      const bool divides = updater_kind(options.updater).has_option("bucket-mb");
      if (faults.tiny_buckets && (!divides || options.updater_values.contains("bucket-mb"))) {
        throw Error("‹fault› tiny-buckets", "only applies to ‹updater› overlap without ‹bucket-mb›", "", Status::usage);
      }
      if (faults.slow_layers.count() > 0 && options.pipeline.stages == 1) {
        throw Error("‹fault› slow-layers", "only applies to ‹pipeline-stages›", "", Status::usage);
      }
      const std::unique_ptr<Grid> grid = grid_of(options, ranks);
      const auto communicator = communicator_of(options, gpu);
      status = train_on_this_rank(options, communicator, gpu, grid.get(), start, startup);
    } catch (const Error& error) {
      status = refuse(error);
    }
  }
  MPI_Finalize();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // the last resort
    int began = 0, ended = 0;
    MPI_Initialized(&began);
    MPI_Finalized(&ended);
    if (began != 0 && ended == 0) return abandon(error);
    fmt::print(stderr, "paceline-train: {}\n", error.what());
    return 1;
  }
}
