// How processes hand each other memory: a ticket of plain bytes names it, a socket that has no file delivers a
// descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "../../shared/localSocket.h"
#include "core/sharedfile.h"
#include "shoal/cuda.h"

namespace shoal {

// What legacy IPC and fabric handles are made of.
enum class TicketKind : uint32_t { fabric = 1, memory = 2, event = 3, pool = 4 };

struct Ticket {
  char magic[8];
  RandomBytes process;  // who can deliver: its name, so that nobody guesses it
  uint64_t id;
  TicketKind kind;
  int32_t device;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;  // of all before it
};
static_assert(sizeof(Ticket) <= CU_IPC_HANDLE_SIZE);

// Of the bytes of a handle: one that was changed on its way names other memory of its process.
uint64_t checksumOf(const void* bytes, size_t count);

// Gives the file, or null when what was offered is gone.
using Deliver = std::function<std::shared_ptr<SharedFile>()>;

// The name under which a process can be reached as long as it lives.
using ProcessName = RandomBytes;
const ProcessName& processName();
bool isReachable(const ProcessName& name);

// Makes it possible for other processes of this user to fetch what `deliver` gives. The same `key` gets the same id.
Ticket offer(TicketKind kind, uint64_t key, Deliver deliver);
void withdraw(TicketKind kind, uint64_t key);

void writeTicket(const Ticket& ticket, void* handle);
// False for bytes that are no ticket of that kind.
bool readTicket(const void* handle, TicketKind kind, Ticket& ticket);
bool isOwn(const Ticket& ticket);
// Null when the process has ended or withdrawn it; also within the process itself.
std::shared_ptr<SharedFile> fetch(const Ticket& ticket);
// For memory that is offered as a whole.
Ticket offerFile(const std::shared_ptr<SharedFile>& file);

}  // namespace shoal
