// SPDX-License-Identifier: Apache-2.0
// What the recorder costs a training step: recording is switched on and off step by step inside one process, in pairs,
// so that the machine's drift meets both alike. Prints the difference of the pairs with its 95 % interval (bootstrap
// over pairs), and beside it what the recorder costs by itself, which noise does not reach: the events of a step times
// the cost of one, and the CPU time of the recorder's threads.
//
//   paceline record -o DIR -- step_overhead [PAIRS [BATCH]]
#include <dlfcn.h>
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "profiler/format/reader.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/ranges.h"
#include "trainer/nn/model.h"
#include "trainer/optim/sgd.h"
#include "trainer/reporting/layer_ranges.h"
#include "trainer/updaters/updater.h"

namespace {

using namespace paceline::train;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

using Switch = int (*)(int);

// CPU time of the recorder's threads until now.
double recorder_seconds() {
  double ns = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    double of_task = 0;
    std::ifstream(task.path() / "comm") >> name;
    if (name.starts_with("paceline") && std::ifstream(task.path() / "schedstat") >> of_task) ns += of_task;
  }
  return 1e-9 * ns;
}

// Events that this process's file has until now: of ranges and MPI calls, for each iteration that was recorded.
double events_of_a_step() {
  namespace format = paceline::format;
  const char* output = std::getenv("PACELINE_OUTPUT");
  std::size_t events = 0, iterations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(output != nullptr ? output : ".")) {
    if (entry.path().extension() != ".pace") continue;
    const format::TraceFile file = format::read_trace_file(entry.path());
    if (file.header.pid != static_cast<std::uint32_t>(getpid())) continue;
    for (const format::Track& track : file.tracks) {
      for (std::size_t at = 0; at < track.slots.size(); at += 1 + format::extension_slots(track.slots[at])) {
        const auto type = static_cast<unsigned>(format::type_of(track.slots[at]));
        const auto category = track.slots[at].low >> 32 & 0xffff;
        if (type < 16 || type >= 48) continue;
        ++events;
        if (type == static_cast<unsigned>(format::EventType::push_payload) &&
            category == static_cast<std::uint64_t>(Category::iteration)) {
          ++iterations;
        }
      }
    }
  }
  return iterations > 0 ? static_cast<double>(events) / static_cast<double>(iterations) : 0;
}

// Thread time that recording a range adds: the least of some tries, with pauses for the recorder to write.
double seconds_of_a_range(Switch recording) {
  constexpr int ranges = 2000, tries = 30;
  double least[2] = {1, 1};
  for (int i = 0; i < 2 * tries; ++i) {
    recording(i % 2);
    usleep(5000);
    const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int range = 0; range < ranges; ++range) const Range one(Category::forward);
    least[i % 2] = std::min(least[i % 2], (seconds(CLOCK_THREAD_CPUTIME_ID) - start) / ranges);
  }
  return least[1] - least[0];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 300;
  const int batch_size = argc > 2 ? std::atoi(argv[2]) : 8;
  if (pairs < 10 || batch_size < 1) {
    std::fprintf(stderr, "usage: paceline record -o DIR -- step_overhead [PAIRS ≥ 10 [BATCH ≥ 1]]\n");
    return 2;
  }
  const auto recording = reinterpret_cast<Switch>(dlsym(RTLD_DEFAULT, "paceline_recording"));
  if (recording == nullptr) {
    std::fprintf(stderr, "step_overhead: no recorder here; run it as: paceline record -o DIR -- step_overhead\n");
    return 1;
  }
  {
    ModelOptions options;
    options.batch_size = batch_size;
    const auto model = make_cpu_model(options);
    LayerRanges ranges;
    model->observer = &ranges;
    Sgd optimizer(model->weights().size(), {});
    const auto communicator = make_communicator("mpi");
    UpdaterParts parts{*model, communicator, optimizer};
    parts.pass.batch = batch_size;
    const auto updater = make_updater("allreduce", parts);
    Batch batch;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    batch.images.resize(static_cast<std::size_t>(batch_size) * 3 * 32 * 32);
    for (float& value : batch.images) value = normal(random);
    for (int i = 0; i < batch_size; ++i) batch.labels.push_back(i % 10);

    std::uint64_t number = 0;
    // Wall time, and the CPU time of the whole process (the drain thread's included).
    struct Cost {
      double wall, cpu;
    };
    const auto step = [&](bool on) {
      recording(on);
      const Cost start{seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
      {
        const Range iteration(Category::iteration, number++);
        updater->step(batch, 0, 1e-4, false);
      }
      return Cost{seconds(CLOCK_MONOTONIC) - start.wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - start.cpu};
    };
    for (int i = 0; i < 10; ++i) step(i % 2 == 0);

    std::vector<double> off_seconds, wall, cpu;
    const double recorder_before = recorder_seconds();
    for (int i = 0; i < pairs; ++i) {
      const bool on_first = random() % 2 == 0;  // neither order may profit from what the step before left behind
      const Cost first = step(on_first);
      const Cost second = step(!on_first);
      const Cost& on = on_first ? first : second;
      const Cost& off = on_first ? second : first;
      off_seconds.push_back(off.wall);
      wall.push_back((on.wall - off.wall) / off.wall);
      cpu.push_back((on.cpu - off.cpu) / off.cpu);
    }
    const double recorder_per_step = (recorder_seconds() - recorder_before) / pairs;
    const double events = events_of_a_step(), range = seconds_of_a_range(recording);
    recording(1);

    const auto print = [&](const char* what, const std::vector<double>& differences) {
      std::vector<double> medians;
      std::vector<double> sample(differences.size());
      for (int i = 0; i < 2000; ++i) {
        for (double& value : sample) value = differences[random() % differences.size()];
        medians.push_back(median(sample));
      }
      std::sort(medians.begin(), medians.end());
      std::printf("%s: recording on against off: median %+.3f %%, 95 %% interval %+.3f … %+.3f %%\n", what,
                  100 * median(differences), 100 * medians[50], 100 * medians[1949]);
    };
    std::printf("ResNet-18, batch %d, %d steps in pairs, median step %.2f ms\n", batch_size, 2 * pairs,
                1e3 * median(off_seconds));
    print("wall time", wall);
    print("CPU time ", cpu);
    const double by_itself = events / 2 * range + recorder_per_step;
    std::printf("by itself: %.0f events a step at %.1f ns, and %.1f us of the recorder's threads: %.4f %% of a step\n",
                events, 1e9 * range / 2, 1e6 * recorder_per_step, 100 * by_itself / median(off_seconds));
  }
  MPI_Finalize();
  return 0;
}
