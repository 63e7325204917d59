#include <cstdio>
#include <cstdlib>
#include <exception>

#ifdef __GLIBCXX__
namespace __gnu_cxx {

// Replaces libstdc++'s handler of this name, which pulls in a demangler: a sixth of the file.
void __verbose_terminate_handler() {
  const char* what = "";
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  std::fprintf(stderr, "@shoal/ffi: nothing catches a C++ exception: %s\n", what);
  std::abort();
}

}  // namespace __gnu_cxx
#endif
