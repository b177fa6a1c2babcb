// SPDX-License-Identifier: Apache-2.0
// A small network, batches of random images, and one rank's part of a job that trains on them, for tests of updaters.
#pragma once

#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/comm/communicator.h"
#include "trainer/optim/sgd.h"
#include "trainer/updaters/updater.h"

namespace paceline::train::small_job {

inline constexpr std::size_t b = 4;
inline constexpr double rate = 0.05;
inline constexpr SgdOptions sgd{0.9f, 5e-4f, false};

inline Network small_network() {
  Network net({3, 8, 8});
  int x = net.batch_norm("bn1", net.convolution("conv1", 0, 8, 3, 1, false), true);
  int y = net.batch_norm("bn2", net.convolution("conv2", x, 8, 3, 1, false), false);
  x = net.add_relu("add", y, x);
  x = net.average_pool("pool", net.convolution("conv3", x, 16, 3, 2, true), 4);
  net.linear("fc", x, 10);
  return net;
}

inline std::unique_ptr<Model> small_model(std::size_t batch = b) {
  ModelOptions options;
  options.batch_size = static_cast<std::int64_t>(batch);
  options.freeze_batch_norm = true;
  return make_cpu_model(small_network(), options);
}

inline Batch batch_of(std::uint64_t iteration, int rank, std::size_t samples = b) {
  std::mt19937 random(static_cast<unsigned>(iteration * 100 + static_cast<std::uint64_t>(rank)));
  std::normal_distribution<float> normal;
  Batch batch;
  batch.images.resize(samples * 3 * 8 * 8);
  for (float& value : batch.images) value = normal(random);
  for (std::size_t i = 0; i < samples; ++i) batch.labels.push_back(static_cast<std::int32_t>(random() % 10));
  return batch;
}

// The first p ranks of the job. `in` is false on the others, which take no part.
class FirstRanks {
 public:
  explicit FirstRanks(int p) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    in = rank < p;
    MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : 1, rank, &comm_);
  }
  ~FirstRanks() {
    MPI_Comm_free(&comm_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  Communicator communicator(const std::string& name = "mpi", const std::string& type = "f32") {
    return make_host_communicator(name, type, ranks());
  }
  std::unique_ptr<Ranks> ranks() { return std::make_unique<Ranks>(comm_); }
  bool in = false;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// One rank's part of a job.
struct Job {
  explicit Job(FirstRanks& ranks, const std::string& updater_name, std::size_t bucket_bytes = std::size_t{25} << 20,
               const std::string& communicator_name = "mpi", const std::string& type = "f32",
               std::optional<std::uint64_t> most_ahead = std::nullopt)
      : communicator(ranks.communicator(communicator_name, type)),
        model(small_model()),
        optimizer(model->weights().size(), sgd) {
    std::vector<std::size_t> segments;
    for (const Parameter& parameter : model->parameters()) segments.push_back(parameter.offset);
    segments.push_back(model->gradients().size());
    communicator.reduction->set_segments(segments);
    UpdaterParts parts{*model, communicator, optimizer};
    parts.pass.batch = b;
    parts.pass.rank = communicator.collectives->rank();
    parts.values["bucket-mb"] = static_cast<double>(bucket_bytes) * 0x1p-20;
    if (most_ahead) parts.values["max-ahead"] = static_cast<double>(*most_ahead);
    updater = make_updater(updater_name, parts);
  }

  StepResult step(std::uint64_t iteration, bool stop = false) {
    return updater->step(batch_of(iteration, communicator.collectives->rank()), iteration, rate, stop);
  }
  std::vector<float> weights() const { return {model->weights().begin(), model->weights().end()}; }

  Communicator communicator;
  std::unique_ptr<Model> model;
  Sgd optimizer;
  std::unique_ptr<Updater> updater;
};

inline double relative_difference(std::span<const float> a, std::span<const float> other) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - other[i], 2);
    norm += std::pow(static_cast<double>(other[i]), 2);
  }
  return std::sqrt(difference / norm);
}

}  // namespace paceline::train::small_job
