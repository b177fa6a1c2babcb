// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/cudnn.h"

#define CUDNN_FRONTEND_SKIP_JSON_LIB  // nothing is serialised; half of the time to compile
#include <cudnn_frontend.h>

#include <chrono>
#include <stdexcept>
#include <unordered_map>

#include "trainer/backend/cuda/layout.h"
#include "trainer/core/error.h"

namespace paceline::train::cuda {
namespace {

namespace fe = cudnn_frontend;

constexpr std::int64_t largest_work = std::int64_t{1} << 30;  // bytes that a plan may want beside its tensors
constexpr int most_tried = 12, timed_runs = 5;

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(std::string("cuDNN: ") + call, cudnnGetErrorString(status),
              "check that the cuDNN found at run time is that of the build (ldd), and that the driver suits it");
}

cudnnHandle_t handle_of(void* handle) { return static_cast<cudnnHandle_t>(handle); }

fe::DataType_t cudnn_type(Precision precision) {
  switch (storage_of(precision)) {
    case Storage::bf16:
      return fe::DataType_t::BFLOAT16;
    case Storage::f16:
      return fe::DataType_t::HALF;
    default:
      return fe::DataType_t::FLOAT;
  }
}

// fp32 excludes tensor cores, which would round to TF32, and nondeterministic engines, because users of fp32 want exact
// repetition more than speed. No type may keep sums in less than fp32.
std::vector<fe::NumericalNote_t> barred(const PlanKey& key) {
  std::vector<fe::NumericalNote_t> notes = {fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                            fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
  if (key.precision == Precision::f32) {
    notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
    notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  }
  if (!key.winograd) {
    for (const auto note :
         {fe::NumericalNote_t::WINOGRAD, fe::NumericalNote_t::WINOGRAD_TILE_4x4, fe::NumericalNote_t::WINOGRAD_TILE_6x6,
          fe::NumericalNote_t::WINOGRAD_TILE_13x13, fe::NumericalNote_t::FFT}) {
      notes.push_back(note);
    }
  }
  return notes;
}

std::vector<std::int64_t> vector_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

}  // namespace

Cudnn::Cudnn(const Device& device, cudaStream_t stream, PlanCache& plans)
    : stream_(stream), place_{device.name, cudnn_version(), device.multiprocessors}, plans_(plans) {
  if (place_.cudnn < 90000)
    throw Error("cuDNN", "found version " + std::to_string(place_.cudnn), "install cuDNN 9 or newer");
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnnCreate(&handle), "cudnnCreate");
  handle_ = handle;
  check_cudnn(cudnnSetStream(handle, stream), "cudnnSetStream");
}

std::int64_t cudnn_version() { return static_cast<std::int64_t>(cudnnGetVersion()); }

Cudnn::~Cudnn() { cudnnDestroy(handle_of(handle_)); }

bool Cudnn::reserve(std::size_t bytes) {
  const std::size_t before = work_.bytes();
  if (bytes <= before) return true;
  PACELINE_CHECK_CUDA(cudaStreamSynchronize(stream_));
  work_ = Buffer();  // freed first, because both buffers together may not fit
  try {
    work_ = device_buffer(bytes);
    return true;
  } catch (const Error&) {
    cudaGetLastError();  // clears the error
    work_ = device_buffer(before);
    return false;
  }
}

// cuDNN's numbers for the tensors are 1, 2, …, in the order of ConvolutionPlan's list.
struct ConvolutionGraph {
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

  fe::graph::Graph graph;
  std::int64_t index = 0;  // of the plan in use
  int tensors = 0;         // so far
  std::string trouble;

  // gpu: its description, in place of a handle.
  explicit ConvolutionGraph(const PlanKey& key, cudnnHandle_t handle,
                            std::shared_ptr<const fe::DeviceProperties> gpu = nullptr) {
    if (gpu) graph.set_device_properties(gpu);
    graph.set_io_data_type(cudnn_type(key.precision))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    describe(key);
    if (good(graph.validate()) && good(graph.build_operation_graph(handle)) &&
        good(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}))) {
      graph.deselect_numeric_notes(barred(key)).deselect_workspace_greater_than(largest_work);
    }
  }

  void describe(const PlanKey& key) {
    const fe::DataType_t type = cudnn_type(key.precision);
    const Dims x{key.batch, key.channels, key.height, key.width};
    const Dims filter{key.filters, key.channels, key.kernel, key.kernel};
    const Dims y{key.batch, key.filters, key.out_height(), key.out_width()};
    const Dims by_channel{1, key.channels, 1, 1}, by_filter{1, key.filters, 1, 1};
    const auto options = [&](auto attributes) {
      attributes.set_padding({key.padding, key.padding}).set_stride({key.stride, key.stride}).set_dilation({1, 1});
      return attributes;
    };
    const auto forward = [&](const Tensor& from, const Tensor& by) {
      const Tensor out = graph.conv_fprop(from, by, options(fe::graph::Conv_fprop_attributes()));
      output(out, y, type);
      return out;
    };
    const auto sums_of = [&](const Tensor& values) {
      for (const Tensor& sum : graph.genstats(values, fe::graph::Genstats_attributes())) output(sum, by_filter);
    };
    switch (key.direction) {
      case Direction::forward:
      case Direction::forward_sums: {
        const Tensor a = input("x", x, type), out = forward(a, input("filter", filter, type));
        if (key.direction == Direction::forward_sums) sums_of(out);
        break;
      }
      case Direction::norm_forward_sums: {
        const Tensor a = input("x", x, type), b = input("filter", filter, type);
        sums_of(forward(applied(a, by_channel, type), b));
        break;
      }
      case Direction::weight_gradient:
      case Direction::norm_weight_gradient: {
        const Tensor dy = input("dy", y, type);
        Tensor a = input("x", x, type);
        if (key.direction == Direction::norm_weight_gradient) a = applied(a, by_channel, type);
        output(graph.conv_wgrad(dy, a, options(fe::graph::Conv_wgrad_attributes())), filter, type);
        break;
      }
      case Direction::data_gradient:
      case Direction::data_gradient_norm: {
        const Tensor dy = input("dy", y, type), b = input("filter", filter, type);
        const Tensor dx = graph.conv_dgrad(dy, b, options(fe::graph::Conv_dgrad_attributes()));
        if (key.direction == Direction::data_gradient) {
          output(dx, x, type);
          break;
        }
        dx->set_dim(vector_of(x)).set_stride(vector_of(channels_last_strides(x)));
        const Tensor a = input("x", x, type), mean = input("mean", by_channel), inverse = input("inverse", by_channel),
                     scale = input("scale", by_channel), shift = input("shift", by_channel);
        Tensor normed = pointwise(a, mean, fe::PointwiseMode_t::SUB);
        normed = pointwise(normed, inverse, fe::PointwiseMode_t::MUL);
        normed = pointwise(normed, scale, fe::PointwiseMode_t::MUL);
        normed = pointwise(normed, shift, fe::PointwiseMode_t::ADD);
        const Tensor masked = pointwise(dx, normed, fe::PointwiseMode_t::RELU_BWD);
        output(masked, x, type);
        for (const Tensor& sum :
             graph.dbn_weight(masked, a, mean, inverse, scale, fe::graph::DBN_weight_attributes())) {
          output(sum, by_channel);
        }
      }
    }
  }

  Tensor input(const char* name, const Dims& dims, fe::DataType_t type = fe::DataType_t::FLOAT) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(++tensors)
                            .set_data_type(type)
                            .set_dim(vector_of(dims))
                            .set_stride(vector_of(channels_last_strides(dims))));
  }

  void output(const Tensor& tensor, const Dims& dims, fe::DataType_t type = fe::DataType_t::FLOAT) {
    tensor->set_output(true)
        .set_uid(++tensors)
        .set_data_type(type)
        .set_dim(vector_of(dims))
        .set_stride(vector_of(channels_last_strides(dims)));
  }

  Tensor pointwise(const Tensor& a, const Tensor& b, fe::PointwiseMode_t mode) {
    return graph.pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode));
  }

  // max(0, scale × x + shift); cuDNN takes these two in the type of x alone.
  Tensor applied(const Tensor& x, const Dims& by_channel, fe::DataType_t type) {
    const Tensor scale = input("scale", by_channel, type), shift = input("shift", by_channel, type);
    const Tensor scaled = pointwise(x, scale, fe::PointwiseMode_t::MUL);
    return graph.pointwise(pointwise(scaled, shift, fe::PointwiseMode_t::ADD),
                           fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::RELU_FWD));
  }

  // Keeps the last error.
  bool good(fe::error_t status) {
    if (status.is_bad()) trouble = status.get_message();
    return status.is_good();
  }

  // The plan at this position of the list; engine −1 if cuDNN does not report it.
  Plan plan_at(std::int64_t at) {
    Plan plan;
    plan.index = at;
    std::unordered_map<fe::KnobType_t, std::int64_t> knobs;
    if (!good(graph.get_engine_and_knobs_at_index(at, plan.engine, knobs))) plan.engine = -1;
    for (const auto& [type, value] : knobs) plan.knobs[static_cast<std::int64_t>(type)] = value;
    return plan;
  }
};

ConvolutionPlan::ConvolutionPlan(Cudnn& cudnn, const PlanKey& key, Tensors tensors) : cudnn_(&cudnn) {
  for (const void* tensor : tensors) tensors_.push_back(const_cast<void*>(tensor));
  const std::string text = text_of(key, cudnn.place_);
  try {
    graph_ = std::make_unique<ConvolutionGraph>(key, handle_of(cudnn.handle_));
    if (!graph_->trouble.empty()) throw Error("cuDNN", text, graph_->trouble);
    const auto known = cudnn.plans_.find(text);
    if (!known || !use(*known)) tune(text);
  } catch (const fe::cudnnException& exception) {
    throw Error("cuDNN", text, exception.what());
  }
}

std::optional<ConvolutionPlan> ConvolutionPlan::if_any(Cudnn& cudnn, const PlanKey& key, Tensors tensors) {
  try {
    return ConvolutionPlan(cudnn, key, tensors);
  } catch (const Error&) {
    return std::nullopt;  // an error of the GPU itself persists, and the next call reports it
  }
}

ConvolutionPlan::~ConvolutionPlan() = default;
ConvolutionPlan::ConvolutionPlan(ConvolutionPlan&&) noexcept = default;
ConvolutionPlan& ConvolutionPlan::operator=(ConvolutionPlan&&) noexcept = default;

// Whether the plan is at the same position of the list and runs.
bool ConvolutionPlan::use(const Plan& plan) {
  fe::graph::Graph& graph = graph_->graph;
  if (plan.index >= graph.get_execution_plan_count()) return false;
  const Plan here = graph_->plan_at(plan.index);
  if (here.engine != plan.engine || here.knobs != plan.knobs) return false;
  if (!graph_->good(graph.build_plan_at_index(plan.index))) return false;
  const std::int64_t work = graph.get_workspace_size_plan_at_index(plan.index);
  if (work < 0 || work > largest_work || !cudnn_->reserve(static_cast<std::size_t>(work))) return false;
  graph_->index = plan.index;
  return run_plan() && cudaStreamSynchronize(cudnn_->stream_) == cudaSuccess;
}

void ConvolutionPlan::tune(const std::string& key) {
  fe::graph::Graph& graph = graph_->graph;
  Event begin(true), end(true);
  double best = 0;
  std::int64_t chosen = -1;
  int tried = 0;
  for (std::int64_t i = 0; i < graph.get_execution_plan_count() && tried < most_tried; ++i) {
    if (!graph_->good(graph.build_plan_at_index(i))) continue;
    const std::int64_t work = graph.get_workspace_size_plan_at_index(i);
    if (work < 0 || work > largest_work || !cudnn_->reserve(static_cast<std::size_t>(work))) continue;
    graph_->index = i;
    if (!run_plan()) continue;  // the first run loads the kernel
    // The clocks of an idle GPU take some 100 ms to rise. Without this, the first plans would look slow, and the cache
    // would keep that.
    constexpr std::chrono::milliseconds warm_up(300);
    for (const auto start = std::chrono::steady_clock::now();
         !cudnn_->warm_ && std::chrono::steady_clock::now() - start < warm_up;) {
      if (!run_plan() || cudaStreamSynchronize(cudnn_->stream_) != cudaSuccess) break;
    }
    cudnn_->warm_ = true;
    begin.record(cudnn_->stream_);
    bool ran = true;
    for (int k = 0; k < timed_runs; ++k) ran = ran && run_plan();
    end.record(cudnn_->stream_);
    end.synchronize();
    ++tried;
    const double microseconds = end.milliseconds_since(begin) * 1000 / timed_runs;
    if (ran && (chosen < 0 || microseconds < best)) {
      best = microseconds;
      chosen = i;
    }
  }
  if (chosen < 0) {
    throw Error("cuDNN", "no way to compute " + key + (graph_->trouble.empty() ? "" : " (" + graph_->trouble + ")"),
                "try another ‹dtype› or ‹batch-size›");
  }
  graph_->index = chosen;
  ++cudnn_->tuned_;
  Plan plan = graph_->plan_at(chosen);
  plan.microseconds = best;
  if (plan.engine >= 0) cudnn_->plans_.add(key, plan);
}

bool ConvolutionPlan::run_plan() {
  return graph_->good(graph_->graph.execute_plan_at_index(handle_of(cudnn_->handle_), tensors_.data(),
                                                          static_cast<int>(tensors_.size()), cudnn_->work_.data(),
                                                          graph_->index));
}

void ConvolutionPlan::run() {
  if (!run_plan()) throw Error("cuDNN", "a convolution failed that ran before", graph_->trouble);
}

void ConvolutionPlan::run_into(void* last) {
  tensors_.back() = last;
  run();
}

Plan plan_for_described_gpu(const PlanKey& key, const std::string& description) {
  const auto gpu = std::make_shared<fe::DeviceProperties>();
  if (auto status = gpu->deserialize({description.begin(), description.end()}); status.is_bad()) {
    throw std::invalid_argument(status.get_message());
  }
  ConvolutionGraph one(key, nullptr, gpu);
  for (std::int64_t i = 0; i < one.graph.get_execution_plan_count(); ++i) {
    if (one.good(one.graph.build_plan_at_index(i))) return one.plan_at(i);
  }
  throw Error("cuDNN", text_of(key, {}), one.trouble);
}

}  // namespace paceline::train::cuda
