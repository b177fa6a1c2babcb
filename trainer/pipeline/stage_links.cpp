// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/stage_links.h"

#include <algorithm>
#include <utility>

#include "trainer/comm/waiting.h"
#include "trainer/core/ranges.h"

namespace paceline::train {
namespace stage_links {
namespace {

constexpr int tag = 11;
constexpr std::size_t longest_message = std::size_t{1} << 30;  // bytes; MPI counts are of type int

template <typename Bytes, typename Call>
void begin(Bytes bytes, std::vector<MPI_Request>& requests, Call call) {
  requests.clear();
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), longest_message);
    call(bytes.data(), static_cast<int>(count), &requests.emplace_back(MPI_REQUEST_NULL));
    bytes = bytes.subspan(count);
  }
}

}  // namespace
}  // namespace stage_links

StageLinks::StageLinks(MPI_Comm chain, OnWait on_wait) : on_wait_(std::move(on_wait)) {
  MPI_Comm_dup(chain, &chain_);
  int rank = 0, size = 1;
  MPI_Comm_rank(chain_, &rank);
  MPI_Comm_size(chain_, &size);
  stage_ = static_cast<std::size_t>(rank);
  stages_ = static_cast<std::size_t>(size);
}

StageLinks::~StageLinks() { MPI_Comm_free(&chain_); }

void StageLinks::exchange(const std::optional<Outgoing>& outgoing, const std::optional<Incoming>& incoming) {
  if (incoming) {
    stage_links::begin(incoming->bytes, receives_, [&](std::byte* data, int count, MPI_Request* request) {
      MPI_Irecv(data, count, MPI_BYTE, static_cast<int>(incoming->from), stage_links::tag, chain_, request);
    });
  }
  if (outgoing) {
    const Range range(Category::send, outgoing->bytes.size());
    stage_links::begin(outgoing->bytes, sends_, [&](const std::byte* data, int count, MPI_Request* request) {
      MPI_Isend(data, count, MPI_BYTE, static_cast<int>(outgoing->to), stage_links::tag, chain_, request);
    });
    wait(sends_, "send to another stage");
  }
  if (incoming) {
    const Range range(Category::receive, incoming->bytes.size());
    wait(receives_, "receive from another stage");
  }
}

void StageLinks::wait(std::vector<MPI_Request>& requests, const char* name) {
  if (on_wait_) on_wait_(name);
  wait_for(requests);
  if (on_wait_) on_wait_(nullptr);
}

}  // namespace paceline::train
