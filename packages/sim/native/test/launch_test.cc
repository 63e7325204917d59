// Valid launch shapes. The packages refuse invalid shapes earlier, so this test calls the driver itself.
#include "check.h"
#include "ptx_cases.h"

namespace {

struct Shape {
  const char* kernel;
  unsigned grid[3], block[3];
  CUresult status;
  unsigned cluster[3] = {0, 0, 0};
  bool isCooperative = false;
  unsigned sharedBytes = 0;
};

CUresult start(CUmodule module, const Shape& shape) {
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, shape.kernel));
  CUlaunchAttribute attributes[2]{};
  CUlaunchConfig config{};
  config.gridDimX = shape.grid[0], config.gridDimY = shape.grid[1], config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0], config.blockDimY = shape.block[1], config.blockDimZ = shape.block[2];
  config.sharedMemBytes = shape.sharedBytes;
  config.attrs = attributes;
  if (shape.cluster[0] != 0) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[config.numAttrs++].value.clusterDim = {shape.cluster[0], shape.cluster[1], shape.cluster[2]};
  }
  if (shape.isCooperative) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[config.numAttrs++].value.cooperative = 1;
  }
  return cuLaunchKernelEx(&config, function, nullptr, nullptr);
}

}  // namespace

TEST(shapes_of_launches_have_limits) {
  check::Primary primary;
  CUmodule module = cases::load(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry any()\n{\nret;\n}\n"
      ".visible .entry most64() .maxntid 64\n{\nret;\n}\n.visible .entry just8x4x2() .reqntid 8, 4, 2\n{\nret;\n}\n"
      ".visible .entry pairs() .reqnctapercluster 2\n{\nret;\n}\n");
  int multiprocessors = 0, blocks = 0;
  OK(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CUfunction any = nullptr;
  OK(cuModuleGetFunction(&any, module, "any"));
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, any, 32, 0));
  const auto together = static_cast<unsigned>(multiprocessors * blocks);
  constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE, noCluster = CUDA_ERROR_INVALID_CLUSTER_SIZE;
  for (const Shape& each : {
           Shape{"any", {1, 1, 1}, {1, 1, 1}, CUDA_SUCCESS},
           {"any", {0, 1, 1}, {1, 1, 1}, invalid},
           {"any", {1, 0, 1}, {1, 1, 1}, invalid},
           {"any", {1, 1, 0}, {1, 1, 1}, invalid},
           {"any", {1, 1, 1}, {0, 1, 1}, invalid},
           {"any", {1, 1, 1}, {1, 0, 1}, invalid},
           {"any", {1, 1, 1}, {1, 1, 0}, invalid},
           {"any", {2147483648u, 1, 1}, {1, 1, 1}, invalid},
           {"any", {1, 65535, 1}, {1, 1, 1}, CUDA_SUCCESS},
           {"any", {1, 65536, 1}, {1, 1, 1}, invalid},
           {"any", {1, 1, 65535}, {1, 1, 1}, CUDA_SUCCESS},
           {"any", {1, 1, 65536}, {1, 1, 1}, invalid},
           {"any", {1, 1, 1}, {1024, 1, 1}, CUDA_SUCCESS},
           {"any", {1, 1, 1}, {1025, 1, 1}, invalid},
           {"any", {1, 1, 1}, {1, 1024, 1}, CUDA_SUCCESS},
           {"any", {1, 1, 1}, {1, 1025, 1}, invalid},
           {"any", {1, 1, 1}, {1, 1, 64}, CUDA_SUCCESS},
           {"any", {1, 1, 1}, {1, 1, 65}, invalid},
           {"any", {1, 1, 1}, {33, 32, 1}, invalid},
           {"most64", {1, 1, 1}, {8, 4, 2}, CUDA_SUCCESS},
           {"most64", {1, 1, 1}, {65, 1, 1}, invalid},
           {"just8x4x2", {1, 1, 1}, {8, 4, 2}, CUDA_SUCCESS},
           {"just8x4x2", {1, 1, 1}, {7, 4, 2}, invalid},
           {"just8x4x2", {1, 1, 1}, {8, 3, 2}, invalid},
           {"just8x4x2", {1, 1, 1}, {8, 4, 1}, invalid},
           {"any", {4, 2, 2}, {1, 1, 1}, CUDA_SUCCESS, {2, 2, 2}},
           {"any", {3, 2, 2}, {1, 1, 1}, noCluster, {2, 1, 1}},
           {"any", {2, 3, 2}, {1, 1, 1}, noCluster, {1, 2, 1}},
           {"any", {2, 2, 3}, {1, 1, 1}, noCluster, {1, 1, 2}},
           {"any", {16, 1, 1}, {1, 1, 1}, noCluster, {16, 1, 1}},
           {"any", {2, 1, 1}, {1, 1, 1}, noCluster, {2, 0, 1}},
           {"any", {2, 1, 1}, {1, 1, 1}, noCluster, {2, 1, 0}},
           {"pairs", {4, 1, 1}, {1, 1, 1}, CUDA_SUCCESS},
           {"pairs", {3, 1, 1}, {1, 1, 1}, noCluster},
           {"pairs", {4, 1, 1}, {1, 1, 1}, CUDA_SUCCESS, {2, 1, 1}},
           {"pairs", {4, 1, 1}, {1, 1, 1}, noCluster, {4, 1, 1}},
           {"pairs", {4, 2, 1}, {1, 1, 1}, noCluster, {2, 2, 1}},
           {"pairs", {4, 1, 2}, {1, 1, 1}, noCluster, {2, 1, 2}},
           {"any", {together, 1, 1}, {32, 1, 1}, CUDA_SUCCESS, {}, true},
           {"any", {together + 1, 1, 1}, {32, 1, 1}, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, {}, true},
           {"any", {together + 1, 1, 1}, {32, 1, 1}, CUDA_SUCCESS},
           {"any", {1, 1, 1}, {1, 1, 1}, CUDA_SUCCESS, {}, false, 48 * 1024},
           {"any", {1, 1, 1}, {1, 1, 1}, invalid, {}, false, 48 * 1024 + 1},
       }) {
    if (const CUresult status = start(module, each); status != each.status) {
      check::fail(__FILE__, __LINE__,
                  std::string(each.kernel) + " on " + std::to_string(each.grid[0]) + " " +
                      std::to_string(each.grid[1]) + " " + std::to_string(each.grid[2]) + " blocks of " +
                      std::to_string(each.block[0]) + " " + std::to_string(each.block[1]) + " " +
                      std::to_string(each.block[2]) + ": got " + std::to_string(status) + ", want " +
                      std::to_string(each.status));
    }
  }
  CUfunction function = any;
  OK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EQUAL(start(module, {"any", {16, 1, 1}, {1, 1, 1}, CUDA_SUCCESS, {16, 1, 1}}), CUDA_SUCCESS);
  EQUAL(start(module, {"any", {17, 1, 1}, {1, 1, 1}, noCluster, {17, 1, 1}}), noCluster);
  OK(cuCtxSynchronize());
  OK(cuModuleUnload(module));
}
