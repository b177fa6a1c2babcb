// SPDX-License-Identifier: Apache-2.0
// Whole training runs whose weights, gradients and statistics lie in memory that the host cannot touch. A mock of a
// GPU: the pages are inaccessible except inside the functions of the model, its memory and its optimizer. So a run that
// forgets to copy ends by SIGSEGV here, not on somebody's machine with a GPU.
#include <gmock/gmock.h>
#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/checkpoint/weights.h"
#include "trainer/guard/finite.h"
#include "trainer/nn/models.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/run/loop.h"
#include "trainer/run/start_up.h"

namespace paceline::train {
namespace {

// Pages that can be touched only while an Access lives.
class DevicePages {
 public:
  static DevicePages& all() {
    static DevicePages pages;
    return pages;
  }

  std::span<float> take(std::size_t count) {
    constexpr std::size_t line = 64;
    const std::size_t first = used_;
    used_ += (count * sizeof(float) + line - 1) / line * line;
    if (used_ > size) throw std::bad_alloc();
    return {reinterpret_cast<float*>(static_cast<char*>(begin_) + first), count};
  }

  void open() {
    if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    if (--users_ == 0) protect(PROT_NONE);
  }

 private:
  static constexpr std::size_t size = std::size_t{256} << 20;

  DevicePages() : begin_(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
  }
  void protect(int how) const {
    if (mprotect(begin_, size, how) != 0) std::abort();
  }

  void* begin_;
  std::size_t used_ = 0;
  int users_ = 0;
};

struct Access {
  Access() { DevicePages::all().open(); }
  ~Access() { DevicePages::all().close(); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

class DeviceMemory final : public Memory {
 public:
  Values allocate(std::size_t count) override {
    return {std::shared_ptr<void>(), DevicePages::all().take(count).data()};  // never freed, zeros
  }
  void copy(std::span<const float> from, std::span<float> to) override {
    const Access access;
    host_memory().copy(from, to);
  }
  void add(std::span<const float> from, std::span<float> to) override {
    const Access access;
    host_memory().add(from, to);
  }
  void divide(std::span<float> values, float divisor) override {
    const Access access;
    host_memory().divide(values, divisor);
  }
  double sum_of_squares(std::span<const float> values) override {
    const Access access;
    return host_memory().sum_of_squares(values);
  }
};

// Computes on the CPU, and keeps the flat buffers in the pages.
class DeviceModel final : public Model {
 public:
  explicit DeviceModel(std::unique_ptr<Model> cpu)
      : cpu_(std::move(cpu)),
        weights_(DevicePages::all().take(cpu_->weights().size())),
        gradients_(DevicePages::all().take(weights_.size())),
        statistics_(DevicePages::all().take(cpu_->statistics().size())) {
    memory_.copy(cpu_->weights(), weights_);
    memory_.copy(cpu_->statistics(), statistics_);
  }

  Score forward(std::span<const float> images, std::span<const std::int32_t> labels, Mode mode) override {
    memory_.copy(weights_, cpu_->weights());
    memory_.copy(statistics_, cpu_->statistics());
    const Score score = cpu_->forward(images, labels, mode);
    memory_.copy(cpu_->statistics(), statistics_);
    return score;
  }
  void backward(float scale) override {
    cpu_->gradients_ready = nullptr;
    if (gradients_ready) {
      cpu_->gradients_ready = [&](std::size_t first, std::size_t count) {
        const std::size_t begin = parameters()[first].offset, last = first + count;
        const std::size_t end = last == parameters().size() ? gradients_.size() : parameters()[last].offset;
        memory_.copy(cpu_->gradients().subspan(begin, end - begin), gradients_.subspan(begin, end - begin));
        gradients_ready(first, count);
      };
      return cpu_->backward(scale);
    }
    cpu_->backward(scale);
    memory_.copy(cpu_->gradients(), gradients_);
  }
  void seed_dropout(std::uint64_t seed) override { cpu_->seed_dropout(seed); }

  std::span<float> weights() override { return weights_; }
  std::span<float> gradients() override { return gradients_; }
  std::span<float> statistics() override { return statistics_; }
  Memory& memory() override { return memory_; }
  void set_gradients(std::span<float> buffer) override { gradients_ = buffer; }
  const std::vector<Parameter>& parameters() const override { return cpu_->parameters(); }

  std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const override {
    const Access access;
    return cpu_->to_plain(parameter, flat);
  }
  void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const override {
    const Access access;
    cpu_->from_plain(parameter, plain, flat);
  }
  std::string first_nonfinite_layer() const override { return cpu_->first_nonfinite_layer(); }
  double train_flops_per_image() const override { return cpu_->train_flops_per_image(); }

 private:
  const std::unique_ptr<Model> cpu_;
  DeviceMemory memory_;
  const std::span<float> weights_;
  std::span<float> gradients_;
  const std::span<float> statistics_;
};

class DeviceOptimizer final : public Optimizer {
 public:
  DeviceOptimizer(std::unique_ptr<Optimizer> cpu, std::vector<Chunk> chunks)
      : Optimizer(std::move(chunks), cpu->arrays().size(), cpu->scalars().size()), cpu_(std::move(cpu)) {}
  std::string name() const override { return cpu_->name(); }
  std::vector<std::vector<float>>& arrays() override { return cpu_->arrays(); }

 protected:
  void update(std::span<float> weights, std::span<const float> gradients, float rate) override {
    const Access access;
    cpu_->scalars() = scalars_;
    cpu_->step(weights, gradients, rate);
    scalars_ = cpu_->scalars();
  }

 private:
  const std::unique_ptr<Optimizer> cpu_;
};

const GpuPart mock_gpu{
    .use_device = [](const Ranks&, bool) {},
    .make_communicator = nullptr,  // the test gives the run its communicator
    .device_name = [] { return std::string("mock of a GPU"); },
    .make_model = [](const ModelOptions& options) -> std::unique_ptr<Model> {
      return std::make_unique<DeviceModel>(make_cpu_model(options));
    },
    .make_optimizer = [](const OptimizerOptions& options, const std::vector<Parameter>& parameters,
                         std::size_t elements) -> std::unique_ptr<Optimizer> {
      return std::make_unique<DeviceOptimizer>(make_optimizer(options, parameters, elements),
                                               chunks_of(parameters, elements, options.weight_decay));
    },
    .make_shard_optimizer = nullptr,  // for several ranks
};

TrainOptions small_run(const std::string& updater) {
  TrainOptions options;
  options.synthetic = true;
  options.image_size = 8;
  options.train_images = 32;
  options.test_images = 8;
  options.batch_size = 8;
  options.epochs = 2;
  options.threads = 1;
  options.optimization.width = 0.125;
  options.optimization.clip_gradient_norm = 0.5;
  options.optimization.rate.schedule = "constant";  // whatever the length of the run
  options.updater = updater;
  options.plan_cache = "none";
  return options;
}

// Trains on this rank, and returns the weights in their published layout and the statistics.
std::vector<std::vector<float>> trained(const TrainOptions& options, const GpuPart* gpu) {
  const Communicator communicator = make_host_communicator("mpi", "f32", std::make_unique<Ranks>(MPI_COMM_SELF));
  const auto job = start_up(options, {.communicator = communicator,
                                      .start = std::chrono::steady_clock::now(),
                                      .abandon = [](const std::string& line) { ADD_FAILURE() << line; },
                                      .gpu = gpu});
  train(*job);
  Model& model = *job->model;
  std::vector<std::vector<float>> values;
  for (const Parameter& parameter : model.parameters()) values.push_back(model.to_plain(parameter, model.weights()));
  model.memory().copy(model.statistics(), values.emplace_back(model.statistics().size()));
  return values;
}

class DeviceMemoryRun : public testing::TestWithParam<const char*> {};

TEST_P(DeviceMemoryRun, GivesTheBitsOfTheHostsMemory) {
  TrainOptions options = small_run(GetParam());
  options.accumulate = 2;
  EXPECT_TRUE(trained(options, &mock_gpu) == trained(options, nullptr));
}

TEST_P(DeviceMemoryRun, ResumesFromItsCheckpoint) {
  const TemporaryDirectory directory;
  TrainOptions options = small_run(GetParam());
  const std::vector<std::vector<float>> whole = trained(options, nullptr);
  options.checkpoint = directory / "run.ckpt";
  options.iterations = 4;
  trained(options, &mock_gpu);
  options.iterations = 0;
  options.resume = true;
  EXPECT_TRUE(trained(options, &mock_gpu) == whole);
}

INSTANTIATE_TEST_SUITE_P(Updaters, DeviceMemoryRun,
                         testing::Values("single", "allreduce", "overlap", "double_buffering", "main_rank",
                                         "parameter_server"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DeviceMemory, WeightsAreExportedAndImported) {
  ModelOptions options;
  options.image_size = 8;
  options.batch_size = 2;
  options.width = 0.125;
  DeviceModel first(make_cpu_model(options));
  options.seed = 2;
  DeviceModel second(make_cpu_model(options));
  std::vector<float> statistics(first.statistics().size(), 0.25f);
  import_weights(exported_weights(first, statistics, 3), "weights", "resnet18", second);
  for (const Parameter& parameter : first.parameters()) {
    EXPECT_TRUE(second.to_plain(parameter, second.weights()) == first.to_plain(parameter, first.weights()))
        << parameter.name;
  }
  std::vector<float> room;
  const std::span<const float> imported = second.memory().readable(second.statistics(), room);
  EXPECT_EQ(std::ranges::count(imported, 0.25f), std::ranges::count_if(imported, [](float x) { return x != 0; }));
}

TEST(DeviceMemory, ValuesThatAreNotFiniteAreFound) {
  ModelOptions options;
  options.image_size = 8;
  options.batch_size = 2;
  options.width = 0.125;
  DeviceModel model(make_cpu_model(options));
  const auto optimizer = mock_gpu.make_optimizer({}, model.parameters(), model.weights().size());
  EXPECT_EQ(first_nonfinite_part(model, *optimizer, {}), "");
  const Parameter& parameter = model.parameters()[3];
  std::vector<float> values = model.to_plain(parameter, model.weights());
  values[1] = std::numeric_limits<float>::infinity();
  model.from_plain(parameter, values, model.weights());
  EXPECT_EQ(first_nonfinite_part(model, *optimizer, {}), parameter.name);
}

// The mock is worth something only if it catches what it is for.
TEST(DeviceMemory, HostCodeThatTouchesItEndsBySegv) {
  ModelOptions options;
  options.image_size = 8;
  options.batch_size = 2;
  options.width = 0.125;
  DeviceModel model(make_cpu_model(options));
  // A death test of GoogleTest's would start the program again, as a second MPI process of the same rank.
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    model.weights()[0] = 1;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
}

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
