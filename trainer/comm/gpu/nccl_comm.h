// NCCL's communicator with an owner, its errors as the project's, and no wait without an end.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/comm/gpu/numbers.h"
#include "trainer/comm/gpu/options.h"

namespace paceline::train::nccl {

ncclDataType_t nccl_type(Type type);

// What the first place of `comm` made and all have got; `failure` where it could not, in one line. Throws nothing, so
// that ranks that meet in several exchanges meet in all.
struct Id {
  ncclUniqueId id{};
  std::string failure;
};
Id exchange_id(MPI_Comm comm);

// A communicator over the ranks of an MPI communicator, in the order of that. Made without blocking: every wait for
// other ranks looks for errors and at the clock. The price is a thread that NCCL starts for each call outside of the
// first few microseconds of it.
class NcclComm {
 public:
  // After exchange_id() over the same ranks; the current device is the rank's. `name`, a literal, is what profilers
  // show. Throws Error where NCCL fails, and where not all ranks have come within the time.
  NcclComm(const Id& id, MPI_Comm comm, const Options& options, const char* name);
  ~NcclComm();  // all that was begun has ended, or was aborted
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Makes calls of NCCL with this communicator, which put work into streams; `what` names them in errors. Afterwards
  // events can be recorded behind that work. Throws Error.
  template <typename Calls>
  void call(const char* what, Calls calls) {
    const std::lock_guard lock(mutex_);
    settle(calls(usable(what)), what);
  }

  // As call(), the calls within one group.
  template <typename Calls>
  void group(const char* what, Calls calls) {
    call(what, [&](ncclComm_t comm) {
      ncclResult_t result = ncclGroupStart();
      if (result == ncclSuccess) result = calls(comm);
      const ncclResult_t end = ncclGroupEnd();
      return result == ncclSuccess || result == ncclInProgress ? end : result;
    });
  }

  // Throws Error where something has failed since. From any thread; does nothing while another one is in call().
  void look();

  // Ends what hangs on the device, so that streams go on; later calls throw `why`. From any thread.
  void abort(const std::string& why);

  // Memory of ncclMemAlloc that NCCL reads and writes without copies of its own, until it is given back by what this
  // returns, before it is freed.
  void* register_memory(void* memory, std::size_t bytes);
  void deregister_memory(void* registration);

 private:
  using Clock = std::chrono::steady_clock;

  ncclComm_t usable(const char* what) const;
  void settle(ncclResult_t result, const char* what);  // until it is no longer in progress
  std::string last_message() const;

  ncclComm_t comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  const std::chrono::duration<double> limit_;
  std::mutex mutex_;
  std::string aborted_;  // why; empty: it works
};

// Where ranks may fail one by one: returns on all of `comm` the text of the first rank that has one, with its name;
// empty where none has. A collective call.
std::string first_failure(MPI_Comm comm, const std::string& own);

}  // namespace paceline::train::nccl
