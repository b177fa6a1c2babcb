// `mpi`: one MPI_Allreduce in place; the MPI library chooses the algorithm.
#include "trainer/comm/algorithms.h"

namespace paceline::train {
namespace {

class Mpi : public Allreduce {
 public:
  explicit Mpi(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data, static_cast<int>(values.count), values.element.type(),
                  values.element.sum(), ranks_.world);
    values.divide(values.all());
  }

 private:
  const Ranks& ranks_;
};

}  // namespace

std::unique_ptr<Allreduce> make_mpi(const Ranks& ranks) { return std::make_unique<Mpi>(ranks); }

}  // namespace paceline::train
