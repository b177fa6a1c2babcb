// SPDX-License-Identifier: Apache-2.0
// Output directories that others can write to: files that are not traces, planted links, the ranks of a job together.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;

class RecordDirectory : public RecordTest {
 protected:
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(RecordDirectory, ForceRemovesOnlyTraces) {
  ASSERT_TRUE(record("", CONTROL " ranges").by_itself(0));
  const fs::path notes = directory / "run" / "notes.pace", old = files().front().file.path;
  std::ofstream(notes) << "my notes";
  const Ended forced = record("--force", CONTROL " ranges");
  EXPECT_TRUE(forced.by_itself(0)) << forced.err;
  EXPECT_EQ(text_of(notes), "my notes");
  EXPECT_NE(forced.err.find(notes.string() + " is not a trace; it is left alone"), std::string::npos) << forced.err;
  EXPECT_FALSE(fs::exists(old));
  // Nor does the recorder replace it, if its own file would have that name.
  const Ended named = run(PACELINE " record --force -o run/notes.pace -- " CONTROL " ranges");
  EXPECT_TRUE(named.by_itself(0)) << named.err;
  EXPECT_EQ(text_of(notes), "my notes");
  EXPECT_TRUE(fs::exists(directory / "run" / "notes-2.pace"));
}

// One rank may remove a file while the other looks at it. A rank that waited for such a file came 2 s late each time.
TEST_F(RecordDirectory, TwoRanksWithForceDoNotWaitForEachOther) {
  ASSERT_TRUE(record("", CONTROL " ranges").by_itself(0));
  fs::copy_file(files().front().file.path, directory / "old");
  double least = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    for (int old = 0; old < 40; ++old) {
      fs::copy_file(directory / "old", directory / "run" / ("old" + std::to_string(old) + ".pace"));
    }
    const Ended ended = run("for rank in 0 1; do env PACELINE_JOB=job" + std::to_string(repeat) +
                            " OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 " PACELINE
                            " record --force -o run -- date +%s.%N & done; wait");
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    std::istringstream times(ended.out);
    double first = 0, second = 0;
    ASSERT_TRUE(times >> first >> second) << ended.out << ended.err;
    least = std::min(least, std::abs(second - first));
  }
  EXPECT_LT(least, 1.5);
}

// Links that another user has put into the directory, under every name that can be known before.
TEST_F(RecordDirectory, PlantedLinksAreNotFollowed) {
  const fs::path victim = directory / "victim";
  std::ofstream(victim) << "precious";
  const std::string host = [] {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return std::string(name);
  }();
  const std::string plant =
      "mkdir -p run; for name in x.pace x.pace.tmp x-2.pace.tmp .x.pace.tmp .x-2.pace.tmp "
      ".x.pace.$$.tmp .x-2.pace.$$.tmp .paceline-job." +
      host + ".$$.new .paceline-job." + host + ".$$.old; do ln -s " + victim.string() +
      " run/$name; done; exec " PACELINE " record ";
  for (const char* options : {"", "--force ", "--stage stage ", "--stage /dev/shm --force "}) {
    fs::remove_all(directory / "run");
    const Ended ended = run(plant + options + "-o run/x.pace -- " CONTROL " ranges");
    EXPECT_TRUE(ended.by_itself(0)) << options << ended.err;
    EXPECT_EQ(text_of(victim), "precious") << options;
    EXPECT_TRUE(fs::is_symlink(directory / "run" / "x.pace")) << options;
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(directory / "run" / "x-2.pace"))) << options << ended.err;
  }
  // A killed process leaves a file that `paceline record` copies.
  fs::remove_all(directory / "run");
  run(plant + "--stage /dev/shm -o run/x.pace -- " CONTROL " kill-self");
  EXPECT_EQ(text_of(victim), "precious");
  // The marker itself.
  fs::remove_all(directory / "run");
  fs::create_directories(directory / "run");
  fs::create_symlink(victim, directory / "run" / ".paceline-job");
  const Ended refused = record("", CONTROL " ranges");
  EXPECT_TRUE(refused.by_itself(125)) << refused.err;
  EXPECT_EQ(text_of(victim), "precious");
}

// Nobody else writes a trace, whatever the umask is. Whether others read it is for the umask to say.
TEST_F(RecordDirectory, OthersCannotWriteATrace) {
  for (const auto& [mask, mode] : {std::pair("000", 0644), std::pair("022", 0644), std::pair("077", 0600)}) {
    fs::remove_all(directory / "run");
    ASSERT_TRUE(
        run("umask " + std::string(mask) + "; exec " PACELINE " record -o run -- " CONTROL " ranges").by_itself(0));
    struct stat status {};
    ASSERT_EQ(stat(files().front().file.path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, static_cast<mode_t>(mode)) << mask;
  }
}

}  // namespace
}  // namespace paceline::test
