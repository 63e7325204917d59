#include "launchAttributes.h"

#include <cstring>

static CUaccessProperty property(const std::string& word) {
  return word == "streaming"    ? CU_ACCESS_PROPERTY_STREAMING
         : word == "persisting" ? CU_ACCESS_PROPERTY_PERSISTING
                                : CU_ACCESS_PROPERTY_NORMAL;
}

static unsigned size(const Json& given, size_t axis) { return static_cast<unsigned>(given[axis].integer(1)); }

std::vector<CUlaunchAttribute> launchAttributes(const Json& given, const Named& named) {
  std::vector<CUlaunchAttribute> all;
  for (size_t index = 0; index < given.names().size(); ++index) {
    const std::string& name = given.names()[index];
    const Json& value = given[index];
    CUlaunchAttribute made;
    memset(&made, 0, sizeof made);
    if (name == "accessPolicyWindow") {
      made.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
      auto& window = made.value.accessPolicyWindow;
      window.base_ptr = reinterpret_cast<void*>(named.address(value["memory"]));
      window.num_bytes = value["bytes"].integer();
      window.hitRatio = static_cast<float>(value["hitRatio"].number());
      window.hitProp = property(value["hit"].text());
      window.missProp = property(value["miss"].text());
    } else if (name == "cooperative") {
      made.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      made.value.cooperative = value.isTrue();
    } else if (name == "clusterDimension") {
      made.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      made.value.clusterDim = {size(value, 0), size(value, 1), size(value, 2)};
    } else if (name == "clusterSchedulingPolicy") {
      made.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
      made.value.clusterSchedulingPolicyPreference = value.text() == "spread" ? CU_CLUSTER_SCHEDULING_POLICY_SPREAD
                                                     : value.text() == "load-balancing"
                                                         ? CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
                                                         : CU_CLUSTER_SCHEDULING_POLICY_DEFAULT;
    } else if (name == "programmaticStreamSerialization") {
      made.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      made.value.programmaticStreamSerializationAllowed = value.isTrue();
    } else if (name == "programmaticEvent") {
      made.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
      made.value.programmaticEvent.event = named.events.at(value["event"].text());
      made.value.programmaticEvent.triggerAtBlockStart = value["triggerAtBlockStart"].isTrue();
    } else if (name == "priority") {
      made.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
      made.value.priority = static_cast<int>(value.integer());
    } else if (name == "memorySynchronizationDomainMap") {
      made.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
      made.value.memSyncDomainMap.default_ = static_cast<unsigned char>(value["default"].integer());
      made.value.memSyncDomainMap.remote = static_cast<unsigned char>(value["remote"].integer());
    } else if (name == "memorySynchronizationDomain") {
      made.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
      made.value.memSyncDomain =
          value.text() == "remote" ? CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE : CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
    } else if (name == "preferredClusterDimension") {
      made.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
      made.value.preferredClusterDim = {size(value, 0), size(value, 1), size(value, 2)};
    } else if (name == "launchCompletionEvent") {
      made.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
      made.value.launchCompletionEvent.event = named.events.at(value.text());
    } else if (name == "sharedMemoryCarveout") {
      made.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
      made.value.sharedMemCarveout = static_cast<unsigned>(value.integer());
    } else if (name == "nvlinkUtilCentricScheduling") {
      made.id = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
      made.value.nvlinkUtilCentricScheduling = value.isTrue();
    } else {
      throw std::runtime_error("no such attribute of launches: " + name);
    }
    all.push_back(made);
  }
  return all;
}

std::string readAttributes(CUgraphNode node, const Named& named) {
  Fields fields;
  for (int id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW; id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
       ++id) {
    const auto attribute = static_cast<CUlaunchAttributeID>(id);
    const std::string name = std::to_string(id);
    fields.raw(name, attempt([&] {
                 CUlaunchAttributeValue value;
                 memset(&value, 0, sizeof value);
                 check(cuGraphKernelNodeGetAttribute(node, attribute, &value));
                 // Addresses and handles differ in each process, so names replace them.
                 std::string pointed = "null";
                 if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
                   pointed = named.place(reinterpret_cast<CUdeviceptr>(value.accessPolicyWindow.base_ptr));
                   value.accessPolicyWindow.base_ptr = nullptr;
                   memset(&value.accessPolicyWindow.missProp + 1, 0, 4);  // padding
                 } else if (attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
                            attribute == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
                   pointed = named.event(value.programmaticEvent.event);
                   value.programmaticEvent.event = nullptr;
                 }
                 return Items().raw(hex(&value, sizeof value)).raw(pointed).str();
               }));
  }
  return fields.str();
}
