// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcupti, for machines without a GPU: it answers as CUPTI is documented to and as $STAND_IN says, so
// that what surrounds CUPTI (buffers, flushing, exit, refusals) can be tested. It is no CUPTI: that the real one
// behaves so is not shown by any test. It is built twice: as CUDA 13's, and as an old one of CUDA 12
// (STAND_IN_VERSION), which cannot leave out single calls.
//
// As cupti_activity.h says, a flush returns the buffers whose records are all complete, and a forced one all of them.
// The end of a record that is incomplete then is 0.
//
//   STAND_IN=works      (default) takes buffers, fills them, gives them back when flushed
//   STAND_IN=queued     as works, but each kernel ends 50 ms after its launch: the device is never idle
//   STAND_IN=old-driver CUDA 13's refuses to be subscribed to, as with a driver of CUDA 12
//   STAND_IN=conflict   another tool has subscribed: error 39
//   STAND_IN=unknown    a version that nobody knows
//   STAND_IN=starved    as works, but buffers are given back at exit only
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pthread.h>

#define EXPORT __attribute__((visibility("default")))

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t* buffer;
static size_t size, used;
static size_t lost;
static int kinds;
static CUpti_CallbackFunc told;
static int tells[4];  // of streams and contexts that are made
static int enabled[CUPTI_ACTIVITY_KIND_COUNT];
static int subscribed, zeroed;  // the buffers that are given

static int is(const char* behaviour) {
  const char* wanted = getenv("STAND_IN");
  return wanted != NULL && strcmp(wanted, behaviour) == 0;
}

#ifndef STAND_IN_VERSION
#define STAND_IN_VERSION CUPTI_API_VERSION
EXPORT CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, uint8_t enable) {
  (void)call, (void)enable;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t enable) {
  (void)call, (void)enable;
  return CUPTI_SUCCESS;
}
#endif

EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = is("unknown") ? 990000 : STAND_IN_VERSION;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                                   : "some error";
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* data) {
  (void)data;
  *subscriber = NULL;
  if (is("old-driver") && STAND_IN_VERSION >= 130000) return CUPTI_ERROR_NOT_INITIALIZED;
  if (is("conflict") || subscribed) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  told = callback;
  subscribed = 1;
  *subscriber = (CUpti_SubscriberHandle)&subscribed;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (subscriber != (CUpti_SubscriberHandle)&subscribed || !subscribed) return CUPTI_ERROR_INVALID_PARAMETER;
  subscribed = 0;
  memset(tells, 0, sizeof tells);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                       CUpti_CallbackId what) {
  (void)subscriber;
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || what > 3) return CUPTI_ERROR_INVALID_PARAMETER;
  tells[what] = (int)enable;
  return CUPTI_SUCCESS;
}
// The stand-in's handles are its numbers, and something.
EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t* number) {
  *number = (uint32_t)((uintptr_t)context - 0x1000);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t of_thread, uint32_t* number) {
  (void)context, (void)of_thread;
  *number = (uint32_t)((uintptr_t)stream - 0x2000);
  return CUPTI_SUCCESS;
}
static char* call_names[2][1024];  // by API and number: of the calls that are replayed
EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t call, const char** name) {
  const int driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (call < 1024 && call_names[driver][call] != NULL) {
    *name = call_names[driver][call];
    return CUPTI_SUCCESS;
  }
  *name = domain == CUPTI_CB_DOMAIN_DRIVER_API                      ? "cuCtxSynchronize"
          : call == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 ? "cudaLaunchKernel_v7000"
                                                                    : "cudaMemcpyAsync_ptsz_v7000";
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return type <= CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
EXPORT CUptiResult cuptiGetTimestamp(uint64_t* ns) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* bytes, void* value) {
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER && *bytes == 1) zeroed = *(uint8_t*)value;
  return CUPTI_SUCCESS;
}
// Seen with CUDA 13: callbacks that come while others are in use change nothing, and no error says so.
EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                  CUpti_BuffersCallbackCompleteFunc completed) {
  int in_use = 0;
  for (int kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; ++kind) in_use += enabled[kind];
  if (in_use > 0) return CUPTI_SUCCESS;
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  enabled[kind] = 1;
  ++kinds;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled[kind] = 0;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t* dropped) {
  (void)context, (void)stream;
  *dropped = lost;
  lost = 0;
  return CUPTI_SUCCESS;
}

static size_t bytes_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return sizeof(CUpti_ActivityGraphTrace);
    default:
      return 0;
  }
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* from, size_t valid, CUpti_Activity** record) {
  uint8_t* next = *record == NULL ? from : (uint8_t*)*record + bytes_of(*record);
  if ((size_t)(next - from) >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity*)next;
  return CUPTI_SUCCESS;
}

// Full buffers that wait for their records to become complete.
enum { most_full = 1024 };
static struct Full {
  uint8_t* buffer;
  size_t size, used;
  uint64_t complete_from;
} full[most_full];
static size_t full_count;
static uint64_t complete_from;  // of the records in the buffer that is being filled

static uint64_t now_ns(void) {
  uint64_t now;
  cuptiGetTimestamp(&now);
  return now;
}

static void set_buffer_aside(void) {
  if (buffer == NULL || full_count == most_full) return;
  full[full_count++] = (struct Full){buffer, size, used, complete_from};
  buffer = NULL;
  used = 0;
  complete_from = 0;
}

// The kernels that have not ended yet. Only they can be incomplete here.
static void blank_ends(const struct Full* of, uint64_t now) {
  CUpti_Activity* record = NULL;
  while (cuptiActivityGetNextRecord(of->buffer, of->used, &record) == CUPTI_SUCCESS) {
    CUpti_ActivityKernel10* kernel = (CUpti_ActivityKernel10*)record;
    if (is("queued") && record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kernel->end > now) kernel->end = 0;
  }
}

static void give_back(int forced, uint64_t now) {
  size_t kept = 0;
  for (size_t i = 0; i < full_count; ++i) {
    const struct Full of = full[i];
    if (!forced && of.complete_from > now) {
      full[kept++] = of;
      continue;
    }
    blank_ends(&of, now);
    complete(NULL, 0, of.buffer, of.size, of.used);
  }
  full_count = kept;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  const int forced = flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
  if (is("starved") && !forced) return CUPTI_SUCCESS;
  pthread_mutex_lock(&lock);
  const uint64_t now = now_ns();
  if (forced || complete_from <= now) set_buffer_aside();
  give_back(forced, now);
  pthread_mutex_unlock(&lock);
  return CUPTI_SUCCESS;
}

static void put(const void* record, size_t bytes) {
  if (!enabled[((const CUpti_Activity*)record)->kind]) return;
  pthread_mutex_lock(&lock);
  if (buffer != NULL && used + bytes > size) {
    if (!is("starved")) set_buffer_aside();
    buffer = NULL;  // starved: as if it were never given back
    // CUPTI's own thread delivers full buffers between the flushes, too.
    if (full_count >= 64) give_back(0, now_ns());
  }
  if (buffer == NULL) {
    size_t most = 0;
    used = 0;
    request(&buffer, &size, &most);
    if (buffer != NULL && !zeroed) memset(buffer, 0, size);
    for (size_t i = 0; buffer != NULL && i < size; ++i) {
      if (buffer[i] == 0) continue;
      fprintf(stderr, "stand-in: a buffer that is not zeroed\n");
      abort();
    }
  }
  if (buffer == NULL) {
    ++lost;
  } else {
    memcpy(buffer + used, record, bytes);
    used += bytes;
    // Without a queue, a round's kernels count as ended when they are told of, although their times may be later.
    const CUpti_ActivityKernel10* kernel = record;
    if (is("queued") && kernel->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) complete_from = kernel->end;
  }
  pthread_mutex_unlock(&lock);
}

// What a program with a GPU would have caused: so many launches by this thread, each of 2 µs, whose kernels of 10 µs
// follow one another; then a call that waits for them; meanwhile a copy from the host and one to another device, each
// of 50 µs. Returns the kinds that were enabled.
EXPORT int stand_in_run(unsigned first, unsigned launches, unsigned thread) {
  uint64_t now;
  if (request == NULL) return 0;  // nobody listens
  cuptiGetTimestamp(&now);
  for (unsigned i = 0; i < launches; ++i) {
    CUpti_ActivityAPI call;
    memset(&call, 0, sizeof call);
    call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    call.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    call.start = now + 10000 * i;
    call.end = call.start + 2000;
    call.threadId = thread;
    call.correlationId = first + i;
    put(&call, sizeof call);
    CUpti_ActivityKernel10 kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.name = i % 2 == 0 ? "_Z6squarePfi" : "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    kernel.start = call.end + 3000;
    kernel.end = kernel.start + (is("queued") ? 50000000 : 10000);
    kernel.contextId = 1;
    kernel.streamId = 7;
    kernel.gridX = 64, kernel.gridY = 2, kernel.gridZ = 1;
    kernel.blockX = 256, kernel.blockY = 1, kernel.blockZ = 1;
    kernel.registersPerThread = 32;
    kernel.dynamicSharedMemory = 4096;
    kernel.correlationId = first + i;
    put(&kernel, sizeof kernel);
  }
  CUpti_ActivityAPI wait;
  memset(&wait, 0, sizeof wait);
  wait.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  wait.cbid = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize;
  wait.start = now + 10000 * launches;
  wait.end = wait.start + 8000;
  wait.threadId = thread;
  wait.correlationId = first + launches;
  put(&wait, sizeof wait);
  CUpti_ActivityMemcpy6 copy;
  memset(&copy, 0, sizeof copy);
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = 1 << 20;
  copy.start = now + 5000, copy.end = copy.start + 50000;
  copy.contextId = 1;
  copy.streamId = 13;
  put(&copy, sizeof copy);
  CUpti_ActivityMemcpyPtoP4 peer;
  memset(&peer, 0, sizeof peer);
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.srcKind = peer.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  peer.bytes = 2 << 20;
  peer.start = copy.end + 5000, peer.end = peer.start + 50000;
  peer.dstDeviceId = 1;
  peer.contextId = 1;
  peer.streamId = 13;
  put(&peer, sizeof peer);
  CUpti_ActivityAPI quiet = wait;
  quiet.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  quiet.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020;
  put(&quiet, sizeof quiet);
  return kinds;
}

// Context 1 with its streams 7 and 13 is made.
EXPORT void stand_in_makes_streams(void) {
  CUpti_ResourceData made;
  memset(&made, 0, sizeof made);
  made.context = (CUcontext)0x1001;
  if (tells[CUPTI_CBID_RESOURCE_CONTEXT_CREATED]) {
    told(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &made);
  }
  for (uintptr_t stream = 7; stream <= 13; stream += 6) {
    made.resourceHandle.stream = (CUstream)(0x2000 + stream);
    if (tells[CUPTI_CBID_RESOURCE_STREAM_CREATED]) {
      told(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED, &made);
    }
  }
}

// A graph of five kernels is launched ten times: one record each, or one for each kernel.
EXPORT void stand_in_graphs(unsigned first) {
  uint64_t now;
  if (request == NULL) return;
  cuptiGetTimestamp(&now);
  for (unsigned launch = 0; launch < 10; ++launch) {
    const uint64_t start = now + 100000 * launch;
    if (enabled[CUPTI_ACTIVITY_KIND_GRAPH_TRACE]) {
      CUpti_ActivityGraphTrace graph;
      memset(&graph, 0, sizeof graph);
      graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
      graph.start = start, graph.end = start + 50000;
      graph.contextId = 1, graph.streamId = 7, graph.graphId = 3;
      graph.correlationId = first + launch;
      put(&graph, sizeof graph);
      continue;
    }
    for (unsigned node = 0; node < 5; ++node) {
      CUpti_ActivityKernel10 kernel;
      memset(&kernel, 0, sizeof kernel);
      kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      kernel.name = "node";
      kernel.start = start + 10000 * node, kernel.end = kernel.start + 9000;
      kernel.contextId = 1, kernel.streamId = 7, kernel.graphId = 3;
      kernel.gridX = kernel.gridY = kernel.gridZ = kernel.blockX = kernel.blockY = kernel.blockZ = 1;
      kernel.correlationId = first + launch;
      put(&kernel, sizeof kernel);
    }
  }
}

// Delivers the records of a file, which replay.py makes of another tool's trace, when their ends have come; `thread` is
// the thread of all calls. A line is a record: a letter, the begin and the end in ns since the first, and
//   R or D (a call of the runtime or the driver): number, correlation, result, name
//   K (a kernel): context, stream, correlation, graph, grid × 3, block × 3, registers, shared memory × 2, name
//   C (a copy): context, stream, correlation, graph, kind, kinds of memory × 2, bytes
//   S (a memset): context, stream, correlation, graph, value, kind of memory, bytes
// Returns 0, or 1 for a file that is not like that.
EXPORT int stand_in_replay(const char* path, unsigned thread) {
  FILE* file = fopen(path, "r");
  if (file == NULL || request == NULL) return 1;
  const uint64_t zero = now_ns() + 1000000;
  static char line[8192];
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    unsigned long long from, to, of[14];
    int used_chars = 0, count = 0;
    if (sscanf(line + 1, " %llu %llu%n", &from, &to, &used_chars) != 2) return 1;
    char* at = line + 1 + used_chars;
    const int numbers = line[0] == 'K' ? 13 : line[0] == 'C' ? 8 : line[0] == 'S' ? 7 : 3;
    while (count < numbers && sscanf(at, " %llu%n", &of[count], &used_chars) == 1) at += used_chars, ++count;
    if (count != numbers) return 1;
    const char* name = *at == ' ' ? at + 1 : at;
    const uint64_t start = zero + from, end = zero + to;
    for (uint64_t now = now_ns(); now < end; now = now_ns()) {
      const struct timespec rest = {(time_t)((end - now) / 1000000000), (long)((end - now) % 1000000000)};
      nanosleep(&rest, NULL);
    }
    union {
      CUpti_ActivityAPI call;
      CUpti_ActivityKernel10 kernel;
      CUpti_ActivityMemcpy6 copy;
      CUpti_ActivityMemset4 set;
    } record;
    memset(&record, 0, sizeof record);
    switch (line[0]) {
      case 'R':
      case 'D': {
        char** known = of[0] < 1024 ? &call_names[line[0] == 'D'][of[0]] : NULL;
        if (known == NULL) return 1;
        if (*known == NULL) *known = strdup(name);
        record.call.kind = line[0] == 'D' ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
        record.call.start = start, record.call.end = end, record.call.threadId = thread;
        record.call.cbid = (CUpti_CallbackId)of[0];
        record.call.correlationId = (uint32_t)of[1], record.call.returnValue = (uint32_t)of[2];
        put(&record.call, sizeof record.call);
        break;
      }
      case 'K':
        record.kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        record.kernel.start = start, record.kernel.end = end;
        record.kernel.contextId = (uint32_t)of[0], record.kernel.streamId = (uint32_t)of[1];
        record.kernel.correlationId = (uint32_t)of[2], record.kernel.graphId = (uint32_t)of[3];
        record.kernel.gridX = (int)of[4], record.kernel.gridY = (int)of[5], record.kernel.gridZ = (int)of[6];
        record.kernel.blockX = (int)of[7], record.kernel.blockY = (int)of[8], record.kernel.blockZ = (int)of[9];
        record.kernel.registersPerThread = (uint16_t)of[10];
        record.kernel.staticSharedMemory = (int)of[11], record.kernel.dynamicSharedMemory = (int)of[12];
        record.kernel.name = strdup(name);  // lives as long as the process, as a module's
        put(&record.kernel, sizeof record.kernel);
        break;
      case 'C':
        record.copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        record.copy.start = start, record.copy.end = end;
        record.copy.contextId = (uint32_t)of[0], record.copy.streamId = (uint32_t)of[1];
        record.copy.correlationId = (uint32_t)of[2], record.copy.graphId = (uint32_t)of[3];
        record.copy.copyKind = (uint8_t)of[4], record.copy.srcKind = (uint8_t)of[5],
        record.copy.dstKind = (uint8_t)of[6];
        record.copy.bytes = of[7];
        put(&record.copy, sizeof record.copy);
        break;
      case 'S':
        record.set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
        record.set.start = start, record.set.end = end;
        record.set.contextId = (uint32_t)of[0], record.set.streamId = (uint32_t)of[1];
        record.set.correlationId = (uint32_t)of[2], record.set.graphId = (uint32_t)of[3];
        record.set.value = (uint32_t)of[4], record.set.memoryKind = (uint16_t)of[5], record.set.bytes = of[6];
        put(&record.set, sizeof record.set);
        break;
      default:
        return 1;
    }
  }
  fclose(file);
  return 0;
}
