// A C++ program that knows structs only from the vendor's headers. It reports the content of each field, and fills
// structs itself.

import type { LibrarySpecFile } from '../spec/types.js'
import { structsByName } from './abi.js'
import { leafSets, placesOf, typeAt } from './leaves.js'

/**
 * The program reads records: the struct's number (its index in `names`) and the number of the leaf set, both in 4
 * bytes, then the struct. For each record it prints a line: the struct's size and alignment, the bytes and offset of
 * each field, the struct after its fields were filled with random bytes, and the bytes of each field afterwards.
 */
export function emitLayoutReader(spec: LibrarySpecFile, names: readonly string[], prelude: string): string {
  const structs = structsByName(spec)
  const places = placesOf(spec)
  const functions = names.map((name, index) => {
    const place = places.get(name)
    if (place === undefined) throw new Error(`C++ has no way to name ${name}`)
    const cases = leafSets(structs, name).map(
      (leaves, set) => `    case ${set}: ${leaves.map(({ expression }) => `LEAF(${expression})`).join(' ')} break;`,
    )
    return `using T${index} = ${typeAt(place)};
static void visit${index}(void* memory, unsigned set) {
  T${index}& object = *(T${index}*)memory;
  switch (set) {
${cases.join('\n')}
  }
}`
  })
  return `${prelude}
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>
static bool fills;
static unsigned char* start;
static void print(const void* bytes, size_t count) {
  for (size_t i = 0; i < count; i++) std::printf("%02x", ((const unsigned char*)bytes)[i]);
}
static uint64_t state = 0x9e3779b97f4a7c15;
static unsigned char noise() {
  state ^= state << 13; state ^= state >> 7; state ^= state << 17;
  return (unsigned char)(state >> 24);
}
static void leaf(unsigned char* field, size_t bytes, bool isBool) {
  if (fills) for (size_t i = 0; i < bytes; i++) field[i] = isBool ? noise() & 1 : noise();
  std::printf(" %zu:", (size_t)(field - start));
  print(field, bytes);
}
#define LEAF(path) leaf((unsigned char*)&object path, sizeof(object path), \\
  std::is_same<std::remove_all_extents_t<std::remove_reference_t<decltype(object path)>>, bool>::value);
${functions.join('\n')}
struct Entry { size_t size, alignment; void (*visit)(void*, unsigned); };
static const Entry entries[] = {
${names.map((_, index) => `  { sizeof(T${index}), alignof(T${index}), visit${index} },`).join('\n')}
};
alignas(64) static unsigned char memory[1 << 20];
int main() {
  uint32_t head[2];
  start = memory;
  while (std::fread(head, 4, 2, stdin) == 2) {
    const Entry& entry = entries[head[0]];
    if (entry.size > sizeof memory || std::fread(memory, 1, entry.size, stdin) != entry.size) return 1;
    std::printf("%zu %zu", entry.size, entry.alignment);
    fills = false;
    entry.visit(memory, head[1]);
    std::printf(" |");
    fills = true;
    for (size_t i = 0; i < entry.size; i++) memory[i] = noise();
    entry.visit(memory, head[1]);
    std::printf(" ");
    print(memory, entry.size);
    std::printf("\\n");
  }
  return 0;
}
`
}
