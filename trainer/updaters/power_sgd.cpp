// SPDX-License-Identifier: Apache-2.0
// `power_sgd`: gradients of rank r (Vogels, Karimireddy and Jaggi, arXiv 1905.13727, algorithm 1 with the error
// feedback of algorithm 2). The gradient M of a layer is a matrix with a row for each output. With Q from the step
// before (warm start), the ranks average P = M Q, make its columns orthonormal, and average Q = Mᵀ P. Every rank then
// has P Qᵀ, the approximation of the mean. Vectors (biases, batch norms) are averaged as they are.
#include <algorithm>

#include "trainer/updaters/compressed.h"
#include "trainer/updaters/low_rank.h"

namespace paceline::train {
namespace {

constexpr UpdaterOption power_sgd_rank{.key = "power-sgd-rank",
                                       .help = "rank of the matrices, at most a layer's number of rows or columns",
                                       .whole = true,
                                       .least = 1,
                                       .most = 1 << 16,
                                       .standard = 4};

class PowerSgdUpdater : public CompressedUpdater {
 public:
  explicit PowerSgdUpdater(const UpdaterParts& parts) : CompressedUpdater(parts), seed_(parts.pass.seed) {
    for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
      const Parameter& parameter = model_.parameters()[i];
      std::size_t values = 1;
      for (const std::int64_t extent : parameter.shape) values *= static_cast<std::size_t>(extent);
      const auto rows = static_cast<std::size_t>(parameter.shape.at(0));
      if (parameter.shape.size() < 2) {
        vectors_.push_back({i, first_message_, values});
        first_message_ += values;
        continue;
      }
      const std::size_t columns = values / rows;
      const std::size_t rank = std::min({static_cast<std::size_t>(*parts.value(power_sgd_rank)), rows, columns});
      matrices_.push_back({i, {rows, columns, rank}, first_message_, second_message_, std::vector<float>(values)});
      first_message_ += rows * rank;
      second_message_ += columns * rank;
    }
    p_.resize(first_message_);
    q_.resize(second_message_);
    for (const Matrix& matrix : matrices_) fill_normal(q_of(matrix), seed_ * 1'000'003 + matrix.parameter);
  }

  // Counts anew, so that a run that resumes from here draws the same columns.
  bool settle(bool stop) override {
    redrawn_ = 0;
    return CompressedUpdater::settle(stop);
  }
  std::span<float> warm_start() override { return q_; }

 private:
  struct Vector {
    std::size_t parameter, at, values;  // at: in p_
  };
  struct Matrix {
    std::size_t parameter;
    MatrixShape shape;
    std::size_t p, q;              // where its factors are in p_ and q_
    std::vector<float> published;  // M, in the published layout
  };

  std::span<float> p_of(const Matrix& m) { return std::span(p_).subspan(m.p, m.shape.rows * m.shape.rank); }
  std::span<float> q_of(const Matrix& m) { return std::span(q_).subspan(m.q, m.shape.columns * m.shape.rank); }
  const Parameter& parameter(std::size_t index) const { return model_.parameters()[index]; }

  StepResult average(const Score& local, bool stop) override {
    const std::span<float> gradient = model_.gradients();
    residual_.assign(gradient.begin(), gradient.end());
    {
      const Range range(Category::optimizer, compress_, gradient.size_bytes());
      for (const Vector& v : vectors_) {
        std::ranges::copy(model_.to_plain(parameter(v.parameter), gradient),
                          p_.begin() + static_cast<std::ptrdiff_t>(v.at));
      }
      for (Matrix& m : matrices_) {
        m.published = model_.to_plain(parameter(m.parameter), gradient);
        multiply(m.shape, m.published, q_of(m), p_of(m));
      }
    }
    mean(p_, mean_p_);
    std::vector<std::vector<std::size_t>> dropped;
    {
      const Range range(Category::optimizer, compress_, gradient.size_bytes());
      for (const Matrix& m : matrices_) {
        dropped.push_back(orthonormalise(m.shape, p_of(m)));
        multiply_transposed(m.shape, m.published, p_of(m), q_of(m));
      }
    }
    mean(q_, mean_q_);
    const StepResult result = agree(local, stop);
    const Range range(Category::optimizer, decompress_, gradient.size_bytes());
    std::ranges::fill(gradient, 0.0f);
    for (const Vector& v : vectors_) {
      model_.from_plain(parameter(v.parameter), std::span(p_).subspan(v.at, v.values), gradient);
    }
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      Matrix& m = matrices_[i];
      expand(m.shape, p_of(m), q_of(m), m.published);
      model_.from_plain(parameter(m.parameter), m.published, gradient);
      for (const std::size_t column : dropped[i]) redraw(m, column);
    }
    for (std::size_t i = 0; i < residual_.size(); ++i) residual_[i] -= gradient[i];
    for (const Vector& v : vectors_) {  // nothing of a vector is left out
      const Slice whole = slice_of_parameter(model_, v.parameter);
      std::fill_n(residual_.begin() + static_cast<std::ptrdiff_t>(whole.first), whole.count, 0.0f);
    }
    return result;
  }

  void mean(std::vector<float>& values, const RangeName& name) {
    const Range range(Category::allreduce, name, reduction_.payload_bytes(values.size()));
    reduction_.allreduce_mean(values);
  }

  // A column of Q that has become 0 would stay 0.
  void redraw(const Matrix& m, std::size_t column) {
    std::vector<float> fresh(m.shape.columns);
    fill_normal(fresh, (seed_ * 1'000'003 + m.parameter) * 1'000'003 + ++redrawn_);
    const std::span<float> q = q_of(m);
    for (std::size_t j = 0; j < fresh.size(); ++j) q[j * m.shape.rank + column] = fresh[j];
  }

  const std::uint64_t seed_;
  std::uint64_t redrawn_ = 0;  // columns since the last settle(); the same on all ranks
  std::vector<Vector> vectors_;
  std::vector<Matrix> matrices_;
  std::size_t first_message_ = 0, second_message_ = 0;  // values
  std::vector<float> p_, q_;                            // P of all matrices and all vectors; Q of all matrices
  const RangeName mean_p_{"mean of P"}, mean_q_{"mean of Q"};
};

}  // namespace

const UpdaterKind power_sgd_updater{
    .name = "power_sgd",
    .summary = "the gradients of layers are averaged as matrices of low rank, with error feedback",
    .make = make_of<PowerSgdUpdater>,
    .options = {&power_sgd_rank, 1},
    .allreduces = true,
    .only_f32 = "compresses gradients by itself",
    .on_gpus = false,
    .copies = 2};

}  // namespace paceline::train
