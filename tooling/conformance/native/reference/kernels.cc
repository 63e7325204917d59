// Attributes of kernels, and how many blocks of them run at once.
#include "launchAttributes.h"

std::string kernelCase(const Json& given) {
  const CUfunction kernel = kernelOf(given["ptx"].text(), given["kernel"].text());
  Fields fields;
  const Json& settings = given["set"];
  for (size_t index = 0; index < settings.size(); ++index) {
    const std::string& name = settings.names()[index];
    fields.raw("set " + name, attempt([&] {
                 check(cuFuncSetAttribute(kernel, static_cast<CUfunction_attribute>(codeOf("function", name)),
                                          static_cast<int>(settings[index].integer())));
                 return json(true);
               }));
  }
  for (const Json& name : given["attributes"].items())
    fields.raw(name.text(), attemptInt([&](int* value) {
                 return cuFuncGetAttribute(value, static_cast<CUfunction_attribute>(codeOf("function", name.text())),
                                           kernel);
               }));
  Items parameters;
  for (size_t index = 0, offset, size; cuFuncGetParamInfo(kernel, index, &offset, &size) == CUDA_SUCCESS; ++index)
    parameters.raw(Items().add(offset).add(size).str());
  return fields.raw("parameters", parameters.str()).str();
}

std::string occupancyCase(const Json& given) {
  const CUfunction kernel = kernelOf(given["ptx"].text(), given["kernel"].text());
  const auto block = static_cast<int>(given["block"].integer());
  const size_t bytes = given["sharedMemory"].integer(0);
  const unsigned flags =
      given["disableCachingOverride"].isTrue() ? CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE : CU_OCCUPANCY_DEFAULT;
  Fields fields;
  fields.raw("maxActiveBlocks", attemptInt([&](int* count) {
               return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, kernel, block, bytes, flags);
             }));
  Items available;
  for (const Json& blocks : given["blockCounts"].items())
    available.raw(attempt([&] {
      size_t found = 0;
      check(cuOccupancyAvailableDynamicSMemPerBlock(&found, kernel, static_cast<int>(blocks.integer()), block));
      return json(found);
    }));
  fields.raw("availableSharedMemory", available.str());
  fields.raw("potentialBlockSize", attempt([&] {
               int grid = 0, size = 0;
               check(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &size, kernel, nullptr, bytes,
                                                               static_cast<int>(given["limit"].integer(0)), flags));
               return Items().add(size).add(grid).str();
             }));
  // A cluster may use more shared memory than a kernel has by default.
  for (const Json& cluster : given["clusters"].items()) {
    auto attributes = launchAttributes(cluster["attributes"], {});
    CUlaunchConfig config = {};
    config.gridDimX = static_cast<unsigned>(cluster["grid"].integer());
    config.blockDimX = static_cast<unsigned>(block);
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(bytes);
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    const std::string name = std::to_string(&cluster - given["clusters"].items().data());
    fields.raw("activeClusters " + name,
               attemptInt([&](int* count) { return cuOccupancyMaxActiveClusters(count, kernel, &config); }));
    fields.raw("clusterSize " + name,
               attemptInt([&](int* size) { return cuOccupancyMaxPotentialClusterSize(size, kernel, &config); }));
  }
  return fields.str();
}
