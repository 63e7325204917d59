#include "engine.h"

#include <exception>
#include <new>

#include "launch.h"

namespace shoal::ptx {

namespace {

template <class Body>
Refusal refusalOf(Body&& body) noexcept {
  try {
    body();
    return {CUDA_SUCCESS, 0, {}};
  } catch (Refusal& refusal) {
    return std::move(refusal);
  } catch (const std::bad_alloc&) {
    return {CUDA_ERROR_OUT_OF_MEMORY, 0, "the host has too little memory"};
  } catch (const std::exception& error) {
    return {CUDA_ERROR_UNKNOWN, 0, error.what()};
  }
}

constexpr Engine kEngine{
    [](std::string_view text, const AllocateMemory& allocate, bool hasManaged, std::shared_ptr<Module>& module) {
      return refusalOf([&] { module = loadModule(text, allocate, hasManaged); });
    },
    [](const LinkInput& input) { return refusalOf([&] { checkInput(input); }); },
    [](const std::vector<LinkInput>& inputs, std::string& text) { return refusalOf([&] { text = link(inputs); }); },
    [](const std::shared_ptr<Context>& context, const std::shared_ptr<Module>& module, const Kernel& kernel,
       const LaunchShape& shape, const std::vector<uint8_t>& parameters, const std::shared_ptr<Heap>& heap) {
      try {
        return Launch(context, module, kernel, shape, parameters, heap).run();
      } catch (const std::bad_alloc&) {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
      }
    },
};

}  // namespace

}  // namespace shoal::ptx

const shoal::ptx::Engine* shoalSimPtxEngine(void) { return &shoal::ptx::kEngine; }
