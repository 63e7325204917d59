// Properties of a device; streams and pools, after creation and after changes.
#include <cstring>

#include "launchAttributes.h"

std::string deviceCase(const Json& given) {
  Fields fields;
  for (const Json& name : given["attributes"].items())
    fields.raw(name.text(), attemptInt([&](int* value) {
                 return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(codeOf("device", name.text())),
                                             device);
               }));
  for (const Json& name : given["limits"].items())
    fields.raw("limit " + name.text(), attempt([&] {
                 size_t value = 0;
                 check(cuCtxGetLimit(&value, static_cast<CUlimit>(codeOf("limit", name.text()))));
                 return json(value);
               }));
  char name[256] = {}, bus[64] = {};
  check(cuDeviceGetName(name, sizeof name, device));
  check(cuDeviceGetPCIBusId(bus, sizeof bus, device));
  size_t total = 0;
  check(cuDeviceTotalMem(&total, device));
  CUuuid uuid;
  check(cuDeviceGetUuid(&uuid, device));
  int version = 0, least = 0, greatest = 0;
  check(cuDriverGetVersion(&version));
  check(cuCtxGetStreamPriorityRange(&least, &greatest));
  unsigned flags = 0, api = 0;
  check(cuCtxGetFlags(&flags));
  CUcontext context;
  check(cuCtxGetCurrent(&context));
  check(cuCtxGetApiVersion(context, &api));
  CUfunc_cache cache;
  check(cuCtxGetCacheConfig(&cache));
  fields.add("name", name).add("pciBusId", bus).add("totalMemory", total).raw("uuid", hex(&uuid, sizeof uuid));
  fields.add("driverVersion", version).add("apiVersion", api).add("cacheConfig", int(cache));
  fields.raw("priorities", Items().add(least).add(greatest).str());
  const char* scheduling[] = {"auto", "spin", "yield", "auto", "blocking"};
  fields.add("scheduling", scheduling[flags & CU_CTX_SCHED_MASK & 7]);
  return fields.str();
}

static std::string describe(CUstream stream, const Named& named) {
  Fields fields;
  unsigned flags = 0;
  check(cuStreamGetFlags(stream, &flags));
  int priority = 0;
  check(cuStreamGetPriority(stream, &priority));
  fields.add("nonBlocking", (flags & CU_STREAM_NON_BLOCKING) != 0).add("priority", priority);
  for (const int id : {int(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW), int(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY),
                       int(CU_LAUNCH_ATTRIBUTE_PRIORITY), int(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP),
                       int(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)})
    fields.raw(std::to_string(id), attempt([&] {
                 CUstreamAttrValue value;
                 memset(&value, 0, sizeof value);
                 check(cuStreamGetAttribute(stream, static_cast<CUstreamAttrID>(id), &value));
                 std::string pointed = "null";
                 if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
                   pointed = named.place(reinterpret_cast<CUdeviceptr>(value.accessPolicyWindow.base_ptr));
                   value.accessPolicyWindow.base_ptr = nullptr;
                   memset(&value.accessPolicyWindow.missProp + 1, 0, 4);  // padding
                 }
                 return Items().raw(hex(&value, sizeof value)).raw(pointed).str();
               }));
  return fields.str();
}

std::string streamCase(const Json& given) {
  static const std::map<std::string, CUsynchronizationPolicy> policies = {{"auto", CU_SYNC_POLICY_AUTO},
                                                                          {"spin", CU_SYNC_POLICY_SPIN},
                                                                          {"yield", CU_SYNC_POLICY_YIELD},
                                                                          {"blocking", CU_SYNC_POLICY_BLOCKING_SYNC}};
  Named named;
  CUdeviceptr memory;
  check(cuMemAlloc(&memory, 256));
  named.memory["a"] = {memory, 256};
  CUstream stream, copy;
  const unsigned flags = given["nonBlocking"].isTrue() ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  check(cuStreamCreateWithPriority(&stream, flags, static_cast<int>(given["priority"].integer(0))));
  check(cuStreamCreate(&copy, CU_STREAM_DEFAULT));
  Fields fields;
  fields.raw("made", describe(stream, named));
  fields.raw("set", attempt([&] {
               for (const auto& attribute : launchAttributes(given["attributes"], named))
                 check(cuStreamSetAttribute(stream, attribute.id, &attribute.value));
               if (given["synchronizationPolicy"]) {
                 CUstreamAttrValue value;
                 memset(&value, 0, sizeof value);
                 value.syncPolicy = policies.at(given["synchronizationPolicy"].text());
                 check(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
               }
               return json(true);
             }));
  fields.raw("after", describe(stream, named));
  fields.raw("copied", attempt([&] {
               check(cuStreamCopyAttributes(copy, stream));
               return describe(copy, named);
             }));
  check(cuStreamDestroy(stream));
  check(cuStreamDestroy(copy));
  check(cuMemFree(memory));
  return fields.str();
}

static std::string describe(CUmemoryPool pool) {
  Fields fields;
  const std::pair<const char*, CUmemPool_attribute> words[] = {{"releaseThreshold", CU_MEMPOOL_ATTR_RELEASE_THRESHOLD},
                                                               {"reserved", CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT},
                                                               {"reservedHigh", CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH},
                                                               {"used", CU_MEMPOOL_ATTR_USED_MEM_CURRENT},
                                                               {"usedHigh", CU_MEMPOOL_ATTR_USED_MEM_HIGH}};
  for (const auto& [name, attribute] : words) {
    cuuint64_t value = 0;
    check(cuMemPoolGetAttribute(pool, attribute, &value));
    fields.add(name, value);
  }
  const std::pair<const char*, CUmemPool_attribute> switches[] = {
      {"followEventDependencies", CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES},
      {"opportunistic", CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC},
      {"internalDependencies", CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES}};
  for (const auto& [name, attribute] : switches) {
    int value = 0;
    check(cuMemPoolGetAttribute(pool, attribute, &value));
    fields.add(name, value != 0);
  }
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  CUmemAccess_flags access;
  check(cuMemPoolGetAccess(&access, pool, &location));
  fields.add("access", access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? "readWrite"
                       : access == CU_MEM_ACCESS_FLAGS_PROT_READ    ? "read"
                                                                    : "none");
  return fields.str();
}

std::string poolCase(const Json& given) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  properties.maxSize = given["maximumBytes"].integer(0);
  if (given["exported"].isTrue()) properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemoryPool pool;
  check(cuMemPoolCreate(&pool, &properties));
  Fields fields;
  fields.raw("made", describe(pool));
  const Json& set = given["set"];
  for (const auto& [name, attribute] :
       {std::pair("followEventDependencies", CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
        std::pair("opportunistic", CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC),
        std::pair("internalDependencies", CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)}) {
    if (!set[name]) continue;
    int value = set[name].isTrue();
    check(cuMemPoolSetAttribute(pool, attribute, &value));
  }
  if (set["releaseThreshold"]) {
    cuuint64_t value = set["releaseThreshold"].integer();
    check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  }
  fields.raw("set", describe(pool));
  CUstream stream;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<CUdeviceptr> memory;
  for (const Json& bytes : given["allocations"].items()) {
    const std::string name = "allocated " + std::to_string(memory.size());
    fields.raw(name, attempt([&] {
                 CUdeviceptr made;
                 check(cuMemAllocFromPoolAsync(&made, bytes.integer(), pool, stream));
                 memory.push_back(made);
                 return describe(pool);
               }));
  }
  for (const CUdeviceptr one : memory) check(cuMemFreeAsync(one, stream));
  check(cuStreamSynchronize(stream));
  fields.raw("freed", describe(pool));
  check(cuMemPoolTrimTo(pool, given["trimTo"].integer(0)));
  fields.raw("trimmed", describe(pool));
  cuuint64_t none = 0;
  check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &none));
  check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
  fields.raw("high-water marks", describe(pool));
  check(cuStreamDestroy(stream));
  check(cuMemPoolDestroy(pool));
  return fields.str();
}
