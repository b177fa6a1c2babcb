#include "trainer/comm/communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/comm/mpi_communicator.h"
#include "trainer/error.h"

namespace paceline::train {
namespace {

struct Algorithm {
  const char* name;
  std::unique_ptr<Communicator> (*make)();
};

constexpr Algorithm algorithms[] = {
    {"mpi", [] { return std::unique_ptr<Communicator>(new MpiCommunicator); }},
};

}  // namespace

std::vector<std::string> communicator_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.emplace_back(algorithm.name);
  return names;
}

std::unique_ptr<Communicator> make_communicator(const std::string& name) {
  for (const Algorithm& algorithm : algorithms) {
    if (name == algorithm.name) return algorithm.make();
  }
  throw Error(fmt::format("no communicator '{}'; known: {}", name, fmt::join(communicator_names(), ", ")),
              Status::usage);
}

}  // namespace paceline::train
