// How a process joins its job: by a unique id, or by a launcher's environment variables.
#pragma once

#include <memory>
#include <string>

#include "job.h"
#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

// Returns an nvshmemx_status, and a text if it is not success.
int bootstrap(unsigned flags, const nvshmemx_init_attr_t* attributes, std::shared_ptr<Job>& job, std::string& problem);

}  // namespace shoal::nvshmem
