// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/core/cast.h"
#include "trainer/core/error.h"
#include "trainer/core/safetensors.h"
#include "trainer/nn/models.h"

namespace paceline::train {
namespace weights_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// 12 channels are no multiple of a vector, so that layouts and statistics are padded.
std::unique_ptr<Model> model_of(std::uint64_t seed, std::int64_t classes = 10) {
  Network net({3, 8, 8});
  int x = net.batch_norm("bn1", net.convolution("conv1", 0, 12, 3, 1, false), true);
  x = net.batch_norm("layer.bn", net.convolution("layer.conv", x, 20, 3, 2, true), true);
  net.linear("fc", net.average_pool("avgpool", x, 4), classes);
  ModelOptions options;
  options.batch_size = 2;
  options.seed = seed;
  return make_cpu_model(net, options);
}

std::vector<float> plain_weights(Model& model) {
  std::vector<float> all;
  for (const Parameter& parameter : model.parameters()) {
    const std::vector<float> plain = model.to_plain(parameter, model.weights());
    all.insert(all.end(), plain.begin(), plain.end());
  }
  return all;
}

std::vector<float> positive_statistics(Model& model) {
  std::vector<float> values(model.statistics().size());
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

std::string exported(Model& model) { return exported_weights(model, positive_statistics(model), 7); }

std::string error_of_importing(const std::string& content) {
  const auto model = model_of(1);
  return message_of<Error>([&] { import_weights(content, "w.safetensors", "small network", *model); });
}

// Fine-tuning: everything but the last layer comes from the file.
TEST(Weights, OfAnotherNumberOfClassesLeaveTheLastLayerAsItIs) {
  const auto from = model_of(1, 10), to = model_of(2, 3);
  const std::vector<float> before = plain_weights(*to);
  const std::string note = import_weights(exported(*from), "w.safetensors", "small network", *to);
  EXPECT_THAT(note,
              AllOf(HasSubstr("its last layer has 10 classes, and this data set has 3"), HasSubstr("begins anew")));
  const std::vector<float> after = plain_weights(*to), given = plain_weights(*from);
  const auto last_layer = [](const Model& model) {
    const Parameter& weight = model.parameters().at(model.parameters().size() - 2);
    return static_cast<std::ptrdiff_t>(weight.shape[0] * weight.shape[1] + weight.shape[0]);
  };
  const auto shared = static_cast<std::ptrdiff_t>(after.size()) - last_layer(*to);
  ASSERT_EQ(shared, static_cast<std::ptrdiff_t>(given.size()) - last_layer(*from));
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + shared, given.begin()));
  EXPECT_TRUE(std::equal(after.begin() + shared, after.end(), before.begin() + shared));
}

TEST(Weights, ReturnFromAFileToTheBit) {
  const auto from = model_of(1), to = model_of(2);
  ASSERT_NE(plain_weights(*from), plain_weights(*to));
  import_weights(exported(*from), "w.safetensors", "small network", *to);
  EXPECT_EQ(plain_weights(*from), plain_weights(*to));
  EXPECT_EQ(exported_weights(*to, to->statistics(), 7), exported(*from));
}

TEST(Weights, HaveTheNamesAndShapesOfTorchvision) {
  const auto model = model_of(1);
  const std::string content = exported(*model);
  using Kind = std::pair<std::string, std::vector<std::int64_t>>;
  std::map<std::string, Kind> tensors;
  for (const safetensors::Tensor& t : safetensors::read(content, "")) tensors[t.name] = {t.dtype, t.shape};
  EXPECT_EQ(tensors.size(), 15u);  // nine parameters, and three of each batch norm
  EXPECT_EQ(tensors["conv1.weight"], (Kind{"F32", {12, 3, 3, 3}}));
  EXPECT_EQ(tensors["layer.bn.running_var"], (Kind{"F32", {20}}));
  EXPECT_EQ(tensors["layer.bn.num_batches_tracked"], (Kind{"I64", {}}));
  EXPECT_EQ(tensors["fc.weight"], (Kind{"F32", {10, 20}}));
}

// The file with one of its tensors changed, or dropped if `change` returns false.
std::string changed(const std::function<bool(safetensors::Tensor&)>& change) {
  const auto model = model_of(1);
  const std::string content = exported(*model);
  std::vector<safetensors::Tensor> kept;
  for (safetensors::Tensor tensor : safetensors::read(content, "")) {
    if (change(tensor)) kept.push_back(tensor);
  }
  return safetensors::write(kept, "a test");
}

TEST(Weights, RefuseWhatIsNotThisModelsInOneLine) {
  const float nan = NAN;
  const std::vector<float> bad(12, nan), negative(12, -1.0f);
  const auto text = [](const std::vector<float>& v) {
    return std::string_view(reinterpret_cast<const char*>(v.data()), v.size() * 4);
  };
  const auto on = [](const char* name, const std::function<void(safetensors::Tensor&)>& act) {
    return [=](safetensors::Tensor& tensor) {
      if (tensor.name == name) act(tensor);
      return true;
    };
  };
  const std::pair<std::string, const char*> cases[] = {
      {changed([](safetensors::Tensor& t) { return t.name != "layer.conv.weight"; }),
       "tensor \"layer.conv.weight\" of a small network is missing"},
      {changed([](safetensors::Tensor& t) { return t.name != "bn1.running_mean"; }), "\"bn1.running_mean\" of a small"},
      {changed(on("fc.weight",
                  [](auto& t) {
                    t.shape = {20, 10};
                  })),
       "has the shape [20, 10], and that of this small network has [10, 20]"},
      {changed(on("fc.bias", [](auto& t) { t.name = "fc.bais"; })), "tensor \"fc.bias\" of a small network is missing"},
      {changed(on("bn1.num_batches_tracked", [](auto& t) { t.name = "more"; })), "tensor \"more\" belongs to no part"},
      {changed(on("fc.bias", [](auto& t) { t.dtype = "I32"; })), "I32 numbers"},
      {changed(on("bn1.weight", [&](auto& t) { t.bytes = text(bad); })),
       "\"bn1.weight\" holds a value that is not a finite number"},
      {changed(on("bn1.running_var", [&](auto& t) { t.bytes = text(negative); })),
       "\"bn1.running_var\" holds a negative variance"},
      {"", "not a safetensors file"},
  };
  for (const auto& [content, wrong] : cases) {
    EXPECT_THAT(error_of_importing(content), AllOf(HasSubstr("w.safetensors: "), HasSubstr(wrong)));
  }
  const auto without_counter = changed([](safetensors::Tensor& t) { return !t.name.ends_with("tracked"); });
  EXPECT_EQ(error_of_importing(without_counter), "") << "only PyTorch uses num_batches_tracked";
}

TEST(Weights, OfSixteenBitsAreConverted) {
  for (const char* dtype : {"F16", "BF16"}) {
    std::vector<std::vector<std::uint16_t>> stored;
    stored.reserve(64);
    const std::string content = changed([&](safetensors::Tensor& tensor) {
      if (tensor.dtype != "F32") return true;
      std::vector<std::uint16_t>& numbers = stored.emplace_back();
      for (const float value : safetensors::floats_of(tensor, "")) {
        numbers.push_back(std::string(dtype) == "F16" ? half_from_float(value) : bfloat16_from_float(value));
      }
      tensor.dtype = dtype;
      tensor.bytes = {reinterpret_cast<const char*>(numbers.data()), numbers.size() * 2};
      return true;
    });
    const auto from = model_of(1), to = model_of(2);
    import_weights(content, "w.safetensors", "small network", *to);
    const std::vector<float> expected = plain_weights(*from), got = plain_weights(*to);
    const float step = std::string(dtype) == "F16" ? 0x1p-11f : 0x1p-8f;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], step * std::abs(expected[i]) + 1e-7) << dtype << ' ' << i;
    }
    EXPECT_NE(got, expected) << "nothing was rounded";
  }
}

TEST(Weights, AreRefusedForModelsThatTorchvisionDoesNotHave) {
  const auto why = [](const std::string& model, std::int64_t image_size, double width = 1, bool v1 = false) {
    ModelOptions options;
    options.name = model;
    options.width = width;
    options.resnet_v1 = v1;
    options.cifar_stem = image_size <= 64;
    return why_not_torchvisions(options);
  };
  for (const std::string& model : model_names()) {
    EXPECT_EQ(why(model, 224).empty(), model != "vgg_lecture") << model;
    EXPECT_FALSE(why(model, 64).empty()) << model;
  }
  EXPECT_THAT(why("resnet50", 224, 0.5), HasSubstr("width› 0.5"));
  EXPECT_THAT(why("resnet50", 224, 1, true), HasSubstr("‹resnet-v1›"));
  EXPECT_THAT(why("vgg11", 32), HasSubstr("classifier"));
}

// torchvision's documentation states these numbers of parameters (num_params of each IMAGENET1K_V1).
TEST(Weights, OfPublishedNetworksAreAsManyAsTorchvisions) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"resnet18", 11689512},  {"resnet34", 21797672},  {"resnet50", 25557032},  {"resnet101", 44549160},
      {"resnet152", 60192808}, {"vgg11", 132863336},    {"vgg13", 133047848},    {"vgg16", 138357544},
      {"vgg19", 143667240},    {"vgg11_bn", 132868840}, {"vgg13_bn", 133053736}, {"vgg16_bn", 138365992},
      {"vgg19_bn", 143678248}};
  for (const auto& [name, count] : published) {
    ModelOptions options;
    options.name = name;
    options.image_size = 224;
    options.classes = 1000;
    options.cifar_stem = false;
    EXPECT_EQ(build_network(options).parameter_count(), count) << name;
  }
}

TEST(Weights, AreOnlyReadFromRegularFiles) {
  const TemporaryDirectory directory;
  const auto model = model_of(1);
  EXPECT_THAT(message_of<Error>([&] { import_weights(directory.path(), "network", *model); }),
              HasSubstr("regular file"));
  EXPECT_THAT(message_of<Error>([&] { import_weights(directory / "none", "network", *model); }),
              HasSubstr("cannot be opened"));
}

}  // namespace
}  // namespace weights_test
}  // namespace paceline::train
