/*
 * Memory passed to another process, from C: exports it, sends the descriptor over a Unix socket (SCM_RIGHTS), and
 * imports and maps it in the other process. Answers requests on standard input:
 *
 *   exchange COUNT   nanoseconds from the export until the other process answers that it has mapped the memory; the
 *                    release in the other process does not count
 *
 * Starts with a line `ready`. Argument: the size of the memory in bytes.
 */
#include "mapping.h"
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void send_descriptor(int socket, int descriptor) {
  char byte = 1;
  struct iovec data = {&byte, 1};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {0};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &message, 0) != 1) fail("sendmsg", strerror(errno));
}

/* Returns the next descriptor, or -1 if the other end is closed. */
static int receive_descriptor(int socket) {
  char byte;
  struct iovec data = {&byte, 1};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message = {0};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (count == 0) return -1;
  if (count < 0) fail("recvmsg", strerror(errno));
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

static void send_byte(int socket) {
  if (write(socket, "x", 1) != 1) fail("write", strerror(errno));
}

static void receive_byte(int socket) {
  char byte;
  if (read(socket, &byte, 1) != 1) fail("read", strerror(errno));
}

static int receive(int socket, size_t size) {
  enter_device(0);
  CUdeviceptr address;
  CUDA(cuMemAddressReserve(&address, size, 0, 0, 0));
  send_byte(socket);
  for (;;) {
    const int descriptor = receive_descriptor(socket);
    if (descriptor < 0) return 0;
    CUmemGenericAllocationHandle memory;
    CUDA(
        cuMemImportFromShareableHandle(&memory, (void*)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    map(address, size, memory);
    send_byte(socket);
    CUDA(cuCtxSynchronize());
    CUDA(cuMemUnmap(address, size));
    CUDA(cuMemRelease(memory));
    send_byte(socket);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: exchange BYTES\n"), 2;
  const size_t size = strtoull(argv[1], NULL, 10);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("socketpair", strerror(errno));
  // Fork before starting the driver, because the driver does not survive a fork.
  const pid_t child = fork();
  if (child < 0) fail("fork", strerror(errno));
  if (child == 0) {
    close(ends[0]);
    return receive(ends[1], size);
  }
  close(ends[1]);
  enter_device(0);
  const CUmemAllocationProp wanted = properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle memory;
  CUDA(cuMemCreate(&memory, size, &wanted, 0));
  receive_byte(ends[0]);
  printf("ready\n");
  fflush(stdout);

  long count;
  while (scanf(" exchange %ld", &count) == 1) {
    double total = 0;
    for (long i = 0; i < count; ++i) {
      const double begin = now();
      int descriptor;
      CUDA(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
      send_descriptor(ends[0], descriptor);
      close(descriptor);
      receive_byte(ends[0]);
      total += now() - begin;
      receive_byte(ends[0]);
    }
    answer(total / count);
  }
  close(ends[0]);
  waitpid(child, NULL, 0);
  return 0;
}
