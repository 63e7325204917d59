// How a process comes to its job: by a unique id, or by what a launcher put into the environment.
#pragma once

#include <memory>
#include <string>

#include "job.h"
#include "shoal/nvshmem.h"

namespace shoal::nvshmem {

// An nvshmemx_status; a text when it is not success.
int bootstrap(unsigned flags, const nvshmemx_init_attr_t* attributes, std::shared_ptr<Job>& job, std::string& problem);

}  // namespace shoal::nvshmem
