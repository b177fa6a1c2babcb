// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/nccl_comm.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "trainer/core/error.h"

namespace paceline::train::nccl {

ncclDataType_t nccl_type(Type type) {
  return type == Type::f32 ? ncclFloat32 : type == Type::f16 ? ncclFloat16 : ncclBfloat16;
}

Type type_of(const std::string& dtype) {
  if (dtype == "f32") return Type::f32;
  if (dtype == "f16") return Type::f16;
  if (dtype == "bf16") return Type::bf16;
  throw Error("‹allreduce-dtype› " + dtype, "unknown type", "use f32, f16 or bf16", Status::usage);
}

namespace {

std::string words(ncclResult_t result) { return ncclGetErrorString(result); }

// What the call returns, or nothing if it takes longer than the limit: then its thread goes on alone.
template <typename Call>
std::optional<ncclResult_t> within(std::chrono::duration<double> limit, Call call) {
  std::packaged_task<ncclResult_t()> task(std::move(call));
  std::future<ncclResult_t> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return result.get();
}

constexpr std::size_t longest_text = 1024;

}  // namespace

Id exchange_id(MPI_Comm comm) {
  struct Message {
    ncclUniqueId id;
    std::array<char, longest_text> failure;
  } message{};
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == 0) {
    const ncclResult_t result = ncclGetUniqueId(&message.id);
    if (result != ncclSuccess) {
      const char* last = ncclGetLastError(nullptr);
      const std::string what =
          failure("ncclGetUniqueId", result, words(result), last != nullptr ? last : "").substr(0, longest_text - 1);
      std::ranges::copy(what, message.failure.begin());
    }
  }
  MPI_Bcast(&message, static_cast<int>(sizeof message), MPI_BYTE, 0, comm);
  return {message.id, message.failure.data()};
}

NcclComm::NcclComm(const Id& id, MPI_Comm comm, const Options& options, const char* name) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  if (!id.failure.empty()) throw Error(id.failure);
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);  // at the start, not in the first collective, which no time limit ends
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = name;
  if (options.ctas.least > 0) config.minCTAs = options.ctas.least;
  if (options.ctas.most > 0) config.maxCTAs = options.ctas.most;
  struct Start {
    ncclComm_t comm = nullptr;
    std::string message;  // of NCCL, which keeps one for each thread
  };
  int device = 0;
  const bool has_device = cudaGetDevice(&device) == cudaSuccess;  // if not, NCCL reports it
  const auto start = std::make_shared<Start>();
  const std::optional<ncclResult_t> result =
      within(std::chrono::duration<double>(options.timeout_s), [=, ranks = size_, rank = rank_]() mutable {
        if (has_device) cudaSetDevice(device);
        const ncclResult_t own = ncclCommInitRankConfig(&start->comm, ranks, id.id, rank, &config);
        if (own != ncclSuccess) start->message = last_message(nullptr);
        return own;
      });
  constexpr const char* what = "ncclCommInitRankConfig";
  if (!result) throw Error(timeout(what, options.timeout_s, ""));
  if (*result != ncclSuccess) throw Error(failure(what, *result, words(*result), start->message));
  comm_ = start->comm;
}

NcclComm::~NcclComm() {
  if (comm_ == nullptr) return;
  // ncclCommFinalize waits for the other ranks, which may have ended.
  const auto ended = within(std::chrono::seconds(10), [comm = comm_] { return ncclCommFinalize(comm); });
  if (ended == ncclSuccess)
    ncclCommDestroy(comm_);
  else
    ncclCommAbort(comm_);
}

ncclComm_t NcclComm::usable(const char* what) const {
  if (comm_ == nullptr) throw Error("NCCL", what, aborted_);
  return comm_;
}

std::string NcclComm::last_message(ncclComm_t comm) {
  const char* last = ncclGetLastError(comm);
  return last != nullptr ? last : "";
}

void NcclComm::check(ncclResult_t result, const char* what) const {
  if (result != ncclSuccess) throw Error(failure(what, result, words(result), last_message(comm_)));
}

void NcclComm::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(usable("a collective"), &state);
  if (asked != ncclSuccess) state = asked;
  if (state == ncclSuccess) return;
  throw Error(failure("a collective", state, words(state), last_message(comm_)));
}

void NcclComm::abort(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  aborted_ = why;
  ncclCommAbort(std::exchange(comm_, nullptr));
}

void* NcclComm::register_memory(void* memory, std::size_t bytes) {
  void* registration = nullptr;
  call("ncclCommRegister", [&](ncclComm_t comm) { return ncclCommRegister(comm, memory, bytes, &registration); });
  return registration;
}

void NcclComm::deregister_memory(void* registration) {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) ncclCommDeregister(comm_, registration);
}

std::string first_failure(MPI_Comm comm, const std::string& own) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int first = own.empty() ? size : rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == size) return "";
  std::array<char, longest_text> text{};
  if (rank == first) {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const std::string named = fmt::format("rank {} on {}: {}", rank, host.data(), own).substr(0, longest_text - 1);
    std::ranges::copy(named, text.begin());
  }
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, first, comm);
  return text.data();
}

}  // namespace paceline::train::nccl
