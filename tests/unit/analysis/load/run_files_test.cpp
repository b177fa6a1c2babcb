// SPDX-License-Identifier: Apache-2.0
// How a RUN becomes trace files: packed files, archives, patterns, several formats, and the numbers of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "analysis/load/load.h"
#include "analysis/load/rank_numbers.h"
#include "analysis/load/run_files.h"
#include "analysis/load/unpack.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

extern const TraceReader spans_reader;  // example_reader.cpp

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "dots": a second format. Its one rank has no number.
bool is_dots(const TraceFile& file) {
  char first[4] = {};
  std::ifstream(file.path, std::ios::binary).read(first, sizeof first);
  return std::string_view(first, sizeof first) == "dots";
}
Trace read_dots(std::span<const TraceFile> files, const Progress&) {
  TraceBuilder run;
  for (const TraceFile& file : files) {
    RankBuilder& rank = run.add_rank(unknown_rank);
    rank.info().path = file.path.string();  // the loader puts the name in its place
    rank.info().format = "dots";
    rank.add_main_thread().add_slice(5, 9, "dot");
  }
  return run.finish();
}
const TraceReader dots_reader{"dots", is_dots, read_dots};

struct Member {
  std::string name, contents;
  unsigned type = AE_IFREG;
};

using Format = int (*)(archive*);
using Filter = int (*)(archive*);

class RunFilesTest : public ::testing::Test {
 protected:
  RunFilesTest() {
    fs::create_directories(temporary);
    setenv("TMPDIR", temporary.c_str(), 1);
  }
  ~RunFilesTest() override {
    unsetenv("TMPDIR");
    fs::remove_all(directory);
  }

  fs::path write(const std::string& name, const std::string& contents) const {
    fs::create_directories((directory / name).parent_path());
    std::ofstream(directory / name, std::ios::binary) << contents;
    return directory / name;
  }

  // One file, compressed.
  fs::path compress(const std::string& name, const std::string& contents, Filter filter) const {
    return pack(name, {{"data", contents}}, archive_write_set_format_raw, filter);
  }

  fs::path pack(const std::string& name, const std::vector<Member>& members, Format format, Filter filter) const {
    archive* const output = archive_write_new();
    EXPECT_EQ(format(output), ARCHIVE_OK);
    EXPECT_EQ(filter(output), ARCHIVE_OK);
    EXPECT_EQ(archive_write_open_filename(output, (directory / name).c_str()), ARCHIVE_OK);
    for (const Member& member : members) {
      archive_entry* const entry = archive_entry_new();
      archive_entry_set_pathname(entry, member.name.c_str());
      archive_entry_set_perm(entry, 0644);
      archive_entry_set_filetype(entry, member.type);
      if (member.type == AE_IFLNK) archive_entry_set_symlink(entry, member.contents.c_str());
      const bool has_data = member.type == AE_IFREG;
      archive_entry_set_size(entry, has_data ? static_cast<std::int64_t>(member.contents.size()) : 0);
      archive_write_header(output, entry);
      if (has_data) archive_write_data(output, member.contents.data(), member.contents.size());
      archive_entry_free(entry);
    }
    archive_write_close(output);
    archive_write_free(output);
    return directory / name;
  }

  std::string error_of(const fs::path& run) const {
    try {
      load_run(run, {}, both);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  void expect_nothing_left() const { EXPECT_TRUE(fs::is_empty(temporary)); }

  const fs::path directory = fs::temp_directory_path() / ("paceline-run-files-" + std::to_string(::getpid()));
  const fs::path temporary = directory / "tmp";
  static constexpr const TraceReader* both[] = {&spans_reader, &dots_reader};
  static constexpr const char* rank_0 = "spans 1\n0 0 20 forward\n";
  static constexpr const char* rank_1 = "spans 1\n1 10 30 backward\n";
};

TEST_F(RunFilesTest, ReadsACompressedFileWhateverItsName) {
  const Filter filters[] = {archive_write_add_filter_gzip, archive_write_add_filter_zstd, archive_write_add_filter_xz,
                            archive_write_add_filter_bzip2};
  for (const Filter filter : filters) {
    const fs::path file = compress("trace.txt", rank_0, filter);
    const Trace trace = load_run(file, {}, both);
    ASSERT_EQ(trace.ranks.size(), 1U);
    EXPECT_EQ(trace.ranks[0].path, file.string());
    EXPECT_EQ(trace.ranks[0].tracks[0].slices.size(), 1U);
    EXPECT_THAT(trace.notes, IsEmpty());
    expect_nothing_left();
  }
}

TEST_F(RunFilesTest, ReadsCompressedAndPlainFilesOfOneDirectory) {
  write("a.txt", rank_0);
  compress("b.txt.gz", rank_1, archive_write_add_filter_gzip);
  compress("notes.gz", "no trace", archive_write_add_filter_gzip);
  EXPECT_EQ(load_run(directory, {}, both).ranks.size(), 2U);
  expect_nothing_left();
}

TEST_F(RunFilesTest, ReadsAnArchive) {
  const std::vector<Member> members = {
      {"run4/", "", AE_IFDIR}, {"run4/rank-0.txt", rank_0}, {"run4/rank-1.txt", rank_1}, {"run4/readme", "hello"}};
  const Filter no_filter = archive_write_add_filter_none;
  const fs::path packed[] = {pack("a.tar", members, archive_write_set_format_pax_restricted, no_filter),
                             pack("a.tar.gz", members, archive_write_set_format_ustar, archive_write_add_filter_gzip),
                             pack("a.tzst", members, archive_write_set_format_gnutar, archive_write_add_filter_zstd),
                             pack("a.zip", members, archive_write_set_format_zip, no_filter)};
  for (const fs::path& file : packed) {
    const Trace trace = load_run(file, {}, both);
    ASSERT_EQ(trace.ranks.size(), 2U) << file;
    EXPECT_EQ(trace.ranks[1].path, file.string() + "/run4/rank-1.txt");
    expect_nothing_left();
  }
}

TEST_F(RunFilesTest, ReadsCompressedFilesInAnArchive) {
  const fs::path inner = compress("inner.gz", rank_0, archive_write_add_filter_gzip);
  std::ifstream in(inner, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const fs::path file =
      pack("a.tar", {{"rank0.gz", bytes}}, archive_write_set_format_ustar, archive_write_add_filter_none);
  EXPECT_EQ(load_run(file, {}, both).ranks[0].path, file.string() + "/rank0.gz");
  expect_nothing_left();
}

TEST_F(RunFilesTest, ReadsAnArchiveInADirectoryOnlyIfNothingElseIsATrace) {
  const auto ustar = archive_write_set_format_ustar;
  pack("a.tar", {{"rank-1.txt", rank_1}}, ustar, archive_write_add_filter_none);
  EXPECT_EQ(load_run(directory, {}, both).ranks[0].rank, 1);
  write("rank-0.txt", rank_0);
  EXPECT_EQ(load_run(directory, {}, both).ranks[0].rank, 0);
  expect_nothing_left();
}

TEST_F(RunFilesTest, WritesNothingOutsideItsFolder) {
  const fs::path file = pack("evil.tar",
                             {{"../../escaped", "x"},
                              {"/absolute.txt", rank_0},
                              {"link", "/etc", AE_IFLNK},
                              {"link/passwd", "x"},
                              {"fifo", "", AE_IFIFO},
                              {"a/../../b", "x"}},
                             archive_write_set_format_ustar, archive_write_add_filter_none);
  const Trace trace = load_run(file, {}, both);
  EXPECT_EQ(trace.ranks[0].path, file.string() + "/absolute.txt");
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("evil.tar: 2 links and devices left out"),
                                       HasSubstr("2 members whose paths lead out of the archive left out")));
  EXPECT_FALSE(fs::exists(directory / "escaped"));
  expect_nothing_left();
}

TEST_F(RunFilesTest, RefusesABomb) {
  const fs::path file = compress("bomb.gz", "spans 1\n" + std::string(always_allowed_bytes + (1 << 20), '\n'),
                                 archive_write_add_filter_gzip);
  EXPECT_THAT(error_of(file), HasSubstr("bomb.gz: unpacks to more than 250 times its size"));
  expect_nothing_left();
}

TEST_F(RunFilesTest, RefusesWhatDoesNotFitOnTheDisk) {
  const fs::path file = compress("a.gz", std::string(5000, 'x'), archive_write_add_filter_gzip);
  const Progress none;
  Unpacker unpacker(4000, 1, none);
  EXPECT_THROW(unpacker.unpack_file({file, "a.gz"}, temporary / "a"), Error);
}

TEST_F(RunFilesTest, RefusesAnEncryptedZip) {
  archive* const output = archive_write_new();
  archive_write_set_format_zip(output);
  ASSERT_EQ(archive_write_set_options(output, "zip:encryption=traditional"), ARCHIVE_OK);
  archive_write_set_passphrase(output, "secret");
  archive_write_open_filename(output, (directory / "secret.zip").c_str());
  archive_entry* const entry = archive_entry_new();
  archive_entry_set_pathname(entry, "rank-0.txt");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_size(entry, 8);
  archive_write_header(output, entry);
  archive_write_data(output, "spans 1\n", 8);
  archive_entry_free(entry);
  archive_write_close(output);
  archive_write_free(output);
  EXPECT_THAT(error_of(directory / "secret.zip"), HasSubstr("secret.zip: is encrypted: unpack it with its password"));
  expect_nothing_left();
}

TEST_F(RunFilesTest, ReadsWhatPrecedesTheDamageOfACompressedFile) {
  std::string text = "spans 1\n";
  std::string noise = "0 0 1 ";  // incompressible, so that half of the file is half of the text
  std::srand(3);
  for (int i = 0; i < 400'000; ++i) noise += static_cast<char>('a' + std::rand() % 26);
  for (int i = 0; i < 3; ++i) text += noise + "\n";
  const fs::path file = compress("a.gz", text, archive_write_add_filter_gzip);
  fs::resize_file(file, fs::file_size(file) / 2);
  const Trace trace = load_run(file, {}, both);
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("a.gz: its compression is damaged: ")));
  EXPECT_GE(trace.ranks[0].tracks[0].slices.size(), 1U);
  write("b.gz",
        "\x1f\x8b\x08\x01\x01\x01\x01\x01\x01\x03\xff\xff"
        " is no stream of deflate");
  EXPECT_THAT(error_of(directory / "b.gz"), HasSubstr("b.gz: its compression is damaged: "));
  expect_nothing_left();
}

TEST_F(RunFilesTest, ReadsAPattern) {
  write("run/rank-0.txt", rank_0);
  write("run/rank-1.txt", rank_1);
  write("run/rank-2.txt", "spans 1\n2 0 1 x\n");
  EXPECT_EQ(load_run(directory / "run" / "rank-[01].txt", {}, both).ranks.size(), 2U);
  EXPECT_EQ(load_run(directory / "ru*", {}, both).ranks.size(), 3U);
  EXPECT_THAT(error_of(directory / "other-*"), HasSubstr("other-*: no file matches this pattern"));
}

TEST_F(RunFilesTest, NotesTheFilesOfOtherFormats) {
  write("a.txt", rank_0);
  write("b.dots", "dots");
  write("c.dots", "dots");
  const Trace trace = load_run(directory, {}, both);
  EXPECT_EQ(trace.ranks.size(), 1U);
  EXPECT_THAT(trace.notes,
              ElementsAre(HasSubstr("b.dots and 1 more: left out: they are of the format dots, and this run is read as "
                                    "spans: give them alone")));
}

TEST_F(RunFilesTest, StopsWhenItsProgressSaysSo) {
  const fs::path file =
      compress("a.gz", std::string(rank_0) + std::string(3'000'000, '\n'), archive_write_add_filter_gzip);
  EXPECT_THROW(load_run(
                   file, [](double) { return false; }, both),
               Error);
  expect_nothing_left();
}

TEST_F(RunFilesTest, NumbersRanksByTheNamesOfTheirFiles) {
  write("b-rank-0.dots", "dots");
  write("a-rank-1.dots", "dots");
  const Trace trace = load_run(directory, {}, both);
  EXPECT_EQ(trace.ranks[0].path, (directory / "b-rank-0.dots").string());
  EXPECT_EQ(trace.ranks[1].rank, 1);
  EXPECT_EQ(trace.ranks[1].world_size, 2);
}

TEST_F(RunFilesTest, AFileOfSeveralUnknownRanksIsNamedOnce) {
  TraceBuilder run;
  for (const char* path : {"two.sqlite", "two.sqlite", "other.sqlite"}) {
    Rank info;
    info.rank = unknown_rank;
    info.path = path;
    run.add_rank(std::move(info));
  }
  Trace trace = run.finish();
  try {
    number_ranks(trace);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "two.sqlite: several of its processes have no rank: read this file without the others");
  }
}

TEST_F(RunFilesTest, NamesTheFilesOfAnUnknownAndOfADoubleRank) {
  write("run/left.dots", "dots");
  write("run/right.dots", "dots");
  EXPECT_THAT(error_of(directory / "run"), AllOf(HasSubstr("left.dots, "), HasSubstr("right.dots: "),
                                                 HasSubstr("rename the files so that each name holds")));
  write("twice/a-rank-3.dots", "dots");
  write("twice/b-rank-3.dots", "dots");
  EXPECT_THAT(error_of(directory / "twice"),
              AllOf(HasSubstr("a-rank-3.dots and "), HasSubstr("b-rank-3.dots both hold rank 3: give only one")));
}

TEST_F(RunFilesTest, NotesMissingRanks) {
  write("x-rank1-of-8.dots", "dots");
  write("x-rank5-of-8.dots", "dots");
  EXPECT_THAT(load_run(directory, {}, both).notes, Contains(HasSubstr("2 of 6 ranks were given (1 and 5)")));
}

TEST(RankNumbers, FindsTheNumberAfterTheWordRank) {
  EXPECT_EQ(rank_in_name("run/rank-3-of-128.json.gz"), 3);
  EXPECT_EQ(rank_in_name("Rank12.json"), 12);
  EXPECT_EQ(rank_in_name("trace_rank_7.sqlite"), 7);
  EXPECT_EQ(rank_in_name("rank/trace-5.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("frank.json"), std::nullopt);
  EXPECT_EQ(rank_in_name("ranking-rank4"), 4);
  EXPECT_EQ(rank_in_name("rank99999999999"), std::nullopt);
}

TEST(RankNumbers, FindsTheOnlyNumberThatDiffers) {
  EXPECT_THAT(numbers_that_differ({"d/out.0.nvprof", "d/out.1.nvprof"}), ElementsAre(0, 1));
  EXPECT_THAT(numbers_that_differ({"h2_7.db", "h2_3.db"}), ElementsAre(7, 3));
  EXPECT_THAT(numbers_that_differ({"a1_b1", "a2_b2"}), IsEmpty());          // two differ
  EXPECT_THAT(numbers_that_differ({"out.48213", "out.48214"}), IsEmpty());  // process ids
  EXPECT_THAT(numbers_that_differ({"a.db", "b.db"}), IsEmpty());
}

}  // namespace
}  // namespace paceline::analysis
