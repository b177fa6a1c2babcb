// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/viewer/simulated_run.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::viewer {
namespace {

using analysis::RankBuilder;
using analysis::TrackBuilder;

constexpr const char* domain = "paceline.trainer";

std::vector<std::string> resnet18_layers() {
  std::vector<std::string> layers{"conv1", "bn1", "relu"};
  for (int stage = 1; stage <= 4; ++stage) {
    for (int block = 0; block < 2; ++block) {
      const std::string prefix = "layer" + std::to_string(stage) + "." + std::to_string(block) + ".";
      for (const char* part : {"conv1", "bn1", "relu1", "conv2", "bn2"}) layers.push_back(prefix + part);
      if (block == 0 && stage > 1) layers.push_back(prefix + "downsample");
      layers.push_back(prefix + "relu2");
    }
  }
  layers.insert(layers.end(), {"avgpool", "fc", "loss"});
  return layers;
}

struct RankState {
  RankBuilder* rank;
  TrackBuilder *main, *loader;
  std::int64_t now = 0;
  std::vector<TrackBuilder*> helpers = {};
};

}  // namespace

analysis::Trace simulate(const SimulatedRun& what) {
  std::mt19937_64 random(7);
  const auto about = [&](double ns, double spread) {
    return static_cast<std::int64_t>(ns * std::lognormal_distribution<double>(0, spread)(random));
  };
  const std::vector<std::string> layers = resnet18_layers();
  analysis::TraceBuilder builder;
  std::vector<RankState> states;
  for (int r = 0; r < what.ranks; ++r) {
    RankBuilder& rank = builder.add_rank(r, what.ranks);
    rank.info().host = "node0" + std::to_string(1 + r * what.hosts / what.ranks);
    rank.info().pid = 4710 + r;
    rank.info().command = {"paceline-train", "--model", "resnet18", "--data", "cifar-10", "--batch-size", "64"};
    rank.info().clock_source = "tsc";
    rank.info().clock_error_ns = r == 0 ? 0 : 1900 + 350.0 * r;
    rank.info().format = "pace";
    RankState state{&rank, &rank.add_main_thread(), &rank.add_track(analysis::TrackKind::thread, "loader", 2)};
    for (int helper = 1; helper <= what.helper_threads; ++helper) {
      state.helpers.push_back(&rank.add_track(analysis::TrackKind::thread, "helper " + std::to_string(helper),
                                              2 + static_cast<std::uint64_t>(helper)));
    }
    state.now = 40'000'000 + about(3e6, 0.3);
    state.main->push(6'000'000 + about(1e6, 0.2), "startup", domain, "startup");
    state.main->add_slice(12'000'000, 12'000'000 + about(16e6, 0.05), "MPI_Init_thread", "mpi", "management");
    state.now = std::max<std::int64_t>(state.now, 32'000'000);
    state.main->add_mark(state.now, "run", domain, "run");
    state.main->pop(state.now += about(60e6, 0.1));
    states.push_back(state);
  }

  const auto run_layers = [&](RankState& state, bool backward, double total_ns) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::string& layer = layers[backward ? layers.size() - 1 - i : i];
      const double weight = layer.find("conv") != std::string::npos         ? 1.0
                            : layer.find("downsample") != std::string::npos ? 0.35
                            : layer.find("bn") != std::string::npos         ? 0.22
                                                                            : 0.1;
      const std::int64_t took = about(total_ns * weight / 26.2, 0.12);
      if (what.layers) state.main->add_slice(state.now, state.now + took, layer, domain, "layer");
      state.now += took;
    }
  };
  int sequence = 0;
  const auto meet = [&](const char* call, double transfer_ns, double bytes) {
    std::int64_t last = 0;
    for (RankState& state : states) last = std::max(last, state.now);
    for (RankState& state : states) {
      const std::int64_t end = last + about(transfer_ns, 0.05);
      state.main->add_slice(state.now, end, call, "mpi", "collective");
      state.main->argument("bytes", bytes);
      state.main->text_argument("communicator", "world");
      state.main->argument("sequence", sequence);
      state.now = end;
    }
    ++sequence;
  };

  int iteration = 0;
  for (int epoch = 0; epoch < what.epochs; ++epoch) {
    for (int i = 0; i < what.iterations; ++i, ++iteration) {
      for (RankState& state : states) {
        const std::int64_t begin = state.now;
        state.loader->add_slice(state.now, state.now + about(9e6, 0.25), "preprocess", domain, "preprocess");
        state.now += about(4e4, 0.2);
        state.main->push(state.now, "iteration", domain, "iteration");
        state.main->argument("payload", iteration);
        state.main->push(state.now, "preprocess", domain, "preprocess");
        state.main->pop(state.now += about(iteration % 7 == 3 ? 6e6 : 6e5, 0.4));
        state.main->push(state.now, "forward", domain, "forward");
        run_layers(state, false, 18e6);
        state.main->pop(state.now += about(5e4, 0.1));
        state.main->push(state.now, "backward", domain, "backward");
        run_layers(state, true,
                   36e6 * (state.rank->info().rank == what.slow_rank ? what.slowness : 1.0) *
                       (iteration == what.slow_iteration ? 2 : 1));
        state.main->pop(state.now += about(5e4, 0.1));
        for (TrackBuilder* helper : state.helpers) {
          helper->push(begin + about(1e5, 0.5), "work", domain, "work");
          helper->add_slice(state.now - about(4e6, 0.5), state.now - 1'000'000, "copy batch", domain, "work");
          helper->pop(state.now);
        }
        if (iteration == what.late_iteration && state.rank->info().rank == what.late_rank) {
          state.now += static_cast<std::int64_t>(what.late_ns);
        }
        state.main->push(state.now, "allreduce", domain, "allreduce");
        state.main->argument("payload", 44'689'440);
      }
      meet("MPI_Allreduce", 9e6, 44'689'440);
      for (RankState& state : states) {
        state.main->pop(state.now += about(2e5, 0.1));
        state.main->push(state.now, "optimizer", domain, "optimizer");
        state.main->pop(state.now += about(3.2e6, 0.05));
        state.main->pop(state.now += about(2e4, 0.1));
      }
    }
    for (RankState& state : states) {
      state.main->push(state.now, "evaluate", domain, "evaluate");
      run_layers(state, false, 70e6);
    }
    meet("MPI_Allreduce", 5e4, 8);
    for (RankState& state : states) {
      state.main->pop(state.now);
      state.main->add_mark(state.now, "accuracy", domain, "accuracy");
    }
    RankState& first = states.front();
    first.main->push(first.now, "checkpoint", domain, "checkpoint");
    first.main->pop(first.now += about(24e6, 0.1));
  }
  for (RankState& state : states) {
    state.rank->info().start_ns = 0;
    state.rank->info().end_ns = state.now + about(4e6, 0.3);
    for (TrackBuilder* thread : {state.main, state.loader}) {
      analysis::ThreadStates states{.time_ns = {}, .running_ns = {}, .waiting_ns = {}, .exact = true};
      std::int64_t running = 0, waiting = 0;
      for (std::int64_t time = 0; what.switch_ns > 0 && time < state.now; time += what.switch_ns) {
        states.time_ns.push_back(time), states.running_ns.push_back(running), states.waiting_ns.push_back(waiting);
        const std::size_t turn = states.size() % 3;
        running += turn == 0 ? what.switch_ns : 0;
        waiting += turn == 1 ? what.switch_ns : 0;
      }
      if (!states.empty()) thread->add_states(std::move(states));
    }
  }
  return builder.finish();
}

void add_samples(analysis::Trace& trace, std::int64_t period_ns,
                 const std::function<const char*(int rank, std::int64_t time_ns)>& function_at) {
  const auto stack_of = [&](analysis::StackId caller, const char* function) {
    const auto name = trace.names.intern(function), file = trace.names.intern("/src/train.py");
    return trace.stacks.stack(caller, trace.stacks.frame({name, file, 1}));
  };
  const auto main = stack_of(0, "main");
  for (analysis::Rank& rank : trace.ranks) {
    analysis::StackSamples& samples = rank.tracks[0].stacks;
    samples.period_ns = period_ns;
    for (std::int64_t time = 0; time < rank.end_ns; time += period_ns) {
      samples.time_ns.push_back(time);
      samples.stack.push_back(stack_of(main, function_at(rank.rank, time)));
    }
  }
}

}  // namespace paceline::viewer
