// A communicator on host memory over MPI, around one allreduce algorithm: casts, divides, cuts into what MPI can count.
#pragma once

#include <memory>

#include "trainer/comm/allreduce.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/ranks.h"

namespace paceline::train {

// Errors of MPI calls end the job: MPI's own default handler prints the reason and the rank.
class HostCommunicator : public Communicator {
 public:
  // `ordered`: the ranks as the algorithm numbers them, where not as the job does.
  HostCommunicator(std::unique_ptr<Ranks> ranks, std::unique_ptr<Element> element, std::unique_ptr<Allreduce> allreduce,
                   std::unique_ptr<Ranks> ordered = nullptr);

  int rank() const override { return ranks_->rank; }
  int size() const override { return ranks_->size; }
  int local_rank() const override { return ranks_->local_rank; }
  int local_size() const override { return ranks_->local_size; }
  const Ranks& ranks() const { return *ranks_; }

  void set_segments(std::vector<std::size_t> offsets) override { segments_ = std::move(offsets); }
  void allreduce_mean(std::span<float> values) override;
  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override;
  void reduce_sum(std::span<float> values, int root) override;
  void wait_for_all() override;
  void send(std::span<const std::byte> bytes, int to) override;
  void receive(std::span<std::byte> bytes, int from) override;
  std::optional<int> sender() override;
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override;
  std::size_t payload_bytes(std::size_t values) const override { return values * element_->bytes(); }
  void allreduce_sum(std::span<double> values) override;
  void broadcast(std::span<float> values, int root) override;
  void broadcast(std::span<std::uint64_t> values, int root) override;
  void broadcast(std::span<std::byte> values, int root) override;

 private:
  // parts: the lengths that go one by one; they add up to the number of values.
  void mean(std::span<float> values, const std::vector<std::size_t>& parts);
  std::byte* narrowed(std::span<const float> values);
  bool casts() const { return element_->bytes() != sizeof(float); }
  void reduce(Slice slice, std::byte* data, float divisor);

  std::unique_ptr<Ranks> ranks_, ordered_;
  std::unique_ptr<Element> element_;
  std::unique_ptr<Allreduce> allreduce_;
  std::vector<std::size_t> segments_;
  std::vector<std::byte> narrow_;  // the values as 16-bit numbers
};

// make_communicator over ranks that are chosen: those of a part of the job, or with hosts as a test wants them.
std::unique_ptr<HostCommunicator> make_host_communicator(const std::string& name, const std::string& dtype,
                                                         std::unique_ptr<Ranks> ranks,
                                                         const std::vector<int>& ring_order = {});

}  // namespace paceline::train
