// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/core/safetensors.h"
#include "trainer/core/whole_file.h"
#include "trainer/guard/finite.h"

namespace paceline::train {
namespace weights_file {
namespace {

using safetensors::Tensor;

constexpr std::string_view counter = ".num_batches_tracked";

// The running statistics of one batch norm: its name, and where its means and variances are in Model::statistics().
struct Norm {
  std::string name;
  std::size_t channels = 0, mean = 0, variance = 0;
};

// All backends lay the statistics out alike: batch norm after batch norm, mean before variance, each from a multiple of
// 16 numbers on.
std::vector<Norm> norms_of(Model& model) {
  constexpr std::string_view scale = ".weight";
  std::vector<Norm> norms;
  std::size_t next = 0;
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.batch_norm || !parameter.name.ends_with(scale)) continue;
    Norm norm{parameter.name.substr(0, parameter.name.size() - scale.size()),
              static_cast<std::size_t>(parameter.shape.at(0)), next, 0};
    const std::size_t room = (norm.channels + 15) / 16 * 16;
    norm.variance = norm.mean + room;
    next = norm.variance + room;
    norms.push_back(std::move(norm));
  }
  if (!norms.empty() && next != model.statistics().size()) throw std::logic_error("another layout of the statistics");
  return norms;
}

std::string_view bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Takes the tensors of a file one by one, by name and shape.
class Source {
 public:
  Source(std::string_view content, const std::string& where, const std::string& title)
      : where_(where), title_(title), tensors_(safetensors::read(content, where)) {
    for (const Tensor& tensor : tensors_) by_name_.emplace(tensor.name, &tensor);
  }

  std::vector<float> take(const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      throw Error(where_, fmt::format("tensor {} of a {} is missing", safetensors::in_quotes(name), title_),
                  "name the weights of this ‹model›");
    }
    const Tensor& tensor = *found->second;
    if (tensor.shape != shape) {
      throw Error(where_,
                  fmt::format("tensor {} has the shape {}, and that of this {} has {}", safetensors::in_quotes(name),
                              safetensors::text_of(tensor.shape), title_, safetensors::text_of(shape)),
                  "name the weights of this ‹model› and this number of classes");
    }
    std::vector<float> values = safetensors::floats_of(tensor, where_);
    if (!all_finite(values)) {
      throw Error(where_,
                  fmt::format("tensor {} holds a value that is not a finite number", safetensors::in_quotes(name)),
                  "name another file");
    }
    by_name_.erase(found);
    return values;
  }

  // The number of classes of a linear layer with these inputs; 0 if the file has no such layer.
  std::int64_t classes_of(const Parameter& weight) const {
    const auto found = by_name_.find(weight.name);
    if (found == by_name_.end()) return 0;
    const std::vector<std::int64_t>& shape = found->second->shape;
    return shape.size() == 2 && weight.shape.size() == 2 && shape[1] == weight.shape[1] ? shape[0] : 0;
  }

  void skip(const std::string& name) { by_name_.erase(name); }

  void check_all_taken() const {
    if (by_name_.empty()) return;
    throw Error(
        where_,
        fmt::format("tensor {} belongs to no part of a {}", safetensors::in_quotes(by_name_.begin()->first), title_),
        "name the weights of this ‹model›");
  }

 private:
  const std::string where_, title_;
  const std::vector<Tensor> tensors_;
  std::map<std::string_view, const Tensor*> by_name_;  // those that were not taken yet
};

}  // namespace
}  // namespace weights_file

std::string why_not_torchvisions(const ModelOptions& model) {
  if (model.name == "vgg_lecture") return "torchvision has no vgg_lecture";
  if (model.width != 1) return fmt::format("torchvision has no {} of ‹width› {}", model.name, model.width);
  if (model.resnet_v1) return fmt::format("torchvision has no {} with ‹resnet-v1›, only v1.5", model.name);
  if (model.cifar_stem) {
    return fmt::format("the {} for images of at most 64 pixels has another {} than torchvision's", model.name,
                       model.name.starts_with("vgg") ? "classifier" : "first layer");
  }
  return {};
}

std::string exported_weights(Model& model, std::span<const float> statistics, std::uint64_t batches) {
  std::vector<std::vector<float>> values;  // of the tensors, which refer to them
  std::vector<safetensors::Tensor> tensors;
  values.reserve(model.parameters().size());
  for (const Parameter& parameter : model.parameters()) {
    values.push_back(model.to_plain(parameter, model.weights()));
    tensors.push_back({parameter.name, "F32", parameter.shape, weights_file::bytes_of(values.back())});
  }
  const std::string_view count{reinterpret_cast<const char*>(&batches), sizeof batches};
  for (const weights_file::Norm& norm : weights_file::norms_of(model)) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(norm.channels)};
    const auto part = [&](std::size_t first) {
      return weights_file::bytes_of(statistics.subspan(first, norm.channels));
    };
    tensors.push_back({norm.name + ".running_mean", "F32", shape, part(norm.mean)});
    tensors.push_back({norm.name + ".running_var", "F32", shape, part(norm.variance)});
    tensors.push_back({norm.name + std::string(weights_file::counter), "I64", {}, count});
  }
  return safetensors::write(tensors, "paceline-train");
}

std::string import_weights(std::string_view content, const std::string& where, const std::string& title, Model& model) {
  weights_file::Source source(content, where, title);
  // The last layer, which follows from the number of classes: a weight and a bias.
  const std::size_t count = model.parameters().size();
  const Parameter& last = model.parameters().at(count - 2);
  const std::int64_t classes = source.classes_of(last);
  const bool replaces = classes > 0 && classes != last.shape[0];
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = model.parameters()[i];
    if (replaces && i + 2 >= count) {
      source.skip(parameter.name);
      continue;
    }
    model.from_plain(parameter, source.take(parameter.name, parameter.shape), model.weights());
  }
  std::vector<float> statistics(model.statistics().size());
  model.memory().copy(model.statistics(), statistics);  // the padding stays as it is
  for (const weights_file::Norm& norm : weights_file::norms_of(model)) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(norm.channels)};
    std::ranges::copy(source.take(norm.name + ".running_mean", shape),
                      statistics.begin() + static_cast<std::ptrdiff_t>(norm.mean));
    const std::vector<float> variance = source.take(norm.name + ".running_var", shape);
    if (std::ranges::any_of(variance, [](float value) { return value < 0; })) {
      throw Error(
          where, fmt::format("tensor {} holds a negative variance", safetensors::in_quotes(norm.name + ".running_var")),
          "name another file");
    }
    std::ranges::copy(variance, statistics.begin() + static_cast<std::ptrdiff_t>(norm.variance));
    source.skip(norm.name + std::string(weights_file::counter));
  }
  model.memory().copy(statistics, model.statistics());
  source.check_all_taken();
  if (!replaces) return {};
  return fmt::format("{}: its last layer has {} classes, and this data set has {}: the last layer, {}, begins anew",
                     where, classes, last.shape[0], last.name.substr(0, last.name.rfind('.')));
}

std::string import_weights(const std::filesystem::path& file, const std::string& title, Model& model) {
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code)) {
    throw Error(file.string(), "it is not a regular file", "name a file of weights");
  }
  return import_weights(read_file(file), file.string(), title, model);
}

}  // namespace paceline::train
