// Every allreduce of this folder, each made in the file of its name, where its source is named too.
#pragma once

#include <memory>
#include <string>

#include "trainer/comm/allreduce.h"
#include "trainer/comm/ranks.h"

namespace paceline::train {

// `ranks` must outlive what is made. By its name; throws Error (usage) for another one.
std::unique_ptr<Allreduce> make_allreduce(const std::string& name, const Ranks& ranks);

std::unique_ptr<Allreduce> make_mpi(const Ranks& ranks);
std::unique_ptr<Allreduce> make_naive(const Ranks& ranks);
std::unique_ptr<Allreduce> make_flat(const Ranks& ranks);
std::unique_ptr<Allreduce> make_hierarchical(const Ranks& ranks);
std::unique_ptr<Allreduce> make_two_dimensional(const Ranks& ranks);
std::unique_ptr<Allreduce> make_single_node(const Ranks& ranks);  // throws Error on more than one host
std::unique_ptr<Allreduce> make_non_cuda_aware(const Ranks& ranks);
std::unique_ptr<Allreduce> make_ring(const Ranks& ranks);
std::unique_ptr<Allreduce> make_halving_doubling(const Ranks& ranks);
std::unique_ptr<Allreduce> make_three_phase(const Ranks& ranks);

}  // namespace paceline::train
