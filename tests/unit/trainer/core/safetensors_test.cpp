// SPDX-License-Identifier: Apache-2.0
#include "trainer/core/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace safetensors_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A file with this header and this many bytes behind it.
std::string file_of(const std::string& header, std::size_t bytes) {
  std::string content(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(content.data(), &length, 8);
  return content + header + std::string(bytes, '\1');
}

std::string error_of_reading(const std::string& content) {
  return message_of<Error>([&] { safetensors::read(content, "w.safetensors"); });
}

TEST(Safetensors, KeepNamesShapesAndBytes) {
  const std::vector<safetensors::Tensor> written{
      {"a.weight", "F32", {2, 3}, std::string_view("abcdefghijklmnopqrstuvwx")},
      {"empty", "F32", {0, 5}, {}},
      {"scalar", "I64", {}, std::string_view("12345678")}};
  const std::string content = safetensors::write(written, "a test");
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  EXPECT_EQ(length % 8, 0u) << "the tensors start at a multiple of 8";
  const std::vector<safetensors::Tensor> read = safetensors::read(content, "w.safetensors");
  ASSERT_EQ(read.size(), 3u);
  for (const safetensors::Tensor& tensor : written) {
    const auto found = std::ranges::find(read, tensor.name, &safetensors::Tensor::name);
    ASSERT_NE(found, read.end()) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(found->bytes, tensor.bytes);
  }
}

TEST(Safetensors, ConvertSixteenBitTypes) {
  const std::uint16_t halves[] = {0x3c00, 0xc000, 0x0001}, bfloats[] = {0x3f80, 0xc000};
  const auto text = [](const auto& numbers) {
    return std::string_view(reinterpret_cast<const char*>(numbers), sizeof numbers);
  };
  EXPECT_EQ(safetensors::floats_of({"h", "F16", {3}, text(halves)}, ""), (std::vector<float>{1, -2, 0x1p-24f}));
  EXPECT_EQ(safetensors::floats_of({"b", "BF16", {2}, text(bfloats)}, ""), (std::vector<float>{1, -2}));
  EXPECT_THAT(message_of<Error>([] {
                safetensors::floats_of({"n", "I16", {1}, "ab"}, "w.safetensors");
              }),
              AllOf(HasSubstr("w.safetensors: tensor \"n\""), HasSubstr("I16")));
}

TEST(Safetensors, RefuseEveryCut) {
  const std::string whole = safetensors::write({{"a", "F32", {2}, "abcdefgh"}, {"b", "F16", {1}, "ij"}}, "a test");
  ASSERT_EQ(safetensors::read(whole, "").size(), 2u);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    ASSERT_THAT(error_of_reading(whole.substr(0, length)), HasSubstr("w.safetensors: ")) << length;
  }
}

TEST(Safetensors, RefuseHostileHeadersInOneLine) {
  const auto entry = [](const std::string& rest) { return "{\"a\":{\"dtype\":\"F32\"," + rest + "}}"; };
  const struct {
    std::string header;
    std::size_t bytes;
    const char* wrong;
  } cases[] = {
      {"", 0, "not valid JSON"},
      {"{\"a\"", 0, "not valid JSON at byte"},
      {"[1]", 0, "not a JSON object"},
      {"{} {}", 0, "not valid JSON"},
      {"{\"a\":1}", 0, "expected dtype, shape and data_offsets"},
      {entry("\"shape\":[1]"), 4, "expected dtype, shape and data_offsets"},
      {entry("\"shape\":[1],\"data_offsets\":[0,4],\"more\":1"), 4, "and nothing else"},
      {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype \"F31\""},
      {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "the dtype is not a text"},
      {entry("\"shape\":[-1],\"data_offsets\":[0,4]"), 4, "not a whole number"},
      {entry("\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, "not a whole number"},
      {entry("\"shape\":[18446744073709551615],\"data_offsets\":[0,4]"), 4, "not a whole number"},
      {entry("\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]"), 0, "does not have the bytes"},
      {entry("\"shape\":1,\"data_offsets\":[0,4]"), 4, "the shape is not a short list"},
      {entry("\"shape\":[1],\"data_offsets\":[0]"), 4, "data_offsets are not two numbers"},
      {entry("\"shape\":[1],\"data_offsets\":[4,0]"), 4, "does not have the bytes 4 to 0"},
      {entry("\"shape\":[2],\"data_offsets\":[0,4]"), 4, "shape [2] of F32 does not have the bytes 0 to 4"},
      {entry("\"shape\":[1],\"data_offsets\":[4,8]"), 8, "its bytes begin at 4"},
      {entry("\"shape\":[2],\"data_offsets\":[0,8]"), 4, "its bytes end at 8, and 4 follow the header"},
      {entry("\"shape\":[1],\"data_offsets\":[0,4]"), 6, "2 bytes after the last tensor"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
       "\"data_offsets\":[2,6]}}",
       6, "tensor \"b\": its bytes begin at 2"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
       "\"data_offsets\":[0,1]}}",
       1, "the name \"a\" twice"},
      {"{\"__metadata__\":{\"n\":1}}", 0, "__metadata__"},
      {"{\"line\\nbreak\":{}}", 0, "tensor \"line\\nbreak\""},
  };
  for (const auto& c : cases) {
    const std::string error = error_of_reading(file_of(c.header, c.bytes));
    EXPECT_THAT(error, AllOf(HasSubstr("w.safetensors: "), HasSubstr(c.wrong))) << c.header;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  std::string long_header(8, '\xff');
  EXPECT_THAT(error_of_reading(long_header + "{}"),
              HasSubstr("announce a header of 18446744073709551615 bytes, and 2"));
  EXPECT_TRUE(safetensors::read(file_of("{}   ", 0), "").empty()) << "a header may be padded by spaces";
}

}  // namespace
}  // namespace safetensors_test
}  // namespace paceline::train
