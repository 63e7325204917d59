// Converts launch attributes from the list's words to the header's structures.
#pragma once

#include <vector>

#include "reference.h"

// Memory and events by the names that a case gives them.
struct Named {
  std::map<std::string, std::pair<CUdeviceptr, size_t>> memory;
  std::map<std::string, CUevent> events;

  CUdeviceptr address(const Json& place) const {
    return memory.at(place[size_t(0)].text()).first + place[1].integer(0);
  }
  // Returns an address in a form that is the same in any process: a name, and the distance from its start.
  std::string place(CUdeviceptr address) const {
    for (const auto& [name, range] : memory)
      if (address >= range.first && address < range.first + range.second)
        return Items().add(name).add(address - range.first).str();
    return address == 0 ? "null" : json("elsewhere");
  }
  std::string event(CUevent handle) const {
    for (const auto& [name, one] : events)
      if (one == handle) return json(name);
    return "null";
  }
};

std::vector<CUlaunchAttribute> launchAttributes(const Json& given, const Named& named);
// Reads all attributes of a kernel node.
std::string readAttributes(CUgraphNode node, const Named& named);
