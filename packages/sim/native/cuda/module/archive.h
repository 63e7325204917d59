// Device code in host object files, and in archives of them (libcudadevrt.a, libnvshmem_device.a).
#pragma once

#include <string>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

bool isArchive(const std::string& bytes);
bool isHostObject(const std::string& bytes);

// Finds the PTX of each fat binary. An archive may have no fat binary. An object must have one, and `problem` says so.
CUresult findPtxInArchive(const std::string& bytes, std::vector<std::string>& all, std::string& problem);
CUresult findPtxInObject(const std::string& bytes, std::vector<std::string>& all, std::string& problem);

}  // namespace shoal
