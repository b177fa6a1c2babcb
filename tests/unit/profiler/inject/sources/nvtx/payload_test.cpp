// SPDX-License-Identifier: Apache-2.0
// The payload extension as a program uses it, and the resulting file.
#include <nvtx3/nvToolsExtPayload.h>
//
#include <nvtx3/nvToolsExtSemanticsTime.h>
#include <time.h>

#include <cstring>
#include <map>

#include "profiler/format/payload_layout.h"
#include "tests/unit/profiler/inject/child.h"

extern "C" int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module);

namespace paceline::test {
namespace {

using format::EventType;

class InjectNvtxPayload : public RecordingTest {};

struct Reduction {
  std::uint64_t communicator;
  std::size_t bytes;
  int operation;
};
constexpr std::uint64_t own_schema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5, own_enum = own_schema + 1;

nvtxPayloadSchemaEntry_t entry(std::uint64_t type, const char* name, std::uint64_t offset = 0, std::uint64_t flags = 0,
                               std::uint64_t length = 0) {
  nvtxPayloadSchemaEntry_t made{};
  made.flags = flags;
  made.type = type;
  made.name = name;
  made.offset = offset;
  made.arrayOrUnionDetail = length;
  return made;
}

std::uint64_t register_schema(nvtxDomainHandle_t domain, std::vector<nvtxPayloadSchemaEntry_t> entries,
                              std::uint64_t id = 0, std::size_t bytes = 0, const char* name = "schema") {
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.name = name;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries.data();
  schema.numEntries = entries.size();
  schema.payloadStaticSize = bytes;
  schema.schemaId = id;
  return nvtxPayloadSchemaRegister(domain, &schema);
}

std::uint64_t register_reduction(nvtxDomainHandle_t domain) {
  return register_schema(domain,
                         {entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "communicator"),
                          entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "bytes", offsetof(Reduction, bytes)),
                          entry(own_enum, "operation", offsetof(Reduction, operation))},
                         own_schema, sizeof(Reduction), "Reduction");
}

template <class Struct>
nvtxPayloadData_t payload(std::uint64_t schema, const Struct& data) {
  return {schema, sizeof data, &data};
}

std::vector<EventType> types_of(const RecordedFile& file) {
  std::vector<EventType> types;
  for (const RecordedEvent& event : file.events) {
    const auto type = static_cast<int>(event.type);
    if ((type >= 16 && type < 32) || type == 70 || type == 71 || type == 75) types.push_back(event.type);
  }
  return types;
}

TEST_F(InjectNvtxPayload, PayloadsPrecedeTheirEvents) {
  RECORD({
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
    if (register_reduction(domain) != own_schema) exit(1);
    const Reduction reduction{0xfeedfacecafebeef, 4096, 2};
    const nvtxPayloadData_t data = payload(own_schema, reduction);
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "ncclAllReduce";
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;
    attributes.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(&data);
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainMarkEx(domain, &attributes);
    nvtxRangePopPayload(domain, &data, 1);
    nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &attributes));
    nvtxMarkPayload(domain, &data, 1);
    nvtxRangePushPayload(domain, &data, 1);
    nvtxDomainRangePop(domain);
    nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, &data, 1), &data, 1);
    nvtxMarkPayload(domain, nullptr, 0);
  });
  const RecordedFile file = only_file();
  using enum EventType;
  EXPECT_EQ(types_of(file),
            (std::vector<EventType>{EventType::payload, push, EventType::payload, mark, EventType::payload, pop,
                                    EventType::payload, start, end, EventType::payload, mark, EventType::payload, push,
                                    pop, EventType::payload, start, EventType::payload, end, mark}));
  const Reduction expected{0xfeedfacecafebeef, 4096, 2};
  for (const RecordedEvent& blob : file.of(EventType::payload)) {
    EXPECT_EQ(blob.head.low & 0xffffffff, own_schema);
    ASSERT_EQ(blob.bytes.size(), sizeof expected);
    EXPECT_EQ(std::memcmp(blob.bytes.data(), &expected, offsetof(Reduction, operation) + sizeof(int)), 0);
  }
  EXPECT_EQ(file.of(push)[0].name, "ncclAllReduce");
  EXPECT_EQ(file.dropped(), 0u);
}

TEST_F(InjectNvtxPayload, SchemasAndEnumerationsAreDefinedOnce) {
  RECORD({
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
    const nvtxPayloadEnum_t values[] = {{"Sum", 0, 0}, {"Max", 2, 0}};
    nvtxPayloadEnumAttr_t list{};
    list.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
    list.entries = values;
    list.numEntries = 2;
    list.sizeOfEnum = sizeof(int);
    list.schemaId = own_enum;
    for (int i = 0; i < 3; ++i) {
      if (nvtxPayloadEnumRegister(domain, &list) != own_enum || register_reduction(domain) != own_schema) exit(1);
    }
    const std::uint64_t dynamic = register_schema(domain, {entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "layer")});
    if (dynamic <= NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START) exit(2);
    if (register_schema(domain, {entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "layer")}) != dynamic) exit(3);
    if (register_schema(domain, {entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "block")}) == dynamic) exit(4);
    nvtxPayloadSchemaAttr_t empty{};
    if (nvtxPayloadSchemaRegister(domain, &empty) != 0) exit(5);
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::schema).size(), 3u);
  EXPECT_EQ(file.of(EventType::schema_entry).size(), 5u);
  EXPECT_EQ(file.of(EventType::schema)[0].name, "Reduction");
  EXPECT_EQ(file.of(EventType::schema_entry)[1].name, "bytes");
  EXPECT_EQ(file.of(EventType::schema_entry)[1].extension[0].low >> 32, offsetof(Reduction, bytes));
  EXPECT_EQ(file.of(EventType::enumeration).size(), 1u);
  ASSERT_EQ(file.of(EventType::enumerator).size(), 2u);
  EXPECT_EQ(file.of(EventType::enumerator)[1].name, "Max");
  EXPECT_EQ(file.of(EventType::enumerator)[1].extension[0].high, 2u);
}

struct Pointers {
  const char* text;
  const std::uint16_t* numbers;
  std::uint32_t count;
  const double* unpromised;  // a pointer without the copy flag: followed only within the event's own payloads
};

TEST_F(InjectNvtxPayload, PointersAreFollowedWhereTheSchemaAsksForIt) {
  RECORD({
    const std::uint64_t schema =
        register_schema(nullptr,
                        {entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", 0, NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY),
                         entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "count", offsetof(Pointers, count)),
                         entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT16, "numbers", offsetof(Pointers, numbers),
                               NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY |
                                   NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX,
                               1),
                         entry(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "unpromised", offsetof(Pointers, unpromised),
                               NVTX_PAYLOAD_ENTRY_FLAG_POINTER)},
                        0, sizeof(Pointers));
    char text[] = "short-lived";
    std::uint16_t numbers[3] = {7, 8, 9};
    const double pair[2] = {0.5, 1.5};
    Pointers pointers{text, numbers, 3, pair + 1};
    const nvtxPayloadData_t data[] = {payload(schema, pointers),
                                      {NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, sizeof pair, pair}};
    nvtxMarkPayload(nullptr, data, 2);
    std::memset(text, 'x', sizeof text - 1);
    numbers[0] = 0;
    pointers = {nullptr, nullptr, 3, reinterpret_cast<const double*>(16)};
    nvtxMarkPayload(nullptr, data, 2);
    const nvtxPayloadData_t open_end{schema, SIZE_MAX, &pointers};
    nvtxMarkPayload(nullptr, &open_end, 1);
  });
  const RecordedFile file = only_file();
  const auto parts = file.of(EventType::payload_part);
  ASSERT_EQ(parts.size(), 3u);
  std::map<std::uint64_t, std::string> by_offset;
  for (const RecordedEvent& part : parts) by_offset[part.head.low & 0xffffffff] = part.bytes;
  EXPECT_EQ(by_offset[offsetof(Pointers, text)], "short-lived");
  EXPECT_EQ(by_offset[offsetof(Pointers, numbers)], std::string("\7\0\10\0\11\0", 6));
  const double half_more = 1.5;
  EXPECT_EQ(by_offset[offsetof(Pointers, unpromised)], std::string(reinterpret_cast<const char*>(&half_more), 8));
  const auto blobs = file.of(EventType::payload);
  ASSERT_EQ(blobs.size(), 3u);
  EXPECT_EQ(blobs[2].bytes.size(), sizeof(Pointers));
  EXPECT_EQ(file.dropped(), 0u);
}

TEST_F(InjectNvtxPayload, LongPayloadsAreCutAndCounted) {
  static const std::string large(100'000, 'a');
  RECORD({
    const nvtxPayloadData_t raw{NVTX_TYPE_PAYLOAD_SCHEMA_RAW, large.size(), large.data()};
    nvtxMarkPayload(nullptr, &raw, 1);
    const nvtxPayloadData_t text{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, large.c_str()};
    nvtxMarkPayload(nullptr, &text, 1);
    const nvtxPayloadData_t small{NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, "small"};
    std::vector<nvtxPayloadData_t> many(100, small);
    nvtxMarkPayload(nullptr, many.data(), many.size());
    nvtxMarkPayload(nullptr, many.data(), 2);
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::mark).size(), 4u);
  const auto blobs = file.of(EventType::payload);
  ASSERT_EQ(blobs.size(), 2u + 32 + 2);
  EXPECT_EQ(blobs[0].bytes.size(), 16u * 1024);
  EXPECT_EQ(blobs[1].bytes.size(), 16u * 1024);
  EXPECT_EQ(blobs[2].bytes, "small");
  EXPECT_EQ(file.file.header.dropped[static_cast<int>(format::DropCause::payload_cut)], 3u);
}

TEST_F(InjectNvtxPayload, ADomainThatIsLeftOutIsNotEnabled) {
  setenv("PACELINE_NVTX_EXCLUDE_DOMAINS", "out", 1);
  RECORD({
    const nvtxDomainHandle_t out = nvtxDomainCreateA("out");
    const nvtxDomainHandle_t in = nvtxDomainCreateA("in");
    if (nvtxDomainIsEnabled(out) != 0 || nvtxDomainIsEnabled(in) != 1 || nvtxDomainIsEnabled(nullptr) != 1) exit(1);
    const int value = 1;
    const nvtxPayloadData_t data = payload(NVTX_PAYLOAD_ENTRY_TYPE_INT, value);
    nvtxRangePushPayload(out, &data, 1);
    nvtxRangePushPayload(in, &data, 1);
    nvtxRangePopPayload(in, &data, 1);
    nvtxRangePopPayload(out, &data, 1);
    nvtxRangeEndPayload(out, nvtxRangeStartPayload(out, &data, 1), &data, 1);
  });
  unsetenv("PACELINE_NVTX_EXCLUDE_DOMAINS");
  using enum EventType;
  EXPECT_EQ(types_of(only_file()), (std::vector<EventType>{EventType::payload, push, EventType::payload, pop}));
}

TEST_F(InjectNvtxPayload, OtherExtensionsAndVersionsAreRejected) {
  RECORD({
    std::intptr_t slots[64] = {};
    nvtxExtModuleSegment_t segment{0, 8, slots};
    nvtxExtModuleInfo_t module{NVTX_VERSION, sizeof module, NVTX_EXT_PAYLOAD_MODULEID, 0x0103, 1, &segment,
                               nullptr,      nullptr};
    if (InitializeInjectionNvtxExtension(&module) != 1 || slots[7] == 0) exit(1);
    if (slots[8] != 0) exit(2);  // NCCL's table has its own length
    for (const auto& [id, compatible] : {std::pair(1, 0x0104), {2, 0x0102}, {2, 0x0204}, {4, 0x0101}}) {
      module.moduleId = static_cast<std::uint16_t>(id);
      module.compatId = static_cast<std::uint16_t>(compatible);
      if (InitializeInjectionNvtxExtension(&module) != 0) exit(3);
    }
    if (InitializeInjectionNvtxExtension(nullptr) != 0) exit(4);
  });
}

// The constants in payload_layout.h agree with NVTX's headers.
TEST(PayloadLayout, UsesTheNumbersOfNvtx) {
  using namespace format::payload;
  EXPECT_EQ(+type_char32, NVTX_PAYLOAD_ENTRY_TYPE_CHAR32);
  EXPECT_EQ(+type_size, NVTX_PAYLOAD_ENTRY_TYPE_SIZE);
  EXPECT_EQ(+type_uint128, NVTX_PAYLOAD_ENTRY_TYPE_UINT128);
  EXPECT_EQ(+type_float128, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128);
  EXPECT_EQ(+type_tid64, NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64);
  EXPECT_EQ(+type_cstring, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING);
  EXPECT_EQ(+type_utf32, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32);
  EXPECT_EQ(+type_registered_string, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
  EXPECT_EQ(+deep_copy, NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY);
  EXPECT_EQ(array_kind(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX), ArrayKind::length_payload);
  const auto* sizes = NVTX_EXT_PAYLOAD_VERSIONED_ID(nvtxExtPayloadTypeInfo);
  for (std::uint32_t type = 1; type < NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE; ++type) {
    EXPECT_EQ(value_bytes(type), sizes[type].size) << type;
    EXPECT_EQ(value_bytes(type), sizes[type].align) << type;
  }
}

}  // namespace
}  // namespace paceline::test
