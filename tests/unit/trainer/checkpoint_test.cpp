#include "trainer/loop/checkpoint.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/error.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

// Two parameters, the first of 3 elements padded to 4 and kept back to front, as a blocked layout might.
class ReversedModel : public Model {
 public:
  Score forward(std::span<const float>, std::span<const std::int32_t>, Mode) override { return {}; }
  void backward(float) override {}
  std::span<float> weights() override { return weights_; }
  std::span<float> gradients() override { return gradients_; }
  void set_gradients(std::span<float>) override {}
  std::string first_nonfinite_layer() const override { return {}; }
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  std::span<float> statistics() override { return statistics_; }
  std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const override {
    const auto from = flat.subspan(parameter.offset, 3);
    return {from.rbegin(), from.rend()};
  }
  void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const override {
    std::copy(plain.rbegin(), plain.rend(), flat.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }
  double forward_flops_per_image() const override { return 0; }
  double train_flops_per_image() const override { return 0; }

 private:
  std::vector<Parameter> parameters_ = {{"a.weight", 0, 4, {3, 1}, false}, {"b.weight", 4, 3, {3}, true}};
  std::vector<float> weights_ = std::vector<float>(7), gradients_ = std::vector<float>(7),
                     statistics_ = std::vector<float>(2);
};

const Position position{"resnet18", 32, 10, 5, 77, 20};

void fill(std::span<float> values, std::vector<float> with) { std::copy(with.begin(), with.end(), values.begin()); }

void write_example(const std::filesystem::path& file) {
  ReversedModel model;
  Sgd optimizer(7, {});
  fill(model.weights(), {1.1f, -2.2f, 1e-40f, 0, 4, 5, 6});  // with a denormal
  fill(model.statistics(), {0.25f, 0.5f});
  fill(optimizer.velocity(), {7, 8, 9, 0, -0.0f, 11, 12});
  write_checkpoint(file, position, model, optimizer);
}

std::string error_of_reading(const std::filesystem::path& file, const Position& expected = position) {
  return message_of<Error>([&] {
    ReversedModel model;
    Sgd optimizer(7, {});
    read_checkpoint(file, expected, model, optimizer);
  });
}

TEST(Checkpoint, GivesBackEveryBit) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  ReversedModel model;
  Sgd optimizer(7, {});
  const Position read = read_checkpoint(directory / "run.checkpoint", position, model, optimizer);
  EXPECT_EQ(read.model, "resnet18");
  EXPECT_EQ(read.seed, 5u);
  EXPECT_EQ(read.iteration, 77u);
  EXPECT_EQ(read.iterations_per_epoch, 20u);
  const auto bits = [](std::span<const float> values) {
    std::vector<std::uint32_t> result;
    for (const float value : values) result.push_back(std::bit_cast<std::uint32_t>(value));
    return result;
  };
  EXPECT_EQ(bits(model.weights()), bits(std::vector<float>{1.1f, -2.2f, 1e-40f, 0, 4, 5, 6}));
  EXPECT_EQ(bits(model.statistics()), bits(std::vector<float>{0.25f, 0.5f}));
  EXPECT_EQ(bits(optimizer.velocity()), bits(std::vector<float>{7, 8, 9, 0, -0.0f, 11, 12}));
}

TEST(Checkpoint, HoldsThePublishedLayout) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  const std::string content = content_of(directory / "run.checkpoint");
  std::vector<float> last(3);  // b.weight's velocity, before the checksum
  std::memcpy(last.data(), content.data() + content.size() - 8 - 12, 12);
  EXPECT_EQ(last, (std::vector<float>{12, 11, -0.0f}));
}

TEST(Checkpoint, RefusesEveryCutAndEveryFlippedByte) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  const std::string whole = content_of(directory / "run.checkpoint");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(directory / "cut", whole.substr(0, length));
    ASSERT_THAT(error_of_reading(directory / "cut"), HasSubstr((directory / "cut").string())) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    put(directory / "flipped", flipped);
    ASSERT_THAT(error_of_reading(directory / "flipped"), HasSubstr("checkpoint")) << at;
  }
}

TEST(Checkpoint, RefusesAnotherModel) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  Position other = position;
  other.model = "vgg16_bn";
  EXPECT_THAT(error_of_reading(directory / "run.checkpoint", other),
              AllOf(HasSubstr("resnet18"), HasSubstr("vgg16_bn")));
  other = position;
  other.classes = 100;
  EXPECT_THAT(error_of_reading(directory / "run.checkpoint", other), HasSubstr("100 classes"));
}

TEST(Checkpoint, NamesAFileThatIsMissingOrCannotBeWritten) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of_reading(directory / "none"), HasSubstr("No such file"));
  EXPECT_THAT(message_of<Error>([&] { write_example(directory / "none" / "run.checkpoint"); }),
              HasSubstr((directory / "none" / "run.checkpoint").string()));
}

}  // namespace
}  // namespace paceline::train
