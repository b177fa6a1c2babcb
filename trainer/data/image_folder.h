// Data sets as ImageNet is kept: DIR/train/CLASS/*.jpg and DIR/val/CLASS/*.jpg (or DIR/test).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/image_source.h"

namespace paceline::train {

// Whether a directory looks like such a set: it has a folder train.
bool is_image_folder(const std::filesystem::path& directory);

// The names of all pictures (.jpg, .jpeg, in any case) as one text that other ranks can be sent: classes and files in
// the order of their names' bytes, which numbers them, whatever order the file system has. No picture is opened. Throws
// Error: unreadable, fewer than two classes, a class without pictures or, in val, unknown to train; a FIFO, a socket, a
// device or a folder that is called like a picture, unless these are only met when they are read (refuse_special
// false).
std::string list_image_folder(const std::filesystem::path& directory, bool refuse_special = true);

// The contents of files, one after the other.
struct FileContents {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> ends;
};

// One part of such a set. Pictures are read when they are needed, and normalised with ImageNet's usual means and
// deviations; training crops at random, evaluation in the middle (crop.h).
class FolderSource : public ImageSource {
 public:
  enum class Part { train, test };

  // listing: list_image_folder's text. fraction: as keep_fraction takes it.
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
  // Of all pictures; a call to the system for each. Throws Error, or leaves such a file out.
  std::uint64_t bytes_on_disk(bool skip_unreadable = false) const;
  FileContents read_all(bool skip_unreadable = false) const;  // throws Error; or such a file is empty
  void keep(FileContents contents);                           // of the same listing: no file is read any more
  void check_first() const;  // throws Error where the first picture is not to be read on this host

 private:
  void decode(std::size_t sample, const std::optional<Draw>& draw, const Normalization& normalization,
              std::span<float> out) const;

  std::filesystem::path directory_;  // of the part
  std::vector<std::string> classes_;
  std::vector<std::int32_t> labels_;
  std::string names_;                  // of the files, each ends with a zero
  std::vector<std::uint64_t> starts_;  // of each sample's name
  FileContents contents_;              // empty: files are read
  std::int64_t image_size_;
};

}  // namespace paceline::train
