// Splits a device's multiprocessors, and reads the parts that green contexts have.
#include "reference.h"

static std::string counts(const CUdevResource& resource) {
  return resource.type == CU_DEV_RESOURCE_TYPE_SM ? json(resource.sm.smCount) : "0";
}

static std::string splitOf(const CUdevResource& whole, const Json& steps, size_t at, bool green);

// Creates a green context of parts, reads its resources, and splits them by the next step.
static std::string greenOf(std::vector<CUdevResource> parts, const Json& steps, size_t next) {
  return attempt([&] {
    CUdevResourceDesc description;
    check(cuDevResourceGenerateDesc(&description, parts.data(), static_cast<unsigned>(parts.size())));
    CUgreenCtx green;
    check(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
    const std::string found = attempt([&] {
      CUdevResource has = {};
      check(cuGreenCtxGetDevResource(green, &has, CU_DEV_RESOURCE_TYPE_SM));
      Fields fields;
      fields.raw("multiprocessors", counts(has));
      if (next < steps.size()) fields.raw("split", splitOf(has, steps, next, true));
      return fields.str();
    });
    check(cuGreenCtxDestroy(green));
    return found;
  });
}

// Splits by one step, and splits the first group by the next step.
static std::string splitOf(const CUdevResource& whole, const Json& steps, size_t at, bool green) {
  const Json& step = steps[at];
  return attempt([&] {
    unsigned flags = 0;
    if (step["ignoreCoscheduling"].isTrue()) flags |= CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
    if (step["maxPotentialClusterSize"].isTrue()) flags |= CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    const auto least = static_cast<unsigned>(step["multiprocessors"].integer());
    unsigned count = static_cast<unsigned>(step["groups"].integer(0));
    if (!step["groups"]) check(cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, flags, least));
    std::vector<CUdevResource> groups(count);
    CUdevResource rest = {};
    check(cuDevSmResourceSplitByCount(groups.data(), &count, &whole, &rest, flags, least));
    groups.resize(count);
    Items sizes;
    for (const auto& group : groups) sizes.raw(counts(group));
    Fields fields;
    fields.raw("groups", sizes.str()).raw("remaining", counts(rest));
    if (green && count > 0) fields.raw("green", greenOf({groups[0]}, steps, at + 1));
    if (green && count > 1) fields.raw("greenOfTwo", greenOf({groups[0], groups[1]}, steps, at + 1));
    if (count > 0 && at + 1 < steps.size()) fields.raw("again", splitOf(groups[0], steps, at + 1, green));
    return fields.str();
  });
}

std::string splitCase(const Json& given) {
  CUdevResource all = {};
  check(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  Fields fields;
  fields.raw("multiprocessors", counts(all)).raw("split", splitOf(all, given["steps"], 0, given["green"].isTrue()));
#if CUDA_VERSION >= 13000
  fields.add("minimumPartition", all.sm.minSmPartitionSize).add("alignment", all.sm.smCoscheduledAlignment);
#endif
  // Kinds of resources are numbers, because only later headers have those of work queues.
  for (const Json& kind : given["kinds"].items())
    fields.raw("kind " + std::to_string(static_cast<int>(kind.integer())), attempt([&] {
                 CUdevResource found = {};
                 check(cuDeviceGetDevResource(device, &found, static_cast<CUdevResourceType>(kind.integer())));
                 return json(int(found.type));
               }));
  return fields.str();
}
