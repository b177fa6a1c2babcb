#include "profiler/inject/sources/nvtx/deferred.h"

#include <pthread.h>
#include <time.h>

#include <atomic>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/sources/nvtx/schemas.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {
namespace {

constexpr std::uint64_t own_clock = NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED;
constexpr std::uint64_t first_system_clock = NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_REALTIME;
constexpr clockid_t system_clocks[] = {CLOCK_REALTIME,      CLOCK_REALTIME_COARSE,  CLOCK_MONOTONIC,
                                       CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};

// Clocks that are read together with the recorder's clock, at their first use and again at submissions, at most ten
// times per second.
struct Source {
  std::uint16_t domain;
  std::uint64_t id;
  int64_t (*read)(void);
  int64_t (*read_with)(void*);
  void* data;
};
Source sources[32];
std::uint32_t source_count = 0;
std::atomic<std::uint32_t> system_clocks_used{0};  // bits
std::uint64_t next_time_domain = 1;
std::uint64_t next_scope = 1;
timespec last_readings{};
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sync(std::uint16_t domain, std::uint64_t first, std::uint64_t second, std::int64_t at_first,
          std::int64_t at_second) {
  emit_surely(events::TimeSync{.domain = domain,
                               .first_domain = first,
                               .second_domain = second,
                               .first_time = static_cast<std::uint64_t>(at_first),
                               .second_time = static_cast<std::uint64_t>(at_second)});
}

std::int64_t middle(std::uint64_t before, std::uint64_t after) {
  return static_cast<std::int64_t>(before + (after - before) / 2);
}

void read_system_clock(std::uint32_t clock) {
  timespec now{};
  const std::uint64_t before = ticks();
  clock_gettime(system_clocks[clock], &now);
  const std::uint64_t after = ticks();
  sync(0, first_system_clock + clock, own_clock, std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec,
       middle(before, after));
}

void read_source(const Source& source) {
  const std::uint64_t before = ticks();
  const std::int64_t now = source.read != nullptr ? source.read() : source.read_with(source.data);
  sync(source.domain, source.id, own_clock, now, middle(before, ticks()));
}

// Called at a submission of this domain, whose clocks can be read because its library is loaded.
void read_clocks(std::uint16_t domain) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  Source used[std::size(sources)];
  std::uint32_t count = 0;
  pthread_mutex_lock(&lock);
  const std::int64_t elapsed =
      (now.tv_sec - last_readings.tv_sec) * 1'000'000'000 + (now.tv_nsec - last_readings.tv_nsec);
  const bool due = elapsed > 100'000'000;
  if (due) {
    last_readings = now;
    for (std::uint32_t i = 0; i < source_count; ++i) {
      if (sources[i].domain == domain) used[count++] = sources[i];
    }
  }
  pthread_mutex_unlock(&lock);
  if (!due) return;
  const std::uint32_t clocks = system_clocks_used.load(std::memory_order_relaxed);
  for (std::uint32_t clock = 0; clock < std::size(system_clocks); ++clock) {
    if ((clocks >> clock & 1) != 0) read_system_clock(clock);
  }
  for (std::uint32_t i = 0; i < count; ++i) read_source(used[i]);
}

void add_source(nvtxDomainHandle_t handle, const Source& given) {
  const ReentrancyGuard guard;
  const std::uint32_t domain = domain_of(handle);
  if (guard.is_nested() || !file_is_open() || is_left_out(domain)) return;
  Source source = given;
  source.domain = number_of(domain);
  pthread_mutex_lock(&lock);
  if (source_count < std::size(sources)) sources[source_count++] = source;
  pthread_mutex_unlock(&lock);
  read_source(source);
}

// --- the functions as NVTX calls them

int64_t get_timestamp() { return static_cast<int64_t>(ticks()); }

std::uint64_t register_time_domain(nvtxDomainHandle_t handle, const nvtxTimeDomainAttr_t* given) {
  const ReentrancyGuard guard;
  const std::uint32_t domain = domain_of(handle);
  if (guard.is_nested() || given == nullptr || !file_is_open()) return NVTX_TIME_DOMAIN_ID_NONE;
  std::uint64_t id = given->timeDomainId;
  if (id == 0) {
    pthread_mutex_lock(&lock);
    id = NVTX_TIME_DOMAIN_ID_DYNAMIC_START + next_time_domain++;
    pthread_mutex_unlock(&lock);
  }
  emit_surely(events::TimeDomain{.domain = number_of(domain),
                                 .flags = static_cast<std::uint16_t>(given->timerFlags),
                                 .id = id,
                                 .clock_type = given->timestampTypeId,
                                 .ticks_per_second = static_cast<std::uint64_t>(given->timerResolution),
                                 .start = given->timerStart});
  note_time_domain(given->timestampTypeId);
  return id;
}

void timer_source(nvtxDomainHandle_t domain, std::uint64_t id, std::uint64_t, int64_t (*read)(void)) {
  if (read != nullptr) add_source(domain, {0, id, read, nullptr, nullptr});
}
void timer_source_with_data(nvtxDomainHandle_t domain, std::uint64_t id, std::uint64_t, int64_t (*read)(void*),
                            void* data) {
  if (read != nullptr) add_source(domain, {0, id, nullptr, read, data});
}

void sync_point(nvtxDomainHandle_t domain, std::uint64_t first, std::uint64_t second, int64_t at_first,
                int64_t at_second) {
  const ReentrancyGuard guard;
  if (!guard.is_nested() && file_is_open()) sync(number_of(domain_of(domain)), first, second, at_first, at_second);
}
void sync_point_table(nvtxDomainHandle_t domain, std::uint64_t first, std::uint64_t second,
                      const nvtxSyncPoint_t* points, std::size_t count) {
  for (std::size_t i = 0; points != nullptr && i < count; ++i) {
    sync_point(domain, first, second, points[i].src, points[i].dst);
  }
}
// Records a line through one point as two points on the line that are far apart.
void conversion_factor(nvtxDomainHandle_t domain, std::uint64_t first, std::uint64_t second, double slope,
                       int64_t at_first, int64_t at_second) {
  constexpr std::int64_t far = std::int64_t{1} << 40;
  const double beyond = slope * static_cast<double>(far);
  if (!(beyond > -4e18 && beyond < 4e18)) return;
  sync_point(domain, first, second, at_first, at_second);
  sync_point(domain, first, second, static_cast<int64_t>(static_cast<std::uint64_t>(at_first) + far),
             static_cast<int64_t>(static_cast<std::uint64_t>(at_second) +
                                  static_cast<std::uint64_t>(static_cast<std::int64_t>(beyond))));
}

void submit(std::uint16_t domain, const Payloads& payloads) {
  emit_with_payloads(payloads, domain, EventType::submit, format::pack_scope(0, 0, domain));
}

void event_submit(nvtxDomainHandle_t handle, const nvtxPayloadData_t* data, std::size_t count) {
  const std::uint32_t domain = domain_of(handle);
  const ReentrancyGuard guard;
  if (guard.is_nested()) return drop_nested_event();
  const Payloads payloads{data, count};
  if (is_left_out(domain) || !recording() || payloads.empty()) return;
  read_clocks(number_of(domain));
  submit(number_of(domain), payloads);
}

void event_batch_submit(nvtxDomainHandle_t handle, const nvtxEventBatch_t* batch) {
  const std::uint32_t domain = domain_of(handle);
  const ReentrancyGuard guard;
  if (guard.is_nested()) return drop_nested_event();
  if (batch == nullptr || batch->events == nullptr || is_left_out(domain) || !recording()) return;
  const KnownSchema* schema = find_schema(number_of(domain), schema_number(batch->eventSchemaId));
  if (schema == nullptr || schema->bytes == 0) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) say("NVTX: batches of deferred events whose schema has no fixed size are not recorded");
    count_dropped(format::DropCause::payload_cut);
    return;
  }
  read_clocks(number_of(domain));
  const auto* events = static_cast<const char*>(batch->events);
  for (std::size_t at = 0; at + schema->bytes <= batch->size; at += schema->bytes) {
    const nvtxPayloadData_t event{batch->eventSchemaId, schema->bytes, events + at};
    submit(number_of(domain), {&event, 1});
  }
}

std::uint64_t register_scope(nvtxDomainHandle_t handle, const nvtxScopeAttr_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested() || given == nullptr || given->structSize < sizeof *given || !file_is_open()) {
    return NVTX_SCOPE_NONE;
  }
  std::uint64_t id = given->scopeId;
  if (id == NVTX_SCOPE_NONE) {
    pthread_mutex_lock(&lock);
    id = NVTX_SCOPE_ID_DYNAMIC_START + next_scope++;
    pthread_mutex_unlock(&lock);
  }
  emit_surely(events::Scope{.domain = number_of(domain_of(handle)),
                            .path = intern_text(given->path),
                            .id = id,
                            .parent = given->parentScope});
  return id;
}

}  // namespace

void note_time_domain(std::uint64_t time_domain) {
  const std::uint64_t clock = time_domain - first_system_clock;  // wraps below it
  if (clock >= std::size(system_clocks)) return;
  const std::uint32_t bit = 1U << clock;
  if ((system_clocks_used.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) {
    read_system_clock(static_cast<std::uint32_t>(clock));
  }
}

void fill_deferred(const ExtensionSlots& slots) {
  slots.fill(NVTX3EXT_CBID_nvtxTimestampGet, get_timestamp);
  slots.fill(NVTX3EXT_CBID_nvtxTimeDomainRegister, register_time_domain);
  slots.fill(NVTX3EXT_CBID_nvtxTimerSource, timer_source);
  slots.fill(NVTX3EXT_CBID_nvtxTimerSourceWithData, timer_source_with_data);
  slots.fill(NVTX3EXT_CBID_nvtxScopeRegister, register_scope);
  slots.fill(NVTX3EXT_CBID_nvtxTimeSyncPoint, sync_point);
  slots.fill(NVTX3EXT_CBID_nvtxTimeSyncPointTable, sync_point_table);
  slots.fill(NVTX3EXT_CBID_nvtxTimestampConversionFactor, conversion_factor);
  slots.fill(NVTX3EXT_CBID_nvtxEventSubmit, event_submit);
  slots.fill(NVTX3EXT_CBID_nvtxEventBatchSubmit, event_batch_submit);
}

void reset_deferred_in_child() { pthread_mutex_init(&lock, nullptr); }

}  // namespace paceline::inject
