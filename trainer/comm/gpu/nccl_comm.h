// SPDX-License-Identifier: Apache-2.0
// An NCCL communicator that frees itself, throws Error, and never waits without a time limit.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <memory>
#include <mutex>
#include <string>

#include "trainer/comm/gpu/numbers.h"
#include "trainer/comm/nccl_options.h"

namespace paceline::train::nccl {

ncclDataType_t nccl_type(Type type);

// The id that rank 0 of `comm` makes and sends to all. If NCCL fails, `failure` has the error message. It does not
// throw, so that ranks which take part in several exchanges complete all of them.
struct Id {
  ncclUniqueId id{};
  std::string failure;
};
Id exchange_id(MPI_Comm comm);

// A communicator over the ranks of an MPI communicator, in the same order. Its start connects all ranks, in a thread of
// its own that is given up after the time limit. Later calls only queue work; of them, the first send to a rank waits
// for that rank. (A non-blocking communicator of NCCL would start a thread for every call outside of a group, which
// profilers show as thousands.)
class NcclComm {
 public:
  // Call it after exchange_id() over the same ranks, with the rank's device current. name: a literal that profilers
  // show. Throws Error if NCCL fails or a rank is missing within the time limit.
  NcclComm(const Id& id, MPI_Comm comm, const Options& options, const char* name);
  ~NcclComm();  // all work must have ended or been aborted
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Runs NCCL calls with this communicator, which queue work in streams. Afterwards events can be recorded behind that
  // work. what: names the calls in errors. Throws Error.
  template <typename Calls>
  void call(const char* what, Calls calls) {
    const std::lock_guard lock(mutex_);
    check(calls(usable(what)), what);
  }

  // Like call(), with the calls in one group.
  template <typename Calls>
  void group(const char* what, Calls calls) {
    call(what, [&](ncclComm_t comm) {
      ncclResult_t result = ncclGroupStart();
      if (result == ncclSuccess) result = calls(comm);
      const ncclResult_t end = ncclGroupEnd();
      return result == ncclSuccess ? end : result;
    });
  }

  // Throws Error if an operation has failed since. May be called from any thread; does nothing while another thread is
  // in call().
  void look();

  // Aborts the operations on the device, so that streams go on. Later calls throw `why`. May be called from any thread.
  void abort(const std::string& why);

  // Registers memory of ncclMemAlloc, so that NCCL reads and writes it without copies. Returns the registration, which
  // must be released before the memory is freed.
  void* register_memory(void* memory, std::size_t bytes);
  void deregister_memory(void* registration);

 private:
  ncclComm_t usable(const char* what) const;
  void check(ncclResult_t result, const char* what) const;
  static std::string last_message(ncclComm_t comm);

  ncclComm_t comm_ = nullptr;
  int rank_ = 0, size_ = 1;
  std::mutex mutex_;
  std::string aborted_;  // the reason; empty: not aborted
};

// For work that may fail on some ranks: returns on all ranks of `comm` the text of the first rank that passes one, with
// the rank's name; empty if none does. A collective call.
std::string first_failure(MPI_Comm comm, const std::string& own);

}  // namespace paceline::train::nccl
