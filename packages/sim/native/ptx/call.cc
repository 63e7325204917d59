// Calls and returns: register frames, and the passing of arguments and results.
#include <cstdlib>
#include <cstring>

#include "decoder.h"
#include "launch.h"

namespace shoal::ptx {

namespace {

constexpr uint32_t kMostDepth = 20000;

uint8_t* localOf(Warp& warp, int lane, uint64_t offset, uint32_t bytes) {
  if (offset + bytes > warp.localStride) throw Fault{CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack of a thread is full"};
  return warp.local + static_cast<size_t>(lane) * warp.localStride + offset;
}

// Copies one lane's value of a parameter or argument. If either side is a register, it has at most 16 bytes.
void copyLane(Warp& warp, int lane, const Passed& to, uint8_t* toRegisters, uint32_t toBase, const Passed& from,
              const uint8_t* fromRegisters, uint32_t fromBase) {
  const uint32_t bytes = to.bytes < from.bytes ? to.bytes : from.bytes;
  const uint8_t* source;
  if (from.isRegister) {
    const uint8_t* base = (from.at & kConstant) != 0 ? warp.constants : fromRegisters;
    source = base + (from.at & ~kConstant) + static_cast<size_t>(lane) * (from.bytes < 2 ? 2 : from.bytes);
  } else {
    source = localOf(warp, lane, uint64_t{fromBase} + from.at, from.bytes);
  }
  uint8_t* target = to.isRegister ? toRegisters + to.at + static_cast<size_t>(lane) * (to.bytes < 2 ? 2 : to.bytes)
                                  : localOf(warp, lane, uint64_t{toBase} + to.at, to.bytes);
  memcpy(target, source, bytes);
}

}  // namespace

Frame* Worker::makeFrame(const CodeOf& code, Frame* parent) {
  auto& spare = freeFrames_[code.registerBytes];
  Frame* made;
  if (spare.empty()) {
    made = new Frame;
    made->registers = static_cast<uint8_t*>(aligned_alloc(64, code.registerBytes + 64));
    if (made->registers == nullptr) throw std::bad_alloc();
    memset(made->registers, 0, code.registerBytes);
  } else {
    made = spare.back();
    spare.pop_back();
  }
  made->code = &code;
  made->parent = parent;
  made->users = 1;
  made->depth = parent == nullptr ? 0 : parent->depth + 1;
  made->localBase = parent == nullptr ? 0 : parent->localBase + parent->code->localBytes;
  return made;
}

void Worker::release(Frame* frame) {
  while (frame != nullptr && --frame->users == 0) {
    Frame* parent = frame->parent;
    freeFrames_[frame->code->registerBytes].push_back(frame);
    frame = parent;
  }
}

void Worker::call(Warp& warp, Split& split, const Instr& instr, uint32_t& mask, uint32_t& pc) {
  const CallSite& site = launch.module->program.calls[instr.target];
  if (site.builtin >= 0) {
    callBuiltin(warp, site, mask);
    ++pc;
    return;
  }
  const auto& functions = launch.module->program.functions;
  auto number = static_cast<size_t>(site.function);
  if (site.function < 0) {
    const uint8_t* base = (site.address & kConstant) != 0 ? warp.constants : warp.registers;
    auto target = [&](int lane) {
      uint64_t address;
      memcpy(&address, base + (site.address & ~kConstant) + 8 * lane, 8);
      return address;
    };
    const uint64_t wanted = target(__builtin_ctz(mask));
    uint32_t same = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      same |= static_cast<uint32_t>(target(lane) == wanted) << lane;
    }
    // The other lanes run this instruction later.
    if (same != mask) branchAway(warp, mask & ~same, pc, split);
    mask = same;
    number = wanted < kCodeWindow + 16 ? functions.size() : (wanted - kCodeWindow) / 16 - 1;
    if (wanted % 16 != 0 || number >= functions.size() || !functions[number].isDefined || functions[number].isKernel ||
        functions[number].parameters.size() != site.arguments.size() ||
        functions[number].results.size() != site.results.size()) {
      throw Fault{CUDA_ERROR_INVALID_PC, "a call of something that is no such function"};
    }
  }
  const CodeOf& code = functions[number];
  Frame* caller = split.frame;
  if (caller->depth >= kMostDepth ||
      uint64_t{caller->localBase} + caller->code->localBytes + code.localBytes > warp.localStride) {
    throw Fault{CUDA_ERROR_HARDWARE_STACK_ERROR, "the stack of a thread is full"};
  }
  Frame* frame = makeFrame(code, caller);  // the split's reference to the caller now belongs to the frame
  frame->returnTo = pc + 1;
  for (size_t index = 0; index < site.arguments.size(); ++index) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      copyLane(warp, __builtin_ctz(rest), code.parameters[index], frame->registers, frame->localBase,
               site.arguments[index], caller->registers, caller->localBase);
    }
  }
  split.frame = frame;
  pc = code.entry;
}

void Worker::returnFrom(Warp& warp, Split& split, uint32_t mask, uint32_t& pc) {
  Frame *frame = split.frame, *caller = frame->parent;
  const Instr& instr = launch.module->program.code[frame->returnTo - 1];
  const CallSite& site = launch.module->program.calls[instr.target];
  for (size_t index = 0; index < site.results.size(); ++index) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      copyLane(warp, __builtin_ctz(rest), site.results[index], caller->registers, caller->localBase,
               frame->code->results[index], frame->registers, frame->localBase);
    }
  }
  pc = frame->returnTo;
  split.frame = caller;
  ++caller->users;
  release(frame);
}

}  // namespace shoal::ptx
