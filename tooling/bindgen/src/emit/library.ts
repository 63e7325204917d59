import type { LibrarySpecFile } from '../spec/types.js'
import { emitFunctions } from './functions.js'
import { emitLookup } from './lookup.js'
import { emitConstants, emitEnums, emitHandles } from './names.js'
import { emitPlaces } from './places.js'
import { SourceFile } from './source.js'
import { emitStructs, placeStructs } from './structs.js'
import { SymbolTable } from './symbols.js'
import { emitVersionedStructs } from './versionedStructs.js'

/** All generated files of a library: path relative to its `generated` folder → text. */
export function emitLibrary(spec: LibrarySpecFile): Map<string, string> {
  const symbols = new SymbolTable(spec, placeStructs(spec))
  const files = [
    ...emitFunctions(spec, symbols),
    ...emitEnums(spec, symbols),
    ...emitStructs(spec, symbols),
    emitHandles(spec),
    emitConstants(spec, symbols),
  ].filter((file) => !file.isEmpty)
  const index = new SourceFile('index.gen.ts')
  index.add(...files.map(({ path }) => `export * from './${path.replace(/\.ts$/, '.js')}'`).sort())
  const internal = [emitLookup(spec), emitVersionedStructs(spec, symbols), emitPlaces(spec)].filter(
    (file) => !file.isEmpty,
  )
  return new Map([...files, index, ...internal].map((file) => [file.path, file.render()]))
}
