// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/agreement.h"

#include <new>
#include <vector>

namespace paceline::train {

void agree(Collectives& collectives, const std::string& line, Status status) {
  std::vector<double> statuses(static_cast<std::size_t>(collectives.size()));
  statuses[static_cast<std::size_t>(collectives.rank())] = line.empty() ? 0 : static_cast<double>(status);
  collectives.allreduce_sum(statuses);
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank] == 0) continue;
    throw AgreedError(line, static_cast<Status>(static_cast<int>(statuses[rank])), static_cast<int>(rank));
  }
}

void together(Collectives& collectives, const std::function<void()>& part) {
  std::string line;
  Status status = Status::failed;
  try {
    part();
  } catch (const Error& error) {
    line = error.what();
    status = error.status;
  } catch (const std::bad_alloc&) {
    line = "there is not enough memory: lower ‹batch-size›, or train on less data";
  } catch (const std::exception& error) {
    line = error.what();
  }
  agree(collectives, line, status);
}

}  // namespace paceline::train
