/* Memory on its way to another process, from C: export, send the descriptor over a Unix socket (SCM_RIGHTS), and there
 * import and map it. Answers requests on standard input:
 *
 *   exchange COUNT   nanoseconds from the export to the answer that the other process has mapped the memory; what it does
 *                    to give it back is not counted
 *
 * Starts with a line `ready`. Argument: bytes of the memory.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vmm.h"

static void fail(const char* what) {
  perror(what);
  exit(1);
}

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
  if (sendmsg(socket, &message, 0) != 1) fail("sendmsg");
}

/* The next descriptor, or -1 when the other end is closed. */
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
  if (count < 0) fail("recvmsg");
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

static void tell(int socket) {
  if (write(socket, "x", 1) != 1) fail("write");
}

static void hear(int socket) {
  char byte;
  if (read(socket, &byte, 1) != 1) fail("read");
}

static int receive(int socket, size_t size) {
  const CUdevice device = start();
  CUdeviceptr address;
  CHECK(cuMemAddressReserve(&address, size, 0, 0, 0));
  tell(socket);
  for (;;) {
    const int descriptor = receive_descriptor(socket);
    if (descriptor < 0) return 0;
    CUmemGenericAllocationHandle memory;
    CHECK(cuMemImportFromShareableHandle(&memory, (void*)(intptr_t)descriptor,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    map(address, size, memory, device);
    tell(socket);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemUnmap(address, size));
    CHECK(cuMemRelease(memory));
    tell(socket);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: exchange BYTES\n"), 2;
  const size_t size = strtoull(argv[1], NULL, 10);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("socketpair");
  // Before the driver is started: it does not survive a fork.
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    close(ends[0]);
    return receive(ends[1], size);
  }
  close(ends[1]);
  const CUmemAllocationProp wanted = properties(start(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle memory;
  CHECK(cuMemCreate(&memory, size, &wanted, 0));
  hear(ends[0]);
  printf("ready\n");
  fflush(stdout);

  long count;
  while (scanf(" exchange %ld", &count) == 1) {
    double total = 0;
    for (long i = 0; i < count; ++i) {
      const double begin = now();
      int descriptor;
      CHECK(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
      send_descriptor(ends[0], descriptor);
      close(descriptor);
      hear(ends[0]);
      total += now() - begin;
      hear(ends[0]);
    }
    printf("%.3f\n", total / count);
    fflush(stdout);
  }
  close(ends[0]);
  waitpid(child, NULL, 0);
  return 0;
}
