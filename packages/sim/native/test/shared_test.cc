// Code that the libraries share, compiled into this program: fault injection, timeouts, and sockets between processes.
#include "../shared/faults.cc"
#include "../shared/localSocket.cc"
#include "../shared/timeout.cc"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <condition_variable>
#include <ctime>
#include <fstream>

#include "check.h"

using namespace shoal;

namespace {

constexpr uint64_t kRanks = 12;

const FaultRules kRules = {
    "own",
    true,
    [](const std::string& call) { return isCallOf(call, "ownSend") || isCallOf(call, "ownReceive"); },
    [](uint64_t code) { return code >= 10 && code <= 20; },
    15,
    kRanks,
    0};
const FaultRules kOnce = {"own", false, [](const std::string&) { return true; }, [](uint64_t) { return true; }, 7,
                          1,     1};

// The errors of `count` calls, as one character per call.
std::string errorsOf(Faults& faults, const char* function, int rank, int count) {
  std::string errors;
  for (int call = 0; call < count; ++call) errors += faults.next(function, rank).code == 0 ? '.' : 'E';
  return errors;
}

Faults& faultsOf(const FaultRules& rules, const char* text) {
  static std::vector<std::unique_ptr<Faults>> all;
  all.push_back(std::make_unique<Faults>(rules));
  std::string wrong;
  if (!all.back()->replace(text, wrong)) throw check::Failure(std::string(text) + ": " + wrong);
  return *all.back();
}

void same(const std::string& got, const std::string& want) {
  if (got != want) throw check::Failure("got \"" + got + "\", want \"" + want + "\"");
}

// Runs `body` in a separate process, where it may change process-wide state.
template <class Body>
void inProcess(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 0;
    try {
      body();
    } catch (const std::exception& failure) {
      printf("%s\n", failure.what());
      code = 1;
    }
    fflush(stdout);
    _exit(code);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  EQUAL(status, 0);
}

std::string reported;

struct Limit {
  const char* text;
  uint64_t nanoseconds;
  bool isReported;
};

std::string freshName() { return nameOf("shoal-test-", randomBytes()); }

int openDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// The name of a socket in the system's list, with @ for each zero byte.
bool isKnownToSystem(const std::string& name) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.size() > name.size() && line.compare(line.size() - name.size() - 1, std::string::npos, "@" + name) == 0)
      return true;
  }
  return false;
}

double secondsOf(int socket, int option) {
  timeval limit = {};
  socklen_t length = sizeof limit;
  CHECK(getsockopt(socket, SOL_SOCKET, option, &limit, &length) == 0);
  return static_cast<double>(limit.tv_sec) + static_cast<double>(limit.tv_usec) / 1e6;
}

// The first connection of a served socket, as seen by its thread.
struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  int connections = 0;
  double receiving = 0, sending = 0;
  char thread[16] = {};
  bool takesSignals = true;

  void note(int connection) {
    std::lock_guard lock(mutex);
    receiving = secondsOf(connection, SO_RCVTIMEO);
    sending = secondsOf(connection, SO_SNDTIMEO);
    pthread_getname_np(pthread_self(), thread, sizeof thread);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    takesSignals = sigismember(&blocked, SIGINT) == 0 || sigismember(&blocked, SIGTERM) == 0;
    ++connections;
    changed.notify_all();
  }
  void waitFor(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return connections >= count; });
  }
};

// The server closes the connection after its answer.
void waitForEnd(int connection) {
  char byte = 0;
  EQUAL(recv(connection, &byte, 1, 0), 0);
  close(connection);
}

}  // namespace

TEST(a_fault_is_at_a_function_or_at_all_that_begin_alike) {
  struct {
    const char *call, *function;
    bool isOf;
  } const cases[] = {{"ownSend", "ownSend", true},  {"ownSend", "ownSen", false},
                     {"ownSen", "ownSend", false},  {"own*", "ownSend", true},
                     {"ownSend*", "ownSend", true}, {"ownSendX*", "ownSend", false},
                     {"owm*", "ownSend", false},    {"*", "ownSend", true},
                     {"", "ownSend", false},        {"", "", true}};
  for (auto& each : cases) {
    if (isCallOf(each.call, each.function) != each.isOf)
      throw check::Failure(std::string(each.call) + " of " + each.function);
  }
}

TEST(numbers_are_decimal_digits_alone) {
  struct {
    const char* text;
    uint64_t number;
  } const numbers[] = {{"0", 0}, {"9", 9}, {"10", 10}, {"0123", 123}, {"18446744073709551615", ~uint64_t{0}}};
  for (auto& each : numbers) {
    uint64_t number = 1;
    CHECK(readNumber(each.text, number));
    EQUAL(number, each.number);
  }
  uint64_t number = 0;
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "1.5", "/", ":", "a"}) {
    if (readNumber(text, number)) throw check::Failure(std::string(text) + " is taken");
  }
}

TEST(what_is_not_understood_is_named_and_changes_nothing) {
  Faults faults(kRules);
  std::string wrong;
  CHECK(faults.replace("error", wrong));
  struct {
    const char *text, *wrong;
  } const cases[] = {{"explode", "explode"},
                     {"die now", "now"},
                     {"die rank=12", "rank=12"},
                     {"die rank=-1", "rank=-1"},
                     {"die,rank=", "rank="},
                     {"die;hang:when=1", "when=1"},
                     {"slow ms=x", "ms=x"},
                     {"error:call=ownSends", "call=ownSends"},
                     {"error at=ownX*", "at=ownX*"},
                     {"error call=ownSend code=9", "code=9"},
                     {"error call=ownSend code=21", "code=21"},
                     {"error code=9 at=own*", "code=9"},
                     {"rank=1", "rank=1"}};
  for (auto& each : cases) {
    if (faults.replace(each.text, wrong)) throw check::Failure(std::string(each.text) + " is taken");
    same(wrong, each.wrong);
    CHECK(faults.isAny());
  }
  same(errorsOf(faults, "ownSend", 0, 2), "EE");
  CHECK(faults.replace(nullptr, wrong) && !faults.isAny());
  same(errorsOf(faults, "ownSend", 0, 2), "..");
}

TEST(a_fault_of_another_library_is_not_looked_at) {
  struct {
    const char* text;
    bool isForAll,
        isForOnce;  // whether a fault without a function applies to libraries that accept such faults, and to others
  } const cases[] = {{"", false, false},
                     {" ; ,:;", false, false},
                     {"error", true, false},
                     {"error call=", true, false},
                     {"error at=*", true, false},
                     {"error call=* rank=0", true, false},
                     {"error call=ownSend", true, true},
                     {"error at=own*", true, true},
                     {"error rank=0 call=ownSend", true, true},
                     {"error call=otherSend", false, false},
                     {"explode call=otherSend times=x", false, false},
                     {"error call=otherSend;error:at=ownSend", true, true},
                     {"error call= at=otherSend", false, false}};
  for (auto& each : cases) {
    if (faultsOf(kRules, each.text).isAny() != each.isForAll) throw check::Failure(std::string(each.text) + ", of all");
    if (faultsOf(kOnce, each.text).isAny() != each.isForOnce)
      throw check::Failure(std::string(each.text) + ", of some");
  }
}

TEST(faults_come_at_their_calls_as_often_as_was_asked) {
  struct {
    const char* text;
    const char* errors;
  } const cases[] = {{"error", "EEEEEEEEEEEEEEE"},
                     {"error times=0", "EEEEEEEEEEEEEEE"},
                     {"error times=1", "E.............."},
                     {"error after=1", ".EEEEEEEEEEEEEE"},
                     {"error after=10", "..........EEEEE"},
                     {"error after=2 times=11", "..EEEEEEEEEEE.."},
                     {"error:after=12,times=10", "............EEE"},
                     {"error:times=2;error:after=5,times=1", "EE...E........."}};
  for (auto& each : cases) same(errorsOf(faultsOf(kRules, each.text), "ownSend", 0, 15), each.errors);
  same(errorsOf(faultsOf(kOnce, "error call=own*"), "ownSend", 0, 3), "E..");
  // Calls of other functions do not count.
  Faults& faults = faultsOf(kRules, "error rank=0 call=ownSend after=1 times=1");
  same(errorsOf(faults, "ownReceive", 0, 3), "...");
  same(errorsOf(faults, "ownSend", 1, 3), "...");
  same(errorsOf(faults, "ownSend", 0, 4), ".E..");
  same(errorsOf(faultsOf(kRules, "error rank=11"), "ownSend", 11, 1), "E");
  same(errorsOf(faultsOf(kRules, "error rank=11"), "ownSend", 10, 1), ".");
}

TEST(a_fault_is_an_error_a_wait_a_delay_or_the_end) {
  for (auto [text, code] : {std::pair{"error", 15},
                            {"error code=10", 10},
                            {"error code=20", 20},
                            {"error code=99", 15},
                            {"error call=ownSend", 15}}) {
    const Faults::Injected found = faultsOf(kRules, text).next("ownSend", 0);
    EQUAL(found.code, code);
    EQUAL(found.milliseconds, 0);
    CHECK(!found.hangs);
  }
  EQUAL(faultsOf(kOnce, "error call=ownSend").next("ownSend", 0).code, 7);
  const Faults::Injected hanging = faultsOf(kRules, "hang").next("ownSend", 0);
  CHECK(hanging.hangs && hanging.code == 0 && hanging.milliseconds == 0);
  EQUAL(faultsOf(kRules, "slow").next("ownSend", 0).milliseconds, 1000);
  const Faults::Injected slow = faultsOf(kRules, "slow ms=20;slow ms=300;hang rank=1").next("ownSend", 0);
  EQUAL(slow.milliseconds, 320);
  CHECK(!slow.hangs && slow.code == 0);
  Faults& dying = faultsOf(kRules, "die after=1");
  const pid_t child = fork();
  if (child == 0) {
    dying.next("ownSend", 0);
    dying.next("ownSend", 0);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(the_environment_says_which_faults_there_are) {
  inProcess([] {
    Faults faults(kRules);
    same(faults.readEnvironment(), "");
    CHECK(!faults.isAny());
    setenv("SHOAL_SIM_FAULT", "error times=1", 1);
    same(faults.readEnvironment(), "");
    same(errorsOf(faults, "ownSend", 0, 2), "E.");
    setenv("SHOAL_SIM_FAULT", "hang soon", 1);
    same(faults.readEnvironment(), "SHOAL_SIM_FAULT=hang soon: \"soon\" is not understood; there will be no faults");
  });
}

TEST(the_limit_of_waiting_is_a_number_of_seconds) {
  const uint64_t minute = 60000000000;
  const Limit cases[] = {{nullptr, minute, false},     {"", minute, false},        {"0", 0, false},
                         {"0.25", 250000000, false},   {"61", 61000000000, false}, {"1e9", 1000000000000000000, false},
                         {"1000000001", minute, true}, {"-1", minute, true},       {"-0.5", minute, true},
                         {"5s", minute, true},         {"soon", minute, true},     {"nan", minute, true}};
  for (const Limit& each : cases) {
    inProcess([&] {
      if (each.text == nullptr) unsetenv("SHOAL_SIM_TIMEOUT_SECONDS");
      else setenv("SHOAL_SIM_TIMEOUT_SECONDS", each.text, 1);
      const auto report = [](const char* text) { reported += text; };
      for (int time = 0; time < 2; ++time) {
        if (timeoutNanoseconds(report) != each.nanoseconds)
          throw check::Failure(std::string("seconds: ") + (each.text == nullptr ? "none" : each.text));
      }
      same(reported, each.isReported ? std::string("SHOAL_SIM_TIMEOUT_SECONDS=") + each.text +
                                           " is not a number of seconds; 60 is used"
                                     : "");
    });
  }
}

TEST(names_are_hexadecimal_digits_that_nobody_guesses) {
  RandomBytes bytes = {};
  for (unsigned at = 0; at < sizeof bytes.bytes; ++at) bytes.bytes[at] = static_cast<unsigned char>(at * 17);
  bytes.bytes[0] = 0x0a;
  same(nameOf("x-", bytes), "x-0a112233445566778899aabbccddeeff");
  const RandomBytes one = randomBytes(), other = randomBytes();
  for (size_t half : {0, 8}) CHECK(memcmp(one.bytes + half, other.bytes + half, 8) != 0);
}

TEST(a_socket_has_its_whole_name_and_goes_with_its_process) {
  const std::string name = freshName();
  const int before = openDescriptors();
  CHECK(!isListening(name));
  const int listening = listenAt(name, 4);
  CHECK(listening >= 0);
  CHECK(isKnownToSystem(name));
  CHECK(isListening(name));
  CHECK(!isListening(name.substr(0, name.size() - 1)));
  CHECK(!isListening(name + "0"));
  // A taken name and an unknown name: errno is preserved.
  errno = 0;
  EQUAL(listenAt(name, 4), -1);
  EQUAL(errno, EADDRINUSE);
  EQUAL(connectTo(freshName()), -1);
  EQUAL(errno, ECONNREFUSED);
  EQUAL(openDescriptors(), before + 1);
  close(listening);
  CHECK(!isListening(name));
  // A long name is truncated to leave room for the leading zero.
  const std::string longName = name + std::string(100, 'x'),
                    cut = longName.substr(0, sizeof(sockaddr_un::sun_path) - 1);
  const int cutListening = listenAt(longName, 4);
  CHECK(cutListening >= 0);
  CHECK(isKnownToSystem(cut));
  CHECK(isListening(longName) && isListening(cut) && !isListening(cut.substr(0, cut.size() - 1)));
  close(cutListening);
}

TEST(both_ends_wait_for_seconds_alone_and_the_thread_takes_no_signals) {
  static Seen seen;
  const std::string name = freshName();
  const int listening = listenAt(name, 4);
  CHECK(listening >= 0);
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  serve(listening, "test-sockets", [](int connection) { seen.note(connection); });
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) EQUAL(sigismember(&after, signal), sigismember(&before, signal));
  for (int time = 1; time <= 2; ++time) {
    const int connection = connectTo(name);
    CHECK(connection >= 0);
    EQUAL(secondsOf(connection, SO_RCVTIMEO), 5);
    EQUAL(secondsOf(connection, SO_SNDTIMEO), 5);
    seen.waitFor(time);
    waitForEnd(connection);
  }
  CHECK(seen.receiving == 5 && seen.sending == 5);
  same(seen.thread, "test-sockets");
  CHECK(!seen.takesSignals);
}

TEST(processes_of_other_users_are_not_answered) {
  if (geteuid() != 0) throw check::Skip("only the superuser can be another user for a while");
  static Seen seen;
  const std::string name = freshName(), foreign = freshName();
  const int listening = listenAt(name, 4);
  serve(listening, "test-sockets", [](int connection) { seen.note(connection); });
  inProcess([&] {
    CHECK(seteuid(65534) == 0);
    EQUAL(connectTo(name), -1);
    // The server does not answer either if the client skips the check.
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const Address address(name);
    CHECK(connect(connection, address.pointer(), address.length) == 0);
    waitForEnd(connection);
  });
  const int own = connectTo(name);
  CHECK(own >= 0);
  waitForEnd(own);
  EQUAL(seen.connections, 1);
}

TEST(without_descriptors_there_is_no_socket_and_the_other_counts_as_alive) {
  inProcess([] {
    const std::string name = freshName();
    const rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int time = 0; time < 2; ++time) {
      errno = 0;
      EQUAL(time == 0 ? listenAt(name, 4) : connectTo(name), -1);
      EQUAL(errno, EMFILE);
    }
    CHECK(isListening(name));
  });
}

TEST(who_asks_a_busy_listener_does_not_wait) {
  inProcess([] {
    const std::string name = freshName();
    const int listening = listenAt(name, 0);
    const Address address(name);
    // Connect until the queue is full, because nothing accepts the connections.
    int connected = 0;
    while (connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), address.pointer(), address.length) == 0)
      ++connected;
    EQUAL(errno, EAGAIN);
    CHECK(connected > 0);
    CHECK(isListening(name));
    close(listening);
  });
}

TEST(who_cannot_take_connections_rests_and_goes_on_with_them_later) {
  inProcess([] {
    static Seen seen;
    const std::string name = freshName();
    const int listening = listenAt(name, 4), connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limitWaiting(connection);
    rlimit before, none = {0, 0};
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none.rlim_max = before.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    serve(listening, "test-sockets", [](int each) { seen.note(each); });
    const Address address(name);
    CHECK(connect(connection, address.pointer(), address.length) == 0);
    const clock_t start = clock();
    usleep(200000);
    CHECK(static_cast<double>(clock() - start) / CLOCKS_PER_SEC < 0.1);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    seen.waitFor(1);
    waitForEnd(connection);
  });
}

TEST(the_first_descriptor_is_one_like_others) {
  inProcess([] {
    static Seen seen;
    const std::string name = freshName();
    const int listening = listenAt(name, 4), connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limitWaiting(connection);
    close(0);
    serve(listening, "test-sockets", [](int each) { seen.note(each == 0 ? each : -1); });
    const Address address(name);
    CHECK(connect(connection, address.pointer(), address.length) == 0);
    seen.waitFor(1);
    waitForEnd(connection);
  });
  inProcess([] {
    const std::string name = freshName();
    close(0);
    const int listening = listenAt(name, 4);
    EQUAL(listening, 0);
    CHECK(dup2(listening, 100) == 100);
    close(0);
    CHECK(isListening(name));
    const int connection = connectTo(name);
    EQUAL(connection, 0);
    close(0);
    close(100);
    CHECK(!isListening(name));
  });
}
