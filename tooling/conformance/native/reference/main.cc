// Answers a list of cases with the CUDA driver's API alone. Shoal's safe packages are compared with these answers.
// Usage: reference LIST. The list is a file with a JSON array of cases. Each answer is printed as one line of JSON.
#include <fstream>
#include <iostream>
#include <sstream>

#include "reference.h"

CUfunction kernelOf(const std::string& ptx, const std::string& name) {
  static std::map<std::string, CUmodule> modules;
  auto found = modules.find(ptx);
  if (found == modules.end()) {
    CUmodule made;
    check(cuModuleLoadData(&made, ptx.c_str()));
    found = modules.emplace(ptx, made).first;
  }
  CUfunction function;
  check(cuModuleGetFunction(&function, found->second, name.c_str()));
  return function;
}

static std::string answer(const Json& given) {
  static const std::map<std::string, std::string (*)(const Json&)> parts = {
      {"graph", graphCase},     {"kernel", kernelCase},       {"occupancy", occupancyCase},
      {"texture", textureCase}, {"tensorMap", tensorMapCase}, {"split", splitCase},
      {"device", deviceCase},   {"stream", streamCase},       {"pool", poolCase}};
  return attempt([&] { return parts.at(given["part"].text())(given); });
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    std::stringstream text;
    text << std::ifstream(arguments[1]).rdbuf();
    const Json list = Json::parse(text.str());
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    CUcontext context;
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    for (const Json& one : list.items()) std::cout << answer(one) << std::endl;
    return 0;
  } catch (const Refused& refused) {
    std::cerr << refusal(refused.code) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
  }
  return 1;
}
