// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer/backend/cpu/guarded/layers.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "tests/unit/trainer/backend/cpu/guarded/memory.h"
#include "tests/unit/trainer/backend/cpu/layer_text.h"
#include "trainer/backend/cpu/layers.h"
#include "trainer/core/error.h"
#include "trainer/nn/models.h"

namespace paceline::train::guarded {
namespace {

using onednn::Desc;

// The child's report, in memory that it shares with its parent.
struct Told {
  std::size_t step, runs, left_out;  // step: of the computation that it is at
  char doing[512], fault[512], isa[64], error[512];
  struct {
    char name[48];
    std::size_t runs;
  } implementations[96];
};

template <std::size_t size>
void set(char (&to)[size], const std::string& text) {
  std::snprintf(to, size, "%s", text.c_str());
}

std::string text_with_batch(const Layer& layer, std::int64_t batch) {
  return text_of(layer) + ", batch " + std::to_string(batch);
}

// The arguments that a primitive may have.
constexpr std::pair<int, const char*> arguments[]{
    {DNNL_ARG_SRC, "source"},
    {DNNL_ARG_WEIGHTS, "weights"},
    {DNNL_ARG_BIAS, "bias"},
    {DNNL_ARG_DST, "result"},
    {DNNL_ARG_DIFF_SRC, "source's gradient"},
    {DNNL_ARG_DIFF_WEIGHTS, "weights' gradient"},
    {DNNL_ARG_DIFF_BIAS, "bias's gradient"},
    {DNNL_ARG_DIFF_DST, "result's gradient"},
    {DNNL_ARG_MEAN, "mean"},
    {DNNL_ARG_VARIANCE, "variance"},
    {DNNL_ARG_SCALE, "scale"},
    {DNNL_ARG_SHIFT, "shift"},
    {DNNL_ARG_DIFF_SCALE, "scale's gradient"},
    {DNNL_ARG_DIFF_SHIFT, "shift's gradient"},
    {DNNL_ARG_WORKSPACE, "workspace"},
    {DNNL_ARG_SCRATCHPAD, "work memory"},
};

class Child {
 public:
  Child(const Check& check, Told& told, std::size_t skip) : check_(check), told_(told), skip_(skip) {
    // oneDNN's work memory, which otherwise comes from malloc, becomes an argument like the others.
    attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    memory_.reserve(std::size(arguments));
    tell_faults(told.fault, &memory_);
  }

  void run() {
    set(told_.isa, onednn::instructions());
    for (const int threads : check_.threads) {
      threads_ = threads;
#ifdef _OPENMP
      omp_set_num_threads(threads);
#endif
      for (const ModelOptions& options : check_.models) {
        std::optional<Network> network;
        try {
          network = build_network(options);
        } catch (const Error&) {  // the images are too small for this network
          continue;
        }
        batch_ = options.batch_size;
        walk(*network);
      }
    }
  }

 private:
  void walk(const Network& network) {
    std::vector<Desc> descs{onednn::any_layout(dims(network.out(0)))};
    for (const Layer& layer : network.layers()) {
      if (layer.kind == LayerKind::input) continue;
      descs.push_back(result_of(layer, descs[static_cast<std::size_t>(layer.input)]));
    }
  }

  onednn::Dims dims(const Shape& shape) const { return {batch_, shape.channels, shape.height, shape.width}; }

  // The layout of the layer's result. Runs the layer unless an equal one has run.
  Desc result_of(const Layer& layer, const Desc& source) {
    const std::string text = text_with_batch(layer, batch_) + ", " + std::to_string(threads_) + " threads";
    auto& seen = seen_[text + (layer.input == 0 ? " first" : "")];
    for (const auto& [in, out] : seen) {
      if (onednn::same_layout(in, source)) return out;
    }
    const Desc result = compute(layer, source, text);
    seen.emplace_back(source, result);
    return result;
  }

  Desc compute(const Layer& layer, const Desc& source, const std::string& text) {
    const onednn::Window window{
        {layer.kernel, layer.kernel}, {layer.stride, layer.stride}, {layer.padding, layer.padding}};
    const bool all = !check_.convolutions_alone;
    macs_ = layer.multiply_adds() * static_cast<double>(batch_);
    switch (layer.kind) {
      case LayerKind::convolution:
        return convolution(layer, source, window, text);
      case LayerKind::max_pool:
      case LayerKind::average_pool: {
        const auto algorithm = layer.kind == LayerKind::max_pool ? dnnl::algorithm::pooling_max
                                                                 : dnnl::algorithm::pooling_avg_exclude_padding;
        const auto d = onednn::pooling(engine_, algorithm, source, dims(layer.out), window, attributes_);
        if (all) {
          execute<dnnl::pooling_forward>(d.forward, text + ", forward");
          execute<dnnl::pooling_backward>(d.backward, text + ", gradient");
        }
        return d.forward.dst_desc();
      }
      case LayerKind::batch_norm:
        for (const bool frozen : {false, true}) {
          if (!all) break;
          const auto d = onednn::batch_norm(engine_, source, 1e-5f, layer.relu, frozen, attributes_);
          const std::string which = frozen ? ", frozen" : "";
          const Desc vector = onednn::plain_layout({layer.out.channels});
          std::vector<std::pair<int, Desc>> more{
              {DNNL_ARG_MEAN, vector}, {DNNL_ARG_VARIANCE, vector}, {DNNL_ARG_SCALE, vector}, {DNNL_ARG_SHIFT, vector}};
          execute<dnnl::batch_normalization_forward>(d.train, text + which + ", forward", more);
          execute<dnnl::batch_normalization_forward>(d.evaluate, text + which + ", evaluation", more);
          if (!onednn::batch_norm_backward_takes_shift) more.pop_back();
          more.insert(more.end(), {{DNNL_ARG_DIFF_SCALE, vector}, {DNNL_ARG_DIFF_SHIFT, vector}});
          execute<dnnl::batch_normalization_backward>(d.backward, text + which + ", gradient", more);
        }
        return source;
      case LayerKind::linear:
        return linear(layer, source, text);
      default:
        return source;
    }
  }

  Desc convolution(const Layer& layer, const Desc& source, const onednn::Window& window, const std::string& text) {
    const onednn::Dims weights{layer.out.channels, layer.in.channels, layer.kernel, layer.kernel};
    const auto primitives = [&](bool winograd) {
      return onednn::convolution(engine_, source, weights, layer.bias, dims(layer.out), window, layer.input != 0,
                                 winograd, attributes_);
    };
    const onednn::Convolution direct = primitives(false), winograd = primitives(true);
    const auto run_all = [&](const onednn::Convolution& d, const onednn::Convolution* besides) {
      const auto other = [&](const auto& desc, const auto& than) {
        return !besides || std::strcmp(desc.impl_info_str(), than.impl_info_str()) != 0;
      };
      if (other(d.forward, direct.forward)) execute<dnnl::convolution_forward>(d.forward, text + ", forward");
      if (other(d.backward_weights, direct.backward_weights)) {
        execute<dnnl::convolution_backward_weights>(d.backward_weights, text + ", weights' gradient");
      }
      if (d.backward_data && other(*d.backward_data, *direct.backward_data)) {
        execute<dnnl::convolution_backward_data>(*d.backward_data, text + ", data's gradient");
      }
    };
    run_all(direct, nullptr);
    run_all(winograd, &direct);
    if (!check_.convolutions_alone) {
      const Desc weights_desc = direct.forward.weights_desc(), src = direct.forward.src_desc();
      const auto& backward = direct.backward_weights;
      if (layer.input == 0) copy(onednn::plain_layout(onednn::dims(src)), src, text);
      copy(onednn::plain_layout(weights), weights_desc, text);
      copy(weights_desc, onednn::plain_layout(weights), text);
      copy(src, backward.src_desc(), text);
      copy(direct.forward.dst_desc(), backward.diff_dst_desc(), text);
      copy(backward.diff_weights_desc(), weights_desc, text);
      if (direct.backward_data) copy(weights_desc, direct.backward_data->weights_desc(), text);
    }
    own_winograd(layer, text);
    return direct.forward.dst_desc();
  }

  Desc linear(const Layer& layer, const Desc& source, const std::string& text) {
    const Desc vector = onednn::plain_layout({batch_, layer.in.channels});
    const bool flat = layer.in.height * layer.in.width == 1 && onednn::bytes(source) == onednn::bytes(vector);
    onednn::Dims weights{layer.out.channels, layer.in.channels, layer.in.height, layer.in.width};
    if (flat) weights.resize(2);
    const Desc output = onednn::plain_layout({batch_, layer.out.channels});
    if (check_.convolutions_alone) return output;
    const auto d = onednn::linear(engine_, flat ? vector : source, weights, output, layer.bias, true, attributes_);
    execute<dnnl::inner_product_forward>(d.forward, text + ", forward");
    execute<dnnl::inner_product_backward_weights>(d.backward_weights, text + ", weights' gradient");
    execute<dnnl::inner_product_backward_data>(*d.backward_data, text + ", data's gradient");
    return output;
  }

  void copy(const Desc& from, const Desc& to, const std::string& text) {
    if (onednn::same_layout(from, to)) return;
    execute<dnnl::reorder>(dnnl::reorder::primitive_desc(engine_, from, engine_, to, attributes_), text + ", copy");
  }

  // The backend's own code, if it is used (winograd_convolution.cpp).
  void own_winograd(const Layer& layer, const std::string& text) {
    if (layer.kernel != 3 || layer.stride != 1 || layer.in.channels % 16 != 0 || layer.out.channels % 16 != 0) return;
    const winograd::Code* const code = winograd_code();
    if (code == nullptr) return;
    const auto extent = [](std::int64_t value) { return static_cast<std::size_t>(value); };
    const winograd::Shape s{extent(batch_), extent(layer.out.height), extent(layer.out.width),
                            extent(layer.in.channels), extent(layer.out.channels)};
    const std::size_t pixels = s.batch * s.height * s.width * sizeof(float), weights = 9 * s.in * s.out * sizeof(float),
                      bias = s.out * sizeof(float), work = code->work_size(s, threads_) * sizeof(float);
    const auto at = [&](std::size_t i) { return static_cast<float*>(memory_[i].data()); };
    step(text + ", forward", "our Winograd",
         {{"source", pixels * s.in},
          {"weights", weights},
          {"bias", bias},
          {"result", pixels * s.out},
          {"work memory", work}},
         [&] { code->forward(s, at(0), at(1), at(2), at(3), at(4), threads_); });
    step(text + ", data's gradient", "our Winograd",
         {{"result's gradient", pixels * s.out},
          {"weights", weights},
          {"source's gradient", pixels * s.in},
          {"work memory", work}},
         [&] { code->backward_data(s, at(0), at(1), at(2), at(3), threads_); });
    step(text + ", weights' gradient", "our Winograd",
         {{"source", pixels * s.in},
          {"result's gradient", pixels * s.out},
          {"weights' gradient", weights},
          {"bias's gradient", bias},
          {"work memory", work}},
         [&] { code->backward_weights(s, at(0), at(1), at(2), at(3), at(4), threads_); });
  }

  // more: the arguments of a batch norm besides images; its descriptor does not list those that it takes.
  template <class Primitive>
  void execute(const typename Primitive::primitive_desc& desc, const std::string& text,
               const std::vector<std::pair<int, Desc>>& more = {}) {
    std::vector<std::pair<int, Desc>> descs;
    std::vector<std::pair<std::string, std::size_t>> sizes;
    for (const auto& [argument, name] : arguments) {
      Desc of_argument = desc.query_md(dnnl::query::exec_arg_md, argument);
      const auto found = std::ranges::find(more, argument, &std::pair<int, Desc>::first);
      if (found != more.end()) {
        of_argument = found->second;
      } else if (!more.empty() && argument != DNNL_ARG_WORKSPACE && argument != DNNL_ARG_SCRATCHPAD &&
                 argument != DNNL_ARG_SRC && argument != DNNL_ARG_DST && argument != DNNL_ARG_DIFF_SRC &&
                 argument != DNNL_ARG_DIFF_DST) {
        continue;
      }
      if (onednn::bytes(of_argument) == 0) continue;
      sizes.emplace_back(name, onednn::bytes(of_argument));
      descs.emplace_back(argument, std::move(of_argument));
    }
    std::optional<Primitive> primitive;
    step(text, desc.impl_info_str(), sizes, [&] {
      if (!primitive) primitive.emplace(desc);
      std::unordered_map<int, dnnl::memory> given;
      for (std::size_t i = 0; i < descs.size(); ++i) {
        given.emplace(descs[i].first, dnnl::memory(descs[i].second, engine_, memory_[i].data()));
      }
      primitive->execute(stream_, given);
      stream_.wait();
    });
  }

  // Runs work() with memory_ of the given sizes, once for each side of the memory.
  template <class Work>
  void step(const std::string& text, const std::string& implementation,
            const std::vector<std::pair<std::string, std::size_t>>& sizes, Work work) {
    const bool large = std::ranges::any_of(sizes, [&](const auto& size) { return size.second > check_.largest; });
    for (const Side side : {Side::end, Side::begin}) {
      if (++step_ <= skip_) continue;
      told_.step = step_;
      if (large || (implementation.starts_with("ref") && macs_ > check_.reference_limit)) {
        ++told_.left_out;
        continue;
      }
      set(told_.doing, text + ", " + implementation + (side == Side::end ? ", at the end" : ", at the begin"));
      for (const auto& [name, bytes] : sizes) {
        const bool numbers =
            name != "workspace" && name != "work memory";  // the workspace holds the positions of maxima: 0
        memory_.emplace_back(name, bytes, side);
        if (numbers) std::fill_n(static_cast<float*>(memory_.back().data()), bytes / sizeof(float), 0.5f);
      }
      work();
      memory_.clear();
      ++told_.runs;
      count(implementation);
    }
  }

  void count(const std::string& implementation) {
    for (auto& entry : told_.implementations) {
      if (entry.name[0] == 0) set(entry.name, implementation);
      if (implementation.compare(0, sizeof(entry.name) - 1, entry.name) != 0) continue;
      ++entry.runs;
      return;
    }
  }

  const Check& check_;
  Told& told_;
  std::size_t skip_, step_ = 0;
  int threads_ = 1;
  std::int64_t batch_ = 0;
  double macs_ = 0;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive_attr attributes_;
  std::vector<Memory> memory_;                                      // the arguments of the computation at hand
  std::map<std::string, std::vector<std::pair<Desc, Desc>>> seen_;  // layers → layouts of their sources and results
};

[[noreturn]] void be_child(const Check& check, Told& told, std::size_t skip) {
  try {
    if (check.isa) {
      const bool took = dnnl::set_max_cpu_isa(*check.isa) == dnnl::status::success;
      if (!took) throw std::runtime_error("oneDNN was used before the child could choose its instructions");
    }
    Child(check, told, skip).run();
  } catch (const std::exception& error) {
    set(told.error, error.what());
    _exit(1);
  }
  _exit(0);
}

}  // namespace

Result run(const Check& check) {
  void* shared = mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  Told& told = *new (shared) Told{};
  Result result;
  for (bool ended = false; !ended;) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) be_child(check, told, told.step);
    int status = 0;
    for (unsigned wait = 0;; ++wait) {
      if (waitpid(child, &status, check.progress ? WNOHANG : 0) == child) break;
      if (wait % 50 == 49) check.progress(told.doing, told.runs);
      usleep(100'000);
    }
    ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended) break;
    const bool fault = WIFSIGNALED(status) || WEXITSTATUS(status) == faulted;
    if (!fault) throw std::runtime_error(std::string(told.doing) + ": " + told.error);
    if (WIFSIGNALED(status)) set(told.fault, "is ended by " + std::string(strsignal(WTERMSIG(status))));
    result.faults.push_back(std::string(told.doing) + ": " + told.fault);
    if (check.found) check.found(result.faults.back());
  }
  result.runs = told.runs;
  result.left_out = told.left_out;
  result.isa = told.isa;
  for (const auto& entry : told.implementations) {
    if (entry.runs > 0) result.implementations[entry.name] = entry.runs;
  }
  munmap(shared, sizeof(Told));
  return result;
}

}  // namespace paceline::train::guarded
