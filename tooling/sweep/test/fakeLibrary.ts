// Builds a library with every function of a list. Each function answers with a pattern made from its arguments, so two
// sides get the same answers only if they ask the same questions.
import { compileLibrary } from '@shoal/bindgen/dist/proof/compile.js'
import { groupsOf } from '../dist/list.js'
import type { Spec } from '../dist/spec.js'

/** Faults of the library. Only Node processes see them; C++ programs get right answers. */
export interface Faults {
  /** a function, and how many bytes to change in its first out-parameter */
  lies?: string
  crashes?: string
  overruns?: string
}

const support = `
#include <dlfcn.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

static bool in_node() { return dlsym(RTLD_DEFAULT, "napi_create_object") != nullptr; }
static void mix(std::uint64_t& hash, const void* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 1) hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ull;
}
template <class T, class = void> struct complete : std::false_type {};
template <class T> struct complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

/** limit: so many bytes of a struct have no address in them */
template <class T> void read(std::uint64_t& hash, T value, std::size_t limit) {
  if constexpr (!std::is_pointer_v<T>) {
    mix(hash, &value, sizeof value);
  } else {
    using Target = std::remove_pointer_t<T>;
    if (value == nullptr || std::is_void_v<Target>) return;
    if constexpr (std::is_same_v<Target, const char>) mix(hash, value, std::strlen(value));
    else if constexpr (std::is_function_v<Target>) return;
    else if constexpr (!complete<Target>::value) mix(hash, &value, sizeof value);
    else if constexpr (std::is_const_v<Target>) mix(hash, value, limit < sizeof(Target) ? limit : sizeof(Target));
  }
}
static void pattern(std::uint64_t hash, void* target, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 1)
    static_cast<unsigned char*>(target)[i] = static_cast<unsigned char>((hash >> (i % 8 * 8)) | 1);
}
static const char* words(std::uint64_t hash) {
  static char text[32];
  std::snprintf(text, sizeof text, "text %llx", static_cast<unsigned long long>(hash));
  return text;
}
template <class T> void fill(std::uint64_t& hash, T target) {
  if constexpr (std::is_pointer_v<T>) {
    using Target = std::remove_pointer_t<T>;
    if (target == nullptr) return;
    mix(hash, "next", 4);
    if constexpr (std::is_same_v<T, const char**>) *target = words(hash);
    else if constexpr (std::is_same_v<Target, char>) pattern(hash, target, 7), target[7] = 0;
    else if constexpr (std::is_void_v<Target>) { if (!std::is_const_v<Target>) pattern(hash, const_cast<void*>(static_cast<const void*>(target)), 0); }
    else if constexpr (complete<Target>::value && !std::is_const_v<Target> && !std::is_function_v<Target>) pattern(hash, target, sizeof(Target));
  }
}
`

const fixed: Readonly<Record<string, number>> = {
  cuDriverGetVersion: 13000,
  cudaRuntimeGetVersion: 13000,
  cuDeviceGetCount: 2,
}
const left = new Set(['cuGetProcAddress'])
const headers = { driver: 'cuda.h', runtime: 'cuda_runtime_api.h' } as const

/** Builds the library into `folder` and returns its file. */
export function buildFakeLibrary(
  spec: Spec,
  library: 'driver' | 'runtime',
  include: string,
  folder: string,
  faults: Faults = {},
): Promise<string> {
  const steps = groupsOf(spec).flatMap((group) => group.steps)
  const names = new Set(
    steps.flatMap((step) => (step.kind === 'call' && !left.has(step.function) ? [step.function] : [])),
  )
  const definitions = [...names].map((name) => definition(spec, name, faults))
  const source = [`#include <${headers[library]}>`, support, 'extern "C" {', ...definitions, '}'].join('\n')
  return compileLibrary(folder, `${library}-${Object.keys(faults).join('-') || 'right'}`, [source], [include])
}

function definition(spec: Spec, name: string, faults: Faults): string {
  const { parameters, result, resultCtype } = spec.function(name)
  const declared = parameters.map(({ ctype }, index) => `${ctype} p${index}`).join(', ')
  const lines = [`${resultCtype} ${name}(${declared}) {`, '  std::uint64_t hash = 0xcbf29ce484222325ull;']
  lines.push(`  mix(hash, "${name}", ${name.length});`)
  for (const [index, { ctype }] of parameters.entries())
    lines.push(`  read(hash, p${index}, ${/LaunchConfig|launchConfig/i.test(ctype) ? 24 : 4096});`)
  if (faults.crashes === name) lines.push('  if (in_node()) std::raise(SIGSEGV);')
  for (const index of parameters.keys()) lines.push(`  fill(hash, p${index});`)
  if (fixed[name] !== undefined) lines.push(`  *p0 = ${fixed[name]};`)
  const first = `reinterpret_cast<unsigned char*>(p${parameters.findIndex(({ ctype }) => /\*$/.test(ctype) && !/const/.test(ctype))})`
  if (faults.lies === name) lines.push(`  if (in_node()) ${first}[1] ^= 4;`)
  if (faults.overruns === name) lines.push(`  if (in_node()) ${first}[sizeof(*p0)] = 7;`)
  if (result.kind === 'struct') lines.push(`  ${resultCtype} made; pattern(hash, &made, sizeof made); return made; }`)
  else if (/char \*/.test(resultCtype)) lines.push('  return words(hash); }')
  else lines.push(`  return (${resultCtype})0; }`)
  return lines.join('\n')
}
