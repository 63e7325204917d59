// Passes memory between processes. A ticket of plain bytes names the memory, and an abstract socket delivers its
// descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "../../shared/localSocket.h"
#include "core/sharedfile.h"
#include "shoal/cuda.h"

namespace shoal {

// The content of legacy IPC handles and fabric handles.
enum class TicketKind : uint32_t { fabric = 1, memory = 2, event = 3, pool = 4 };

struct Ticket {
  char magic[8];
  RandomBytes process;  // the socket name of the delivering process; random, so that it cannot be guessed
  uint64_t id;
  TicketKind kind;
  int32_t device;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;  // of the fields above
};
static_assert(sizeof(Ticket) <= CU_IPC_HANDLE_SIZE);

// Detects handles that were changed in transit, which would name other memory of the process.
uint64_t checksumOf(const void* bytes, size_t count);

// Returns the file, or null if the offered object no longer exists.
using Deliver = std::function<std::shared_ptr<SharedFile>()>;

// The name under which other processes can reach this process while it lives.
using ProcessName = RandomBytes;
const ProcessName& processName();
bool isReachable(const ProcessName& name);

// Lets other processes of this user fetch the file that `deliver` returns. An equal `key` always has the same id.
Ticket offer(TicketKind kind, uint64_t key, Deliver deliver);
void withdraw(TicketKind kind, uint64_t key);

void writeTicket(const Ticket& ticket, void* handle);
// Returns false if the bytes are not a ticket of that kind.
bool readTicket(const void* handle, TicketKind kind, Ticket& ticket);
bool isOwn(const Ticket& ticket);
// Returns null if the process has ended or has withdrawn the offer. Also works within the offering process.
std::shared_ptr<SharedFile> fetch(const Ticket& ticket);
// Offers a whole file.
Ticket offerFile(const std::shared_ptr<SharedFile>& file);

}  // namespace shoal
