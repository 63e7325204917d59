// A C++ library that poses as a vendor's. It has every symbol of the spec. Each function records the bytes of its
// arguments and returns the configured result. Requires no vendor header.

import { libraryRecord, versionParts } from '../../../libraries/index.mjs'
import { type LibrarySpecFile, type Lowered, type StructSpec, scalarBytes } from '../spec/types.js'
import { holdsFloat, type RecorderSymbol, recorderSymbols, structsByName } from './abi.js'
import { cName, scalarKind } from './scalars.js'

/** Offsets in the memory at `shoal_proof_log`. */
export const logLayout = {
  used: 0,
  /** non-zero: text arguments point to text */
  follow: 8,
  /** non-zero: functions that the loader calls do their work */
  loader: 12,
  result: 16,
  resultBytes: 512,
  entries: 528,
  size: 528 + (4 << 20),
} as const

/** The function that returns the library's version, which a package calls by itself. */
function versionAction(id: string, version: number): Record<string, string> {
  const { format, function: name, parts, returnsNothing, byPart } = libraryRecord(id).version
  const values = parts === 1 ? [version] : versionParts(format, version)
  const part = `const int parts[] = { ${values.join(', ')} }; if (a1 && (unsigned)a0 < 3) *(int*)a1 = parts[a0]; return 0;`
  if (byPart) return { [name]: part }
  const stores = values.map((value, index) => `if (a${index}) *(int*)a${index} = ${value};`)
  return { [name]: `${stores.join(' ')} return${returnsNothing ? '' : ' 0'};` }
}

/** Functions that a package calls by itself while it resolves other functions, and their bodies. */
function loaderActions(id: string, version: number): Record<string, string> {
  const lookup = 'return shoal_proof_lookup((const char*)a0, (void**)a1, a2, a3, (int*)a4);'
  return { ...versionAction(id, version), ...(id === 'driver' ? { cuGetProcAddress_v2: lookup } : {}) }
}

/** The symbols of these functions. */
export function loaderFunctions(library: string): string[] {
  return Object.keys(loaderActions(library, 0))
}

const unitSize = 300

/** The sources of a recorder, as units that can be compiled in parallel. */
export function emitRecorder(spec: LibrarySpecFile): string[] {
  const symbols = recorderSymbols(spec)
  const structs = structsByName(spec)
  const units = [emitCore(spec, symbols)]
  for (let first = 0; first < symbols.length; first += unitSize) {
    const part = symbols.slice(first, first + unitSize)
    units.push([emitPrelude(), ...emitTypes(part, structs), ...part.map((each) => emitFunction(spec, each))].join('\n'))
  }
  return units
}

function emitPrelude(): string {
  return `#include <stdint.h>
extern "C" {
struct ShoalLog {
  uint64_t used;
  uint32_t follow, loader;
  unsigned char result[${logLayout.resultBytes}];
  unsigned char entries[${logLayout.size - logLayout.entries}];
};
extern ShoalLog shoal_proof_log;
void shoal_proof_begin(uint32_t id);
void shoal_proof_put(const void* value, uint32_t bytes);
void shoal_proof_text(const void* value);
void shoal_proof_result(void* value, uint32_t bytes);
int shoal_proof_lookup(const char* name, void** address, int version, uint64_t flags, int* status);
}
`
}

function emitCore(spec: LibrarySpecFile, symbols: readonly RecorderSymbol[]): string {
  const rows =
    spec.library !== 'driver'
      ? []
      : symbols
          .filter(({ variant }) => variant !== 'per-thread')
          .sort((a, b) => b.since - a.since)
          .map(({ symbol, since, entry, variant }) => {
            const perThread = variant === 'plain' ? entry.perThreadSymbol : undefined
            return `  {"${entry.lookup}", ${since}, (void*)${symbol}, ${perThread ? `(void*)${perThread}, ${entry.perThreadSince ?? since}` : '0, 0'}},`
          })
  const declared = rows.length === 0 ? [] : symbols.map(({ symbol }) => `void ${symbol}();`)
  return `${emitPrelude()}
#include <stdlib.h>
#include <string.h>
extern "C" {
__attribute__((aligned(16))) ShoalLog shoal_proof_log;
static unsigned char* entry;
static uint64_t room() { return sizeof shoal_proof_log.entries - shoal_proof_log.used; }
static void grow(const void* value, uint32_t bytes) {
  if (room() < bytes + 16u) abort();
  memcpy(shoal_proof_log.entries + shoal_proof_log.used, value, bytes);
  shoal_proof_log.used += bytes;
  *(uint32_t*)(entry + 4) += bytes;
}
// An entry is the number of the function, the count of bytes that follow, and the bytes.
void shoal_proof_begin(uint32_t id) {
  if (room() < 16) abort();
  shoal_proof_log.used = (shoal_proof_log.used + 7) & ~(uint64_t)7;
  entry = shoal_proof_log.entries + shoal_proof_log.used;
  memcpy(entry, &id, 4);
  memset(entry + 4, 0, 4);
  shoal_proof_log.used += 8;
}
void shoal_proof_put(const void* value, uint32_t bytes) { grow(value, bytes); }
void shoal_proof_text(const void* value) {
  if (!shoal_proof_log.follow || !value) return;
  const uint32_t bytes = (uint32_t)strlen((const char*)value);
  grow(&bytes, 4);
  grow(value, bytes);
}
void shoal_proof_result(void* value, uint32_t bytes) { memcpy(value, shoal_proof_log.result, bytes); }
${declared.join('\n')}
}
struct Row { const char* name; int since; void* plain; void* perThread; int perThreadSince; };
static const Row rows[] = {
${rows.join('\n')}
  {0, 0, 0, 0, 0},
};
// Of the ABIs of a name, the newest that the asked version has, as the driver does it.
extern "C" int shoal_proof_lookup(const char* name, void** address, int version, uint64_t flags, int* status) {
  bool known = false;
  for (const Row* row = rows; row->name; row++) {
    if (strcmp(row->name, name) != 0) continue;
    known = true;
    if (row->since > version) continue;
    *address = flags == 2 && row->perThread && version >= row->perThreadSince ? row->perThread : row->plain;
    if (status) *status = 0;
    return 0;
  }
  *address = 0;
  if (status) *status = known ? 2 : 1;
  return 500;
}
`
}

function structType({ type, size }: { type: string; size: number }): string {
  return `S_${type.replace(/\W/g, '_')}_${size}`
}

function emitTypes(part: readonly RecorderSymbol[], structs: ReadonlyMap<string, StructSpec>): string[] {
  const lines = new Map<string, string>()
  for (const { entry } of part) {
    for (const lowered of [entry.result, ...entry.parameters.map((parameter) => parameter.lowered)]) {
      if (lowered.kind !== 'struct') continue
      const name = structType(lowered)
      const members = holdsFloat(structs, lowered.type)
        ? realMembers(structs, lowered.type)
        : `unsigned char bytes[${lowered.size}];`
      lines.set(name, `struct __attribute__((aligned(${lowered.alignment}))) ${name} { ${members} };`)
      lines.set(`${name} `, `static_assert(sizeof(${name}) == ${lowered.size}, "size");`)
    }
  }
  return [...lines.values()]
}

function realMembers(structs: ReadonlyMap<string, StructSpec>, name: string): string {
  const { fields, union } = structs.get(name) as StructSpec
  const members = fields.map(({ type, count }, index) => {
    const of = type.kind === 'struct' ? `struct { ${realMembers(structs, type.type)} }` : cName(scalarKind(type))
    return `${of} m${index}${count === undefined ? '' : `[${count}]`};`
  })
  return union ? `union { ${members.join(' ')} };` : members.join(' ')
}

/** Callees may rely on the caller to extend values below 32 bits. */
function argumentType(lowered: Lowered): string {
  if (lowered.kind === 'struct') return structType(lowered)
  const kind = scalarKind(lowered)
  if (kind === 'bool' || (lowered.kind === 'integer' && scalarBytes(lowered.type) < 4))
    return kind.startsWith('i') ? 'int32_t' : 'uint32_t'
  return cName(kind)
}

// Integers are returned in a whole register, whose upper bits C leaves undefined. Here they are noise.
function resultType(lowered: Lowered): string {
  if (lowered.kind === 'struct') return structType(lowered)
  if (lowered.kind === 'void') return 'void'
  return lowered.kind === 'float' ? cName(lowered.type) : 'uint64_t'
}

function emitFunction(spec: LibrarySpecFile, { id, symbol, entry }: RecorderSymbol): string {
  const result = resultType(entry.result)
  const list = entry.parameters.map(({ lowered }, index) => `${argumentType(lowered)} a${index}`).join(', ')
  const body = entry.parameters.flatMap(({ lowered }, index) => [
    `shoal_proof_put(&a${index}, sizeof a${index});`,
    ...(lowered.kind === 'cstring' ? [`shoal_proof_text((void*)a${index});`] : []),
  ])
  const act = loaderActions(spec.library, spec.headerVersion)[symbol]
  if (act !== undefined) body.push(`if (shoal_proof_log.loader) { ${act} }`)
  if (result !== 'void') body.push(`${result} result; shoal_proof_result(&result, sizeof result); return result;`)
  return `extern "C" ${result} ${symbol}(${list}) { shoal_proof_begin(${id}); ${body.join(' ')} }`
}
