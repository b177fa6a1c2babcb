// SPDX-License-Identifier: Apache-2.0
// Data sets in ImageNet's layout: DIR/train/CLASS/*.jpg and DIR/val/CLASS/*.jpg (or DIR/test). Pictures may lie in
// subfolders of their class, as for torchvision's ImageFolder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/image_source.h"

namespace paceline::train {

// Whether a directory looks like such a set: it has a folder train.
bool is_image_folder(const std::filesystem::path& directory);

// The files that a listing left out. Hidden files, whose names begin with a dot, do not count.
struct IgnoredFiles {
  std::size_t count = 0;
  std::string first;  // the path of one of them, and why it is ignored

  void add(const std::filesystem::path& file, const char* why);
  std::string line() const;  // one sentence; "" if there are none
};

// The names of all pictures (.jpg, .jpeg, .png or .webp in any case) as one text, which can be sent to other ranks.
// Classes and files are numbered in the order of their names' bytes, independent of the file system's order. No picture
// is opened. `ignored` gets the files that are left out.
// Throws Error if a folder is unreadable, if there are fewer than two classes, for a class without pictures, and for a
// class of val that train does not have.
std::string list_image_folder(const std::filesystem::path& directory, IgnoredFiles* ignored = nullptr);

// The contents of several files in one buffer.
struct FileContents {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> ends;
};

// One part of such a set. Pictures are read when they are needed and normalised with ImageNet's usual means and
// deviations. Training crops at random, evaluation in the middle (crop.h).
class FolderSource : public ImageSource {
 public:
  enum class Part { train, test };

  // listing: the text of list_image_folder(). fraction: see keep_fraction().
  FolderSource(std::filesystem::path directory, const std::string& listing, Part part, std::int64_t image_size,
               double fraction = 1);

  std::size_t size() const override { return labels_.size(); }
  std::int64_t image_size() const override { return image_size_; }
  std::int64_t classes() const override { return static_cast<std::int64_t>(classes_.size()); }
  std::int32_t label(std::size_t sample) const override { return labels_[sample]; }
  void prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const override;
  const Normalization* stored() const override;
  ImageCut prepare_stored(std::size_t sample, const std::optional<Draw>& draw,
                          std::span<std::uint8_t> out) const override;

  std::string name_of(std::size_t sample) const override { return path(sample).string(); }

  std::filesystem::path path(std::size_t sample) const;
  // The bytes of all pictures, with one system call for each. Throws Error for an unreadable file, or leaves it out.
  std::uint64_t bytes_on_disk(bool skip_unreadable = false) const;
  FileContents read_all(bool skip_unreadable = false) const;  // an unreadable file throws Error or counts as empty
  void keep(FileContents contents);                           // of the same listing; no file is read afterwards
  void check_first() const;                                   // throws Error if this host cannot read the first picture

 private:
  void decode(std::size_t sample, const std::optional<Draw>& draw, const Normalization& normalization,
              std::span<float> out) const;

  std::filesystem::path directory_;  // of the part
  std::vector<std::string> classes_;
  std::vector<std::int32_t> labels_;
  std::string names_;                  // of the files, each followed by a zero
  std::vector<std::uint64_t> starts_;  // of each sample's name
  FileContents contents_;              // empty: files are read
  std::int64_t image_size_;
};

}  // namespace paceline::train
