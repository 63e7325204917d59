import { fileURLToPath } from 'node:url'
import ts from 'typescript-api'
import { afterAll, expect, test } from 'vitest'
import { declarationsOf } from '../src/arguments/index.js'

process.env['SHOAL_DEVICE'] = 'sim'
const ffi = await import('@shoal/ffi')
const types = await import('@shoal/types')
const driver = await import('@shoal/driver')
const { CudaArray, SurfaceObject, TextureObject } = await import('@shoal/driver/texture')
const graphs = await import('@shoal/driver/graph')
const nccl = await import('@shoal/nccl')
const diagnostics = await import('@shoal/driver/diagnostics')

const device = driver.Device.get(0)
const stream = device.createStream()
const buffer = driver.DeviceBuffer.zeros(device, 'f32', 4)
const array = CudaArray.create(device, { width: 4, height: 4, format: 'f32', surface: true })
const graph = graphs.Graph.create(device)
const [communicator] = (await nccl.Communicator.initAll([0])) as [import('@shoal/nccl').Communicator]
const window = await communicator.registerWindow(await nccl.NcclMemory.allocate(0, 2 ** 21))
afterAll(() => communicator.destroy())

function captured(): unknown {
  let info: unknown
  graphs.Graph.capture(stream, () => {
    info = graphs.captureInfo(stream)
  })
  return info
}

/** Calls that return such a result. `runtime` exports the functions of `driver` from the same source. */
const results: { readonly [api: string]: () => unknown } = {
  pointerInfo: () => driver.pointerInfo(device, buffer),
  entryPoint: () => diagnostics.entryPoint('cuMemAlloc'),
  captureInfo: captured,
  nodeParameters: () => graphs.nodeParameters(graph.add(graphs.fillNode(buffer, 1))),
  'Graph.addConditional': () => graph.addConditional({ type: 'if' }),
  'Stream.attributes': () => {
    stream.setAttributes({ accessPolicyWindow: { memory: buffer, hitRatio: 1, hit: 'persisting', miss: 'streaming' } })
    return stream.attributes
  },
  'TextureObject.describeResource': () => TextureObject.create(array).describeResource(),
  'SurfaceObject.describeResource': () => SurfaceObject.create(array).describeResource(),
  'Communicator.memoryStatistics': () => communicator.memoryStatistics(),
  'Window.peerMemory': () => window.peerMemory(0),
  'DeviceCommunicator.read': async () => (await communicator.createDeviceCommunicator({})).read(),
  describeMemory: () => types.describeMemory(buffer),
  describeStream: () => types.describeStream(stream),
  createHostCallback: () => ffi.createHostCallback(() => undefined),
}

/** Results that people do not read, with the reason. */
const exclusions: readonly (readonly [api: RegExp, why: string])[] = [
  [/__@\w+Protocol/, 'answers of the protocols are made anew in each call'],
  [/^(?:toMemoryRange|toStreamHandle|toStridedRange)$/, 'checked answers of the protocols'],
  [/\.record$/, 'the event of the caller'],
  [/MappedRange\.memory$/, 'a PhysicalMemory or MulticastObject, which are public objects'],
  [/NativeLibrary\.load$/, 'the library is loaded; its own test asks'],
]

const packages = ['types', 'ffi', 'nccl', 'nvshmem', 'nvrtc', 'nvjitlink', 'launch', 'driver', 'runtime']
const entries = ['context', 'diagnostics', 'dlpack', 'external', 'graph', 'library', 'memory', 'sharing', 'texture']

test('every plain result with bigints is in the fuzz table', () => {
  const found = bigintResults([
    ...packages.map((name) => declarationsOf(name)),
    ...['driver', 'runtime'].flatMap((name) => entries.map((entry) => declarationsOf(`${name}/${entry}`))),
  ])
  const unknown = found.filter((api) => !(api in results) && !exclusions.some(([pattern]) => pattern.test(api)))
  expect(unknown).toEqual([])
  expect(Object.keys(results).filter((api) => !found.includes(api))).toEqual(['createHostCallback'])
})

test.each(Object.entries(results))(
  '%s returns a result that JSON.stringify accepts and copies without other properties',
  async (_, make) => {
    const result = (await make()) as object
    const text = JSON.stringify({ result })
    expect(text.length).toBeLessThan(4000)
    expect(text).not.toBe('{}')
    expect(Object.keys(result).filter((key) => key === 'toJSON' && !('dispose' in result))).toEqual([])
  },
)

test('results print addresses and handles as hexadecimal, and other bigints as decimal', () => {
  const result = types.withJson({ address: 255n, inner: { eventHandle: 16n, bytes: 12n }, many: [1n], handles: [32n] })
  expect(JSON.stringify(result)).toBe(
    '{"address":"0xff","inner":{"eventHandle":"0x10","bytes":"12"},"many":["1"],"handles":["0x20"]}',
  )
  expect(result).toStrictEqual({ address: 255n, inner: { eventHandle: 16n, bytes: 12n }, many: [1n], handles: [32n] })
  expect(structuredClone(result).address).toBe(255n)
})

/** Returns the functions, methods and properties whose plain results contain a bigint, read from the declarations. */
function bigintResults(files: readonly string[]): string[] {
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    typeRoots: [fileURLToPath(new URL('../../../node_modules/@types', import.meta.url))],
    types: ['node'],
    strict: true,
    skipLibCheck: true,
  })
  const checker = program.getTypeChecker()
  const found = new Set<string>()
  const ask = (api: string, symbol: ts.Symbol, declaration: ts.Node): void => {
    const type = checker.getTypeOfSymbolAtLocation(symbol, declaration)
    const signatures = type.getCallSignatures()
    const returned = signatures.length === 0 ? [type] : signatures.map((signature) => signature.getReturnType())
    if (returned.some((one) => holdsBigint(checker, one, false, new Set()))) found.add(api)
  }
  for (const file of files) {
    const source = program.getSourceFile(file) as ts.SourceFile
    for (const exported of checker.getExportsOfModule(checker.getSymbolAtLocation(source) as ts.Symbol)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      const declaration = symbol.valueDeclaration
      if (declaration === undefined || isHidden(declaration)) continue
      if (!(symbol.flags & ts.SymbolFlags.Class)) {
        ask(exported.name, symbol, declaration)
        continue
      }
      const types = [checker.getTypeOfSymbolAtLocation(symbol, declaration), checker.getDeclaredTypeOfSymbol(symbol)]
      for (const member of types.flatMap((type) => type.getProperties())) {
        const own = member.valueDeclaration
        if (own === undefined || isHidden(own) || member.name.startsWith('_') === !member.name.startsWith('__@'))
          continue
        ask(`${exported.name}.${member.name}`, member, own)
      }
    }
  }
  return [...found].sort()
}

function isHidden(declaration: ts.Declaration): boolean {
  const text = declaration.getSourceFile().text.slice(declaration.getFullStart(), declaration.getStart())
  const modifiers = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
  return text.includes('@internal') || (ts.getCombinedModifierFlags(declaration) & modifiers) !== 0
}

/** Returns true if a type is a plain object that contains a bigint, or an array or promise of such objects. */
function holdsBigint(checker: ts.TypeChecker, type: ts.Type, isField: boolean, seen: Set<ts.Type>): boolean {
  if (type.flags & ts.TypeFlags.BigIntLike) return isField
  if (type.isIntersection() && type.types.some((part) => part.flags & ts.TypeFlags.BigIntLike)) return isField
  if (seen.has(type)) return false
  seen.add(type)
  const holds = (part: ts.Type, field: boolean): boolean => holdsBigint(checker, part, field, seen)
  if (type.isUnion()) return type.types.some((part) => holds(part, isField))
  const name = type.getSymbol()?.getName() ?? ''
  const isList = checker.isArrayType(type) || checker.isTupleType(type)
  if (isList || name === 'Promise') {
    return checker.getTypeArguments(type as ts.TypeReference).some((part) => holds(part, isField))
  }
  if (type.isClass() || !(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection))) return false
  if (type.getCallSignatures().length > 0 || type.getProperty('buffer') !== undefined) return false
  if (type.getProperty('toJSON') !== undefined || /^(?:Readonly)?(?:Map|Set)$/.test(name)) return false
  return type.getProperties().some((property) => {
    const declaration = property.valueDeclaration
    if (declaration === undefined || property.flags & ts.SymbolFlags.Method || property.name.startsWith('_'))
      return false
    return holds(checker.getTypeOfSymbolAtLocation(property, declaration), true)
  })
}
