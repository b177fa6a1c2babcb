// SPDX-License-Identifier: Apache-2.0
// `naive`, as in ChainerMN: one MPI_Allreduce for each parameter, so that each parameter pays the latency.
#include "trainer/comm/algorithms.h"

namespace paceline::train {
namespace {

class Naive : public Allreduce {
 public:
  explicit Naive(const Ranks& ranks) : ranks_(ranks) {}

  bool by_segment() const override { return true; }

  void reduce(const Values& parameter) override {
    MPI_Allreduce(MPI_IN_PLACE, parameter.data, static_cast<int>(parameter.count), parameter.element.type(),
                  parameter.element.sum(), ranks_.world);
    parameter.divide(parameter.all());
  }

 private:
  const Ranks& ranks_;
};

}  // namespace

std::unique_ptr<Allreduce> make_naive(const Ranks& ranks) { return std::make_unique<Naive>(ranks); }

}  // namespace paceline::train
