#include "trainer/run/agreement.h"

#include <new>
#include <vector>

#include "trainer/error.h"

namespace paceline::train {

void agree(Communicator& communicator, const std::string& what, int status) {
  std::vector<double> statuses(static_cast<std::size_t>(communicator.size()));
  statuses[static_cast<std::size_t>(communicator.rank())] = status;
  communicator.allreduce_sum(statuses);
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank] > 0) throw AgreedError(what, static_cast<int>(statuses[rank]), static_cast<int>(rank));
  }
}

void together(Communicator& communicator, const std::function<void()>& part) {
  std::string what;
  int status = 0;
  try {
    part();
  } catch (const Error& error) {
    what = error.what();
    status = static_cast<int>(error.status);
  } catch (const std::bad_alloc&) {
    what = "there is not enough memory: lower --batch-size, or train on less data";
    status = 1;
  } catch (const std::exception& error) {
    what = error.what();
    status = 1;
  }
  agree(communicator, what, status);
}

}  // namespace paceline::train
