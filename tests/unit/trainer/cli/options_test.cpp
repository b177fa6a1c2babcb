// SPDX-License-Identifier: Apache-2.0
// The command line, settings from files and presets, and their precedence.
#include "trainer/cli/options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/cli/help.h"
#include "trainer/cli/settings.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  CommandLine command;
  std::string out, error;
};

Outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "paceline-train");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.command = parse_command_line(static_cast<int>(argv.size()), argv.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.error = testing::internal::GetCapturedStderr();
  return outcome;
}

class Settings : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string name = (directory.path() / "run.toml").string();
    std::ofstream(name) << text;
    return name;
  }
  TemporaryDirectory directory;
};

TEST_F(Settings, ComeFromTheCommandLineThenTheFileThenThePreset) {
  const std::string name = file("batch-size = 16\nlr = 0.5\nmomentum = 0.8\nsynthetic = true\n");
  const Outcome outcome = run({"--preset", "goyal-1hour", "--config", name, "--lr", "0.25"});
  const TrainOptions& o = outcome.command.train;
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.command.action, CommandLine::Action::train);
  EXPECT_EQ(o.optimization.rate.rate, 0.25) << "the command line";
  EXPECT_EQ(o.batch_size, 16) << "the file";
  EXPECT_EQ(o.optimization.optimizer.momentum, 0.8) << "the file";
  EXPECT_TRUE(o.synthetic) << "the file";
  EXPECT_EQ(o.model, "resnet50") << "the preset";
  EXPECT_THAT(o.optimization.rate.step_epochs, ElementsAre(30, 60, 80)) << "the preset";
  EXPECT_TRUE(o.optimization.optimizer.nesterov) << "the preset";
  EXPECT_FALSE(o.optimization.optimizer.weight_decay.batch_norm) << "the preset";
  EXPECT_TRUE(o.optimization.optimizer.weight_decay.biases);
  EXPECT_EQ(o.fraction, 1) << "the default";
}

TEST_F(Settings, AFileMayNameThePreset) {
  const Outcome outcome = run({"--config", file("preset = \"lars\"\nsynthetic = true\nbatch-size = 4\n")});
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.command.train.optimization.optimizer.name, "lars");
  EXPECT_EQ(outcome.command.train.batch_size, 4);
}

TEST_F(Settings, AreDroppedIfTheyExcludeAGivenOption) {
  const std::string name = file("synthetic = true\nepochs = 7\n");
  const Outcome outcome = run({"--config", name, "--data", "somewhere", "--iterations", "5"});
  EXPECT_EQ(outcome.error, "");
  EXPECT_FALSE(outcome.command.train.synthetic);
  EXPECT_EQ(outcome.command.train.iterations, 5u);
  const Outcome preset = run({"--preset", "lars", "--config", file("synthetic = true\niterations = 5\n")});
  EXPECT_EQ(preset.error, "") << "the file's iterations go before the preset's epochs";
  EXPECT_EQ(preset.command.train.iterations, 5u);
}

TEST_F(Settings, AreDroppedIfAGivenOptionMakesThemIneffective) {
  const Outcome outcome = run(
      {"--preset", "goyal-1hour", "--synthetic", "--schedule", "cosine", "--optimizer", "adam", "--model", "vgg11"});
  EXPECT_EQ(outcome.error, "");
  const OptimizationOptions& o = outcome.command.train.optimization;
  EXPECT_THAT(o.rate.step_epochs, IsEmpty());
  EXPECT_FALSE(o.optimizer.nesterov);
  EXPECT_FALSE(o.zero_gamma);
  EXPECT_EQ(outcome.command.train.epochs, 90u) << "the rest of the preset holds";
  const std::string name = file("preset = \"lars\"\noptimizer = \"sgd\"\nsynthetic = true\ntest-images = 7\n");
  EXPECT_EQ(run({"--config", name}).error, "") << "the file goes before the preset's trust";
  EXPECT_EQ(run({"--config", name, "--data", "somewhere"}).error, "") << "and its images before --data";
  EXPECT_THAT(
      run({"--config", name, "--lars-trust", "0.1"}).error,
      AllOf(HasSubstr("--lars-trust only applies to --optimizer lars, not to sgd"), Not(HasSubstr("run.toml"))));
}

TEST_F(Settings, WithSeveralOwnersHoldWhileOneOwnerHolds) {
  const auto base = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.error, "");
    return outcome.command.train.optimization.rate.base_batch;
  };
  const std::string name = file("synthetic = true\nbase-batch = 64\nregime-adaptation = true\n");
  EXPECT_EQ(base({"--config", name}), 64);
  EXPECT_EQ(base({"--config", name, "--lr-scaling", "none"}), 64) << "it is regime adaptation's, too";
  EXPECT_EQ(base({"--config", name, "--regime-adaptation=false"}), 256) << "left out: nothing uses it";
  EXPECT_EQ(base({"--config", name, "--regime-adaptation=false", "--preset", "goyal-1hour"}), 64)
      << "the preset scales";
  EXPECT_EQ(base({"--config", name, "--regime-adaptation=false", "--lr-scaling=sqrt"}), 64);
  EXPECT_THAT(run({"--synthetic", "--base-batch=64"}).error,
              HasSubstr("--base-batch only applies to --lr-scaling linear, sqrt, not to none, or only applies to "
                        "--regime-adaptation"));
}

struct Wrong {
  const char* text;
  const char* place;
  const char* what;
};

TEST_F(Settings, AreRefusedInOneLineThatNamesFileAndLine) {
  for (const Wrong& wrong : {Wrong{"synthetic = true\nlearning-rate = 1\n", "run.toml:2: ", "'learning-rate'"},
                             Wrong{"synthetic = true\n\n\nbatch-size = \"many\"\n", "run.toml:4: ", "--batch-size"},
                             Wrong{"synthetic = true\nlr = true\n", "run.toml:2: ", "--lr"},
                             Wrong{"synthetic = 1\n", "run.toml:1: ", "true or false"},
                             Wrong{"[optimizer]\nlr = 1\n", "run.toml:1: ", "'optimizer'"},
                             Wrong{"lr = 0.1\nlr = 0.2\n", "run.toml:2: ", "lr"}, Wrong{"lr = \n", "run.toml:1: ", ""},
                             Wrong{"optimizer = \"sgdd\"\n", "run.toml:1: ", "sgdd"},
                             Wrong{"lr-steps = [30, \"x\"]\n", "run.toml:1: ", "--lr-steps"},
                             Wrong{"batch_size = 4\n", "run.toml:1: ", "(did you mean batch-size?)"},
                             Wrong{"lr = nan\n", "run.toml:1: ", "--lr: expected a number above 0"},
                             Wrong{"lr = [1, 2]\n", "run.toml:1: ", "--lr: takes one value, but 2 are given"},
                             Wrong{"schedule = \"cosine\"\nsynthetic = true\nlr-steps = [3]\n",
                                   "run.toml:3: ", "--lr-steps only applies to --schedule step"},
                             Wrong{"synthetic = true\npreset = 3\n", "run.toml:2: ", "preset is one of lecture-2gpu"},
                             Wrong{"config = \"other.toml\"\n", "run.toml:1: ", "'config'"},
                             Wrong{"version = true\n", "run.toml:1: ", "'version'"},
                             Wrong{"resize = 16\n", "run.toml:1: ", "expected a whole number from 32"},
                             Wrong{"synthetic = true\nlr-steps = [3]\n", "run.toml:2: ", "--schedule step"}}) {
    const Outcome outcome = run({"--config", file(wrong.text)});
    EXPECT_EQ(outcome.command.action, CommandLine::Action::exit) << wrong.text;
    EXPECT_EQ(outcome.command.status, 2) << wrong.text;
    EXPECT_THAT(outcome.error, AllOf(StartsWith("paceline-train: "), HasSubstr(wrong.place), HasSubstr(wrong.what)));
    EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1) << outcome.error;
  }
  EXPECT_THAT(run({"--config", "/no/such/file.toml"}).error, HasSubstr("/no/such/file.toml: cannot be opened"));
  EXPECT_THAT(run({"--config", "/"}).error, HasSubstr("/: "));
  EXPECT_THAT(run({"--preset", "napoleon"}).error, HasSubstr("napoleon"));
}

TEST_F(Settings, AnErrorOfTheCommandLineNamesNoFile) {
  const Outcome outcome = run({"--config", file("synthetic = true\n"), "--batch-size", "many"});
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("--batch-size"), Not(HasSubstr("run.toml"))));
}

// --show-config of each preset gives a file with the same settings.
TEST_F(Settings, AreShownAsAFileThatGivesThemAgain) {
  for (const std::string& preset : preset_names()) {
    const Outcome shown = run({"--preset", preset, "--synthetic", "--show-config"});
    EXPECT_EQ(shown.command.action, CommandLine::Action::exit);
    EXPECT_EQ(shown.command.status, 0);
    EXPECT_EQ(shown.error, "") << preset;
    for (const Setting& setting : preset_settings(preset)) {
      EXPECT_THAT(shown.out, HasSubstr("\n" + setting.key + " = ")) << preset;
    }
    const Outcome again = run({"--config", file(shown.out), "--show-config"});
    EXPECT_EQ(again.error, "") << preset;
    EXPECT_EQ(again.out, shown.out) << preset;
  }
}

TEST_F(Settings, OfThePresetsAreThoseOfTheirPapers) {
  const auto of = [](const std::string& preset) {
    const Outcome outcome = run({"--preset", preset, "--synthetic"});
    EXPECT_EQ(outcome.error, "");
    return outcome.command.train;
  };
  const TrainOptions goyal = of("goyal-1hour");
  EXPECT_DOUBLE_EQ(scaled_rate(goyal.optimization.rate, 8192), 3.2);
  EXPECT_EQ(goyal.batch_size, 32);
  EXPECT_TRUE(goyal.optimization.zero_gamma);
  const TrainOptions akiba = of("akiba-15min");
  EXPECT_DOUBLE_EQ(scaled_rate(akiba.optimization.rate, 32768), 12.8);
  EXPECT_EQ(akiba.optimization.optimizer.name, "rmsprop_warmup");
  EXPECT_FALSE(akiba.optimization.optimizer.rms_printed_slope);
  EXPECT_EQ(akiba.optimization.batch_norm_statistics, "last");
  EXPECT_EQ(akiba.allreduce_dtype, "f16");
  const TrainOptions lecture = of("lecture-2gpu");
  EXPECT_EQ(lecture.model, "vgg_lecture");
  EXPECT_EQ(lecture.optimization.optimizer.rate_position, "inside");
  EXPECT_EQ(lecture.augment, "none");
  const Schedule halved = plan_rate(lecture.optimization.rate, 64, 50, 1);
  EXPECT_EQ(halved(24), 0.05);
  EXPECT_EQ(halved(25), 0.025);
  EXPECT_EQ(halved(49), 0.025);
  const TrainOptions lars = of("lars");
  EXPECT_EQ(lars.optimization.optimizer.trust, 0.001);
  EXPECT_FALSE(lars.optimization.optimizer.weight_decay.biases);
  const Schedule poly = plan_rate(lars.optimization.rate, 3264, 3700, 100);
  EXPECT_DOUBLE_EQ(poly(200), 10.5 * std::pow(1 - 200 / 3700.0, 2)) << "after two epochs of warm-up";
  EXPECT_NEAR(poly(3699), 0, 1e-6);
  const TrainOptions grow = of("dont-decay");
  const BatchSchedule batches = batch_schedule_of(grow.optimization, 1, 1);
  EXPECT_EQ(batches.accumulate(0), 1);
  EXPECT_EQ(batches.accumulate(59.99), 1);
  EXPECT_EQ(batches.accumulate(60), 5);
  EXPECT_EQ(batches.accumulate(120), 25);
  EXPECT_EQ(batches.accumulate(160), 125);
  EXPECT_EQ(batches.accumulate(199), 125);
  EXPECT_EQ(grow.batch_size, 128);
  EXPECT_EQ(grow.epochs, 200u);
  EXPECT_EQ(grow.optimization.optimizer.momentum, 0.9);
  // The rate is constant, because the batch grows at each step instead.
  const Schedule rate = plan_rate(grow.optimization.rate, 128, 200, 1, batches.absorbed());
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) EXPECT_EQ(rate(epoch), 0.1) << epoch;
}

TEST(Values, AreWrittenInTomlsNotation) {
  EXPECT_EQ(as_toml("0.05"), "0.05");
  EXPECT_EQ(as_toml("5e-4"), "5e-4");
  EXPECT_EQ(as_toml("true"), "true");
  EXPECT_EQ(as_toml("resnet18"), "\"resnet18\"");
  EXPECT_EQ(as_toml(".5"), "\".5\"");
  EXPECT_EQ(as_toml("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
  EXPECT_EQ(as_toml("1\ny = 2"), "\"1\\ny = 2\"") << "no second key";
}

TEST(Help, HasEveryOptionInOneTopicAndInTheWholeText) {
  const std::string all = run({"--help", "all"}).out;
  for (const std::string& topic : help_topics()) {
    if (topic == "all") continue;
    const Outcome outcome = run({"--help", topic});
    EXPECT_EQ(outcome.command.status, 0);
    EXPECT_THAT(outcome.out, HasSubstr("--")) << topic;
    EXPECT_THAT(all, HasSubstr(outcome.out)) << topic;
  }
  EXPECT_THAT(run({"--help", "optimizer"}).out, AllOf(HasSubstr("--lars-trust"), Not(HasSubstr("--image-size"))));
  const std::string overview = run({"--help"}).out;
  EXPECT_THAT(overview, AllOf(HasSubstr("--batch-size"), HasSubstr("optimizer"), HasSubstr("goyal-1hour"),
                              HasSubstr("bench-allreduce"), Not(HasSubstr("--lars-trust"))));
  EXPECT_THAT(run({"--help", "cooking"}).error, AllOf(HasSubstr("cooking"), HasSubstr("optimizer")));
  EXPECT_THAT(run({"make-dataset", "--help"}).out, HasSubstr("--train"));
}

TEST(Help, PrintsTheVersion) {
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.command.action, CommandLine::Action::exit);
  EXPECT_EQ(outcome.command.status, 0);
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("paceline-train "), HasSubstr("\ncommit "), HasSubstr("\nbuilt with  MPI: ")));
  EXPECT_EQ(outcome.error, "");
}

TEST(Options, ThatContradictEachOtherAreRefused) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--optimizer", "adam", "--nesterov"},
                                             {"--lr-steps", "3"},
                                             {"--grow-batch", "2"},
                                             {"--warmup", "constant"},
                                             {"--freeze-batch-norm", "--sync-batch-norm"},
                                             {"--sync-batch-norm", "--ghost-batch", "2"},
                                             {"--sync-batch-norm", "--updater", "overlap"},
                                             {"--deterministic", "--updater", "parameter_server"},
                                             {"--nccl-ctas", "4"},
                                             {"--device", "cuda", "--nccl-ctas", "8:4"},
                                             {"--registered-buffers"},
                                             {"--device", "cuda", "--registered-buffers", "--updater", "main_rank"}}) {
    std::vector<std::string> arguments{"--synthetic"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.command.status, 2) << wrong[0];
    EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1) << outcome.error;
  }
}

// Every option that only has an effect beside another one, given without it.
TEST(Options, WithoutEffectAreRefused) {
  for (const char* wrong : {"--lars-trust=1",
                            "--lars-threshold=1",
                            "--beta1=0.5",
                            "--beta2=0.5",
                            "--epsilon=1",
                            "--rms-decay=0.5",
                            "--rms-lr=1",
                            "--rms-center=1",
                            "--rms-period=1",
                            "--rms-printed-slope",
                            "--lr-steps=1",
                            "--lr-factor=0.5",
                            "--poly-power=1",
                            "--warmup-lr=1 --warmup=none",
                            "--warmup-epochs=1 --warmup=none",
                            "--base-batch=64",
                            "--base-batch=64 --lr-scaling=none --regime-adaptation=false",
                            "--bucket-mb=1",
                            "--max-ahead=1",
                            "--share-gpu",
                            "--cuda-graphs",
                            "--no-fusion",
                            "--plan-cache=none",
                            "--nccl-ctas=4",
                            "--registered-buffers",
                            "--on-bad-image=skip",
                            "--zero-gamma --model=vgg11",
                            "--resnet-v1",
                            "--ghost-batch=2 --model=vgg16",
                            "--sync-batch-norm --model=vgg19",
                            "--momentum=0.5 --optimizer=adam",
                            "--nesterov --optimizer=lars",
                            "--grow-batch-limit=2",
                            "--ghost-batch=64",
                            "--resize=64",
                            "--fraction=0.5",
                            "--broadcast-data",
                            "--train-images=4 --data=d",
                            "--test-images=4 --data=d"}) {
    std::istringstream words(wrong);
    std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
    if (arguments.back() != "--data=d") arguments.push_back("--synthetic");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.command.status, 2) << wrong;
    EXPECT_THAT(outcome.error, HasSubstr(arguments[0].substr(0, arguments[0].find('=')))) << wrong;
    EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1) << outcome.error;
  }
  EXPECT_EQ(run({"--synthetic", "--nesterov=false", "--optimizer", "adam"}).error, "") << "a switch that is off";
  EXPECT_THAT(run({"bench-allreduce", "--share-gpu"}).error, HasSubstr("--device cuda"));
  EXPECT_THAT(run({"make-dataset", "d", "--image-size", "64"}).error, HasSubstr("--format jpeg"));
}

// CLI11 itself accepts nan for any range, and turns numbers that are too long into the largest number.
TEST(Options, AcceptFiniteNumbersWithinTheirRange) {
  for (const char* option : {"--lr", "--weight-decay", "--momentum", "--fraction", "--width", "--warmup-epochs",
                             "--base-batch", "--target-accuracy", "--grow-batch"}) {
    for (const char* value : {"nan", "inf", "-inf", "1e400", "-1", "", "x", "0x", "1,2"}) {
      const Outcome outcome = run({"--synthetic", fmt::format("{}={}", option, value)});
      EXPECT_EQ(outcome.command.status, 2) << option << ' ' << value;
      EXPECT_THAT(outcome.error, HasSubstr(option)) << value;
      EXPECT_LT(outcome.error.size(), 160u) << outcome.error;
    }
  }
  for (const char* option : {"--seed", "--batch-size", "--epochs", "--eval-every", "--threads", "--train-images"}) {
    for (const char* value : {"99999999999999999999999", "18446744073709551616", "1.5", "1e3", "-1", "", "0x10"}) {
      const Outcome outcome = run({"--synthetic", fmt::format("{}={}", option, value)});
      EXPECT_EQ(outcome.command.status, 2) << option << ' ' << value;
      EXPECT_THAT(outcome.error, HasSubstr(option)) << value;
    }
  }
  EXPECT_EQ(run({"--synthetic", "--seed", "18446744073709551615"}).command.train.seed, ~std::uint64_t{0});
  EXPECT_EQ(run({"--synthetic", "--lr", "5e-4"}).command.train.optimization.rate.rate, 5e-4);
}

TEST(Options, ThatDoNotExistAreRefusedWithASuggestion) {
  EXPECT_THAT(run({"--synthetic", "--batch", "4"}).error,
              HasSubstr("there is no option --batch (did you mean --batch-size?)"));
  EXPECT_THAT(run({"--synthetic", "--warmup-epoch=4"}).error, HasSubstr("(did you mean --warmup-epochs?)"));
  EXPECT_THAT(run({"--synthetic", "--batch_size=4"}).error, HasSubstr("--batch_size (did you mean --batch-size?)"));
  EXPECT_THAT(run({"--synthetic", "--cookery", "4"}).error,
              AllOf(HasSubstr("there is no option --cookery"), Not(HasSubstr("mean"))));
  EXPECT_THAT(run({"bench-allreduce", "--size", "4K"}).error, HasSubstr("did you mean --sizes?"));
  EXPECT_THAT(run({"--synthetic", "resnet50"}).error,
              HasSubstr("'resnet50' is neither an option, nor the value of one, nor a command"));
  EXPECT_THAT(run({"--synthetic", "--lr", "1", "--lr", "2"}).error,
              HasSubstr("--lr: takes one value, but 2 are given"));
  EXPECT_THAT(run({"--synthetic", "--log", ""}).error, HasSubstr("--log: is empty"));
  EXPECT_THAT(run({"--synthetic", "--lr"}).error, HasSubstr("--lr: its value is missing"));
}

TEST(Options, TakeTheUsualNamesOfTypes) {
  EXPECT_EQ(run({"--synthetic", "--dtype", "fp32"}).command.train.dtype, "f32");
  EXPECT_EQ(run({"--synthetic", "--device", "cuda", "--dtype", "fp16"}).command.train.dtype, "f16");
  EXPECT_EQ(run({"--synthetic", "--allreduce-dtype", "fp16"}).command.train.allreduce_dtype, "f16");
  EXPECT_EQ(run({"bench-allreduce", "--dtype", "fp16"}).command.bench_allreduce.reduction.dtype, "f16");
  EXPECT_EQ(run({"--synthetic", "--dtype", "fp32"}).command.train.settings,
            run({"--synthetic"}).command.train.settings);
  EXPECT_THAT(run({"--synthetic", "--dtype", "fp64"}).error, HasSubstr("--dtype: fp64 not in {f32"));
}

TEST(Options, FromAFileMustHaveTheRightType) {
  const TemporaryDirectory directory;
  const auto error_of = [&](const std::string& text) {
    put(directory / "run.toml", text);
    return run({"--synthetic", "--config", (directory / "run.toml").string()}).error;
  };
  EXPECT_EQ(
      error_of("batch-size = 8\nlr = 1\nwidth = 0.5\nmodel = \"resnet18\"\ncheckpoint = \"c\"\ncheckpoint-every = 5\n"),
      "");
  EXPECT_THAT(error_of("lr = 0.1\nbatch-size = \"8\"\n"),
              HasSubstr("run.toml:2: --batch-size takes a number: leave out the quotation marks"));
  EXPECT_THAT(error_of("lr-steps = [1, \"2\"]\nschedule = \"step\"\n"), HasSubstr("--lr-steps takes a number"));
  EXPECT_THAT(error_of("momentum = \"0.9\"\n"), HasSubstr("--momentum takes a number"));
  EXPECT_THAT(error_of("config = \"other.toml\"\n"), HasSubstr("'config' is only allowed on the command line"));
  EXPECT_THAT(error_of("confi = \"other.toml\"\n"), Not(HasSubstr("mean")));
}

TEST(Options, OfCheckpointsNeedOne) {
  EXPECT_THAT(run({"--synthetic", "--keep", "2"}).error, HasSubstr("--checkpoint"));
  EXPECT_THAT(run({"--synthetic", "--checkpoint", "c", "--resume", "--overwrite-checkpoint"}).error,
              HasSubstr("excludes"));
  EXPECT_THAT(run({"--synthetic", "--checkpoint", "c", "--checkpoint-every", "ten"}).error,
              AllOf(HasSubstr("--checkpoint-every"), HasSubstr("or a time such as 10m")));
  const TrainOptions options =
      run({"--synthetic", "--checkpoint", "c", "--checkpoint-every", "10m", "--keep", "3"}).command.train;
  EXPECT_EQ(options.checkpoint_every, "10m");
  EXPECT_EQ(options.keep, 3u);
}

TEST(Options, OfCommunicatorsAreTheSameForTrainingAndBenchmark) {
  const std::vector<std::string> given{"--ring-order",   "1,0", "--nccl-ctas", "2:16", "--registered-buffers",
                                       "--comm-timeout", "30"};
  std::vector<std::string> train{"--synthetic", "--device", "cuda", "--communicator", "pure_nccl"};
  std::vector<std::string> bench{"bench-allreduce", "--device", "cuda", "--communicators", "pure_nccl,ring"};
  train.insert(train.end(), given.begin(), given.end());
  bench.insert(bench.end(), given.begin(), given.end());
  const Outcome of_train = run(train), of_bench = run(bench);
  EXPECT_EQ(of_train.error + of_bench.error, "");
  EXPECT_EQ(of_train.command.train.communicator, "pure_nccl");
  EXPECT_TRUE(of_train.command.train.communicator_given);
  EXPECT_FALSE(run({"--synthetic"}).command.train.communicator_given);
  EXPECT_THAT(of_bench.command.bench_allreduce.communicators, ElementsAre("pure_nccl", "ring"));
  for (const nccl::Options& options : {of_train.command.train.reduction, of_bench.command.bench_allreduce.reduction}) {
    EXPECT_EQ(options.ring_order, "1,0");
    EXPECT_EQ(options.ctas.least, 2);
    EXPECT_EQ(options.ctas.most, 16);
    EXPECT_TRUE(options.registered);
    EXPECT_EQ(options.timeout_s, 30);
  }
  EXPECT_THAT(run({"bench-allreduce", "--libraries", "--communicators", "mpi"}).error, HasSubstr("excludes"));
}

}  // namespace
}  // namespace paceline::train
