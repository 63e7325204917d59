// The linker: combines PTX from several sources into one module.
#include <cstring>

#include "archive.h"
#include "core/entry.h"
#include "engine.h"
#include "image.h"
#include "module.h"

using namespace shoal;

namespace {

struct LinkState {
  std::mutex mutex;
  JitOptions options;
  std::vector<ptx::LinkInput> inputs;
  std::string image;
};

HandleTable<LinkState>& links() {
  static auto* table = new HandleTable<LinkState>(31, "links");
  return *table;
}

bool areValid(const JitOptions& options) {
  return options.count == 0 || (options.names != nullptr && options.values != nullptr);
}

template <class Body>
CUresult withLink(CUlinkState handle, Body&& body) {
  return inContext([&](auto&) -> CUresult {
    auto state = links().find(handle);
    if (!state) return CUDA_ERROR_INVALID_HANDLE;
    std::lock_guard lock(state->mutex);
    std::string problem;
    CUresult status;
    try {
      status = body(*state, problem);
    } catch (const ptx::Refusal& refusal) {
      status = refusal.status;
      problem = refusal.line == 0 ? "error   : " + refusal.message : describe(refusal);
    }
    return status == CUDA_SUCCESS ? status : refuse(state->options, status, problem);
  });
}

// Accepts PTX, a fat binary, a host object, or an archive of host objects. Only needed members of an archive are
// linked.
CUresult add(CUlinkState handle, CUjitInputType type, const char* name, const JitOptions& options,
             const std::function<CUresult(std::string&)>& read) {
  return withLink(handle, [&](LinkState& state, std::string& problem) -> CUresult {
    if (!areValid(options) || type < CU_JIT_INPUT_CUBIN || type >= CU_JIT_NUM_INPUT_TYPES)
      return CUDA_ERROR_INVALID_VALUE;
    std::string bytes;
    if (const CUresult status = read(bytes)) return status;
    std::vector<std::string> texts;
    const bool isLibrary = type == CU_JIT_INPUT_LIBRARY && isArchive(bytes);
    CUresult status;
    if (isLibrary) status = findPtxInArchive(bytes, texts, problem);
    else if (type == CU_JIT_INPUT_OBJECT && isHostObject(bytes)) status = findPtxInObject(bytes, texts, problem);
    else {
      // Zeroes replace the missing bytes if the data is shorter than its header.
      bytes.append(64, '\0');
      status = findPtx(bytes.data(), bytes.size(), texts.emplace_back(), problem);
    }
    if (status != CUDA_SUCCESS) return status;
    for (std::string& text : texts) {
      ptx::LinkInput input{name == nullptr ? "<unnamed>" : name, std::move(text), isLibrary};
      if (!isLibrary) throwIfRefused(ptxEngine().check(input));
      state.inputs.push_back(std::move(input));
    }
    state.image.clear();
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut) {
  return inContext([&](auto&) -> CUresult {
    const JitOptions given{numOptions, options, optionValues};
    if (stateOut == nullptr || !areValid(given)) return CUDA_ERROR_INVALID_VALUE;
    auto state = std::make_shared<LinkState>();
    state->options = given;
    const uint64_t handle = links().reserve();
    links().put(handle, std::move(state));
    *stateOut = reinterpret_cast<CUlinkState>(handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return add(state, type, name, {numOptions, options, optionValues}, [&](std::string& bytes) -> CUresult {
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    bytes.assign(static_cast<const char*>(data), size);
    return CUDA_SUCCESS;
  });
}
CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                          CUjit_option* options, void** optionValues) {
  return add(state, type, path, {numOptions, options, optionValues},
             [&](std::string& bytes) { return readFile(path, bytes); });
}
CUresult cuLinkComplete(CUlinkState handle, void** cubinOut, size_t* sizeOut) {
  return withLink(handle, [&](LinkState& state, std::string& problem) -> CUresult {
    if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (state.inputs.empty()) {
      problem = "error   : there is nothing to link";
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (state.image.empty()) throwIfRefused(ptxEngine().link(state.inputs, state.image));
    *cubinOut = state.image.data();
    if (sizeOut != nullptr) *sizeOut = state.image.size() + 1;
    return CUDA_SUCCESS;
  });
}
CUresult cuLinkDestroy(CUlinkState state) {
  return initialised(
      [&] { return links().take(reinterpret_cast<uint64_t>(state)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}
