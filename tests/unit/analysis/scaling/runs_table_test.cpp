// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/runs_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::string_view text) {
  try {
    parse_runs_table(text, "t.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunsTable, ColumnsMayComeInAnyOrderAndFurtherOnesAreConfiguration) {
  const auto runs =
      parse_runs_table("model,seconds,ranks,images,epochs,accuracy\n\"vgg16, bn\",12.5,2,1000,4,0.91\n", "t");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_EQ(runs[0].epochs, 4);
  EXPECT_EQ(runs[0].images, 1000);
  EXPECT_EQ(runs[0].seconds, 12.5);
  EXPECT_EQ(runs[0].accuracy, 0.91);
  EXPECT_EQ(runs[0].config, (std::map<std::string, std::string>{{"model", "vgg16, bn"}}));
  EXPECT_EQ(runs[0].label, "t:2");
}

TEST(RunsTable, WindowsLineEndsByteOrderMarksCommentsAndEmptyLinesAreFine) {
  const auto runs =
      parse_runs_table("\xef\xbb\xbf# 2018\r\nranks,epochs,images,seconds\r\n\r\n 1 ,4,10,2\r\n2,4,10,1", "t");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].ranks, 1);
  EXPECT_EQ(runs[1].label, "t:5");
}

TEST(RunsTable, SemicolonsTabsCapitalLettersAndCarriageReturnsAreRead) {
  for (const char* text : {"Ranks;Epochs;Images;Seconds;Model\n1;4;10;2;\"a;b\"\n2;4;10;1;c\n",
                           "RANKS\tEPOCHS\tIMAGES\tSECONDS\tmodel\n1\t4\t10\t2\ta;b\n2\t4\t10\t1\tc\n",
                           "ranks,epochs,images,seconds,model\r1,4,10,2,a;b\r2,4,10,1,c\r",
                           "# a\r\rranks,epochs,images,seconds,model\r1,4,10,2,a;b\r2,4,10,1,c"}) {
    const auto runs = parse_runs_table(text, "t");
    ASSERT_EQ(runs.size(), 2u) << text;
    EXPECT_EQ(runs[0].seconds, 2);
    EXPECT_EQ(runs[0].config.at("model"), "a;b");
    EXPECT_EQ(runs[1].ranks, 2);
  }
  EXPECT_EQ(parse_runs_table("# a\r\rranks,epochs,images,seconds\r1,4,10,2\r", "t")[0].label, "t:4");
}

TEST(RunsTable, EmptyFieldsBetweenTabsAreKept) {
  const auto runs = parse_runs_table("ranks\tepochs\timages\tseconds\taccuracy\tmodel\n1\t4\t10\t2\t\tm\n", "t");
  EXPECT_FALSE(runs[0].accuracy);
  EXPECT_EQ(runs[0].config.at("model"), "m");
}

TEST(RunsTable, ThroughputIsNotConfiguration) {
  const auto runs = parse_runs_table("ranks,epochs,images,seconds,images/s\n1,4,10,2,5\n2,4,10,1,10\n", "t");
  EXPECT_TRUE(runs[0].config.empty());
}

TEST(RunsTable, ErrorsNameFileLineAndRemedy) {
  EXPECT_THAT(error_of(""), StartsWith("t.csv:1: the file is empty"));
  EXPECT_THAT(error_of("\xef\xbb\xbf \r\n\n"), StartsWith("t.csv:1: the file is empty"));
  EXPECT_THAT(error_of("# only a comment\n"), StartsWith("t.csv:1: no header"));
  EXPECT_THAT(error_of(std::string_view("\xff\xfer\0a\0", 6)), HasSubstr("UTF-16"));
  EXPECT_THAT(error_of(std::string_view("ranks\0", 6)), HasSubstr("not text"));
  EXPECT_THAT(error_of("ranks,epochs,images\n"), StartsWith("t.csv:1: no column seconds"));
  EXPECT_THAT(error_of("ranks,epochs,images,seconds\n"), StartsWith("t.csv:1: no runs"));
  EXPECT_THAT(error_of("ranks,epochs,images,seconds,ranks\n1,1,1,1,1\n"), HasSubstr("the column ranks appears twice"));
  const std::string head = "ranks,epochs,images,seconds,accuracy\n1,4,10,2,0.5\n";
  EXPECT_THAT(error_of(head + "two,4,10,2,0.5\n"), StartsWith("t.csv:3: ranks is \"two\", not a number"));
  EXPECT_THAT(error_of(head + "1.5,4,10,2,0.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(head + "0,4,10,2,0.5\n"), StartsWith("t.csv:3: ranks is 0: it must be above 0"));
  EXPECT_THAT(error_of(head + "1,4,10,nan,0.5\n"), HasSubstr("not a number"));
  EXPECT_THAT(error_of(head + "1,4,10,-2,0.5\n"), HasSubstr("seconds is -2"));
  EXPECT_THAT(error_of(head + "1,4,10,2,93\n"), HasSubstr("0.93, not 93"));
  EXPECT_THAT(error_of(head + "2,4,10,1,5,0.5\n"),
              StartsWith("t.csv:3: 6 fields where the header has 5: write numbers with a decimal point"));
  EXPECT_THAT(error_of("ranks;epochs;images;seconds\n1;4;10;193,17\n"),
              StartsWith("t.csv:2: seconds is \"193,17\": write numbers with a decimal point"));
  EXPECT_THAT(error_of("ranks|epochs|images|seconds\n1|4|10|193\n"), StartsWith("t.csv:1: no column ranks"));
  EXPECT_THAT(error_of(head + "1,4,10,,0.5\n"), StartsWith("t.csv:3: seconds is empty"));
  EXPECT_THAT(error_of("Ranks,ranks,epochs,images,seconds\n"), HasSubstr("the column ranks appears twice"));
  EXPECT_THAT(error_of("ranks,epochs,images,seconds,seconds_sd\n1,1,1,1,-1\n"), HasSubstr("seconds_sd is -1"));
  EXPECT_THAT(error_of(head + "1,4,10\n"), StartsWith("t.csv:3: 3 fields where the header has 5"));
  EXPECT_THAT(error_of(head + "\"1,4,10,2,0.5\n"), HasSubstr("no closing quote"));
}

}  // namespace
}  // namespace paceline::analysis
