// What a run whose ranks form a pipeline has beside other runs, and the state of its whole network on rank 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/labels_only.h"
#include "trainer/guard/activity.h"
#include "trainer/nn/plain_model.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/pipeline/whole_state.h"

namespace paceline::train {

struct Job;

struct StagedRun {
  StagedRun(Collectives& ranks, const Grid& run_grid, Activity& activity, Network whole_network,
            std::vector<LayerRun> run_stages);

  const Grid& grid;
  const Network network;               // the whole one
  const std::vector<LayerRun> stages;  // layers of each
  const Network part;                  // this rank's
  WholeStateMover mover;
  StageLinks links;
  std::unique_ptr<Pipeline> pipeline;  // made with the model
  std::unique_ptr<Model> whole_model;  // rank 0, until all ranks have their parts: what was read from a file
  std::unique_ptr<ImageSource> train_labels, test_labels;  // instead of the images; null on the first stage
  ModelOptions model_options;                              // of this rank's models: of one microbatch
  struct Part {
    std::string first_layer;
    double cost = 0;  // seconds of a microbatch, or multiply-adds
  };
  std::vector<Part> parts;  // the smallest ones between which the network can be cut, in order
  std::string balance;      // a line on the measured stages; empty if nothing was measured

  // The names of the first layers of the stages behind the first, separated by commas.
  std::string split() const;
  std::size_t statistics() const;  // of the whole network
};

// Cuts the network into stages as the options ask. options: of a microbatch. A collective call; throws AgreedError.
std::unique_ptr<StagedRun> split_network(Job& job, const ModelOptions& options);

// Makes this rank's models and its pipeline. It does not communicate.
void make_stage(Job& job);

// On rank 0 the whole network with the weights of all stages and the statistics of the first replica; null on the other
// ranks. A collective call.
std::unique_ptr<Model> gather_model(Job& job);

// After rank 0 has filled the whole model and state from a file: gives each stage its part. A collective call.
void scatter_model(Job& job);

// Running statistics averaged over the replicas: those of the whole network on rank 0, nothing on the other ranks. A
// collective call.
std::vector<float> gather_mean_statistics(Job& job);

}  // namespace paceline::train
