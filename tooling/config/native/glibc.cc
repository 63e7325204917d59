// Linked into every native file that a package carries, so that a file built on a newer Linux loads on every system
// with glibc 2.28. It defines the newer functions that the C++ runtime needs, and selects the older versions of
// functions that later moved or changed.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

#if defined(__x86_64__)
#define JUMP(target) "jmp *" target "@GOTPCREL(%rip)\n"
#define OLD(name, version) MOVED(name, version)
#elif defined(__aarch64__)
#define JUMP(target) "adrp x16, :got:" target "\nldr x16, [x16, :got_lo12:" target "]\nbr x16\n"
#define OLD(name, version) MOVED(name, "2.17")
#else
#error "which version of glibc was the first on this processor?"
#endif

// Defines a hidden function that jumps to the old version. It has its own section, so the linker drops it if nothing
// calls it.
#define MOVED(name, version)                                                                                    \
  asm(".pushsection .text." name                                                                                \
      ",\"ax\",@progbits\n"                                                                                     \
      ".globl " name "\n.hidden " name "\n.type " name                                                          \
      ",@function\n"                                                                                            \
      ".symver old_" name "," name "@GLIBC_" version "\n" name ":\n" JUMP("old_" name) ".size " name ",.-" name \
                                                                                       "\n.popsection\n");

// Between 2.32 and 2.34 these moved to libc, with a new version. Older systems have them in libpthread and libdl, which
// are linked too.
OLD("__pthread_key_create", "2.2.5")
OLD("pthread_create", "2.2.5")
OLD("pthread_detach", "2.2.5")
OLD("pthread_getspecific", "2.2.5")
OLD("pthread_join", "2.2.5")
OLD("pthread_key_create", "2.2.5")
OLD("pthread_key_delete", "2.2.5")
OLD("pthread_mutex_consistent", "2.12")
OLD("pthread_mutex_trylock", "2.2.5")
OLD("pthread_mutexattr_destroy", "2.2.5")
OLD("pthread_mutexattr_init", "2.2.5")
OLD("pthread_mutexattr_setpshared", "2.2.5")
OLD("pthread_mutexattr_setrobust", "2.12")
OLD("pthread_once", "2.2.5")
OLD("pthread_rwlock_rdlock", "2.2.5")
OLD("pthread_rwlock_unlock", "2.2.5")
OLD("pthread_rwlock_wrlock", "2.2.5")
OLD("pthread_setname_np", "2.12")
OLD("pthread_setspecific", "2.2.5")
OLD("pthread_sigmask", "2.2.5")
OLD("dladdr", "2.2.5")
OLD("dlerror", "2.2.5")
OLD("dlinfo", "2.3.3")
OLD("dlopen", "2.2.5")
OLD("dlsym", "2.2.5")

// Since 2.29 there is a new version, which does not set errno.
OLD("log2", "2.2.5")

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

// Added in 2.32. In glibc it is set while a process has one thread, and the C++ runtime then counts references without
// atomic instructions. Here it is 0, so the runtime always uses atomic instructions.
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

// Added in 2.33; an inline function before. On these processors the kernel fills the same structure as C uses.
HIDDEN int fstat(int descriptor, struct stat* found) noexcept {
  return static_cast<int>(syscall(SYS_fstat, descriptor, found));
}
HIDDEN int fstat64(int descriptor, struct stat64* found) noexcept {
  return static_cast<int>(syscall(SYS_fstat, descriptor, found));
}

// Added in 2.36. std::random_device needs it.
HIDDEN uint32_t arc4random() noexcept {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != sizeof value) abort();
  return value;
}

// Added in 2.30. If the C library has it, it is used: setting the clock back must not prolong a wait.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto wait = reinterpret_cast<Wait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  if (wait != nullptr) return wait(condition, mutex, clock, until);
  constexpr int64_t second = 1'000'000'000;
  timespec now, wallNow;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wallNow);
  const int64_t left = (until->tv_sec - now.tv_sec) * second + until->tv_nsec - now.tv_nsec;
  const int64_t nanoseconds = wallNow.tv_nsec + (left < 0 ? 0 : left);
  const timespec wallUntil{wallNow.tv_sec + nanoseconds / second, nanoseconds % second};
  return pthread_cond_timedwait(condition, mutex, &wallUntil);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// Added in 2.35. The unwinder of exceptions asks for the loaded object that contains an instruction, and for its unwind
// tables.
namespace {
int holds(dl_phdr_info* object, size_t, void* argument) {
  auto* found = static_cast<dl_find_object*>(argument);
  const auto at = reinterpret_cast<uintptr_t>(found->dlfo_map_start);
  const ElfW(Phdr)* tables = nullptr;
  bool here = false;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const auto& part = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && at >= start && at - start < part.p_memsz) here = true;
    if (part.p_type == PT_GNU_EH_FRAME) tables = &part;
  }
  if (!here || tables == nullptr) return 0;
  found->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + tables->p_vaddr);
  return 1;
}
}  // namespace

// On these processors the unwinder reads only dlfo_eh_frame.
HIDDEN int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  found->dlfo_map_start = address;
  return dl_iterate_phdr(holds, found) == 1 ? 0 : -1;
}
#endif
