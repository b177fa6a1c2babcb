#include "trainer/comm/gpu/nccl_comm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "trainer/comm/waiting.h"
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

NcclComm::NcclComm(const Id& id, MPI_Comm comm, const Options& options, const char* name) : limit_(options.timeout_s) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  if (!id.failure.empty()) throw Error(id.failure);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name;
  if (options.ctas.least > 0) config.minCTAs = options.ctas.least;
  if (options.ctas.most > 0) config.maxCTAs = options.ctas.most;
  try {
    settle(ncclCommInitRankConfig(&comm_, size_, id.id, rank_, &config), "ncclCommInitRankConfig");
  } catch (...) {
    if (comm_ != nullptr) ncclCommAbort(comm_);
    throw;
  }
}

NcclComm::~NcclComm() {
  if (comm_ == nullptr) return;
  // ncclCommFinalize waits for the other ranks, which may have ended, so the wait is limited.
  ncclResult_t state = ncclCommFinalize(comm_);
  const Clock::time_point give_up = Clock::now() + std::chrono::seconds(10);
  while (state == ncclInProgress && Clock::now() < give_up) {
    if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) break;
    if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (state == ncclSuccess)
    ncclCommDestroy(comm_);
  else
    ncclCommAbort(comm_);
}

ncclComm_t NcclComm::usable(const char* what) const {
  if (comm_ == nullptr) throw Error("NCCL", what, aborted_);
  return comm_;
}

std::string NcclComm::last_message() const {
  const char* last = ncclGetLastError(comm_);
  return last != nullptr ? last : "";
}

void NcclComm::settle(ncclResult_t result, const char* what) {
  const Clock::time_point start = Clock::now();
  // It takes microseconds, except for the first call, which connects the ranks.
  for (int tries = 0; result == ncclInProgress; ++tries) {
    if (tries > 1000)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      std::this_thread::yield();
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
    if (asked != ncclSuccess) result = asked;
    if (result == ncclInProgress && Clock::now() - start > limit_) {
      throw Error(timeout(what, limit_.count(), last_message()));
    }
  }
  if (result != ncclSuccess) throw Error(failure(what, result, words(result), last_message()));
}

void NcclComm::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(usable("a collective"), &state);
  if (asked != ncclSuccess) state = asked;
  if (state == ncclSuccess || state == ncclInProgress) return;
  throw Error(failure("a collective", state, words(state), last_message()));
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
