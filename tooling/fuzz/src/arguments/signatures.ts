import { dirname, join } from 'node:path'
import ts from 'typescript-api'
import type { Callable, Kind, Parameter } from './contract.js'

/**
 * Reads the functions of packages from their declarations: names and types of their parameters, and the keys of options
 * objects. Each key counts as one more parameter.
 */
export function callablesOf(entryPoints: { readonly [packageName: string]: string }): {
  [packageName: string]: Callable[]
} {
  const program = ts.createProgram(Object.values(entryPoints), {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    typeRoots: [join(dirname(Object.values(entryPoints)[0] as string), '../../../node_modules/@types')],
    types: ['node'],
    strict: true,
    skipLibCheck: true,
  })
  const reader = new DeclarationReader(program.getTypeChecker())
  const result: { [packageName: string]: Callable[] } = {}
  for (const [packageName, entryPoint] of Object.entries(entryPoints)) {
    const source = program.getSourceFile(entryPoint)
    if (source === undefined) throw new Error(`no declarations at ${entryPoint}`)
    result[packageName] = reader.callablesOf(source)
  }
  return result
}

/** Names of types of options objects. */
const optionsName =
  /Options$|^__type$|Config$|Option$|^SignalIndex$|Properties$|^DescriptorMessage$|^Extent$|^Region$|^Abortable$|^External\w+Description$/

/**
 * Interfaces whose objects a package creates, with the classes that implement each. The sweep calls the methods of each
 * class.
 */
const interfaces: { readonly [name: string]: readonly string[] } = { Job: ['Job', 'ConnectedJob'] }

/** Parameters of constructors that only the package itself calls. */
const ours = /^(?:live|key|allocation|__0|handle)$/

class DeclarationReader {
  readonly #checker: ts.TypeChecker

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker
  }

  callablesOf(source: ts.SourceFile): Callable[] {
    const module = this.#checker.getSymbolAtLocation(source)
    const found: Callable[] = []
    for (const exported of module === undefined ? [] : this.#checker.getExportsOfModule(module)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(exported) : exported
      for (const owner of interfaces[exported.name] ?? []) {
        for (const member of this.#checker.getDeclaredTypeOfSymbol(symbol).getProperties())
          found.push(...this.#memberOf(member, { place: 'method', owner, name: member.name }, source))
      }
      if (!(symbol.flags & ts.SymbolFlags.Value)) continue
      const type = this.#checker.getTypeOfSymbolAtLocation(symbol, source)
      found.push(...this.#functionsOf(type, { place: 'export', owner: undefined, name: exported.name }, source))
      const prototype = type.getProperty('prototype')
      if (prototype === undefined || type.getCallSignatures().length > 0) continue
      found.push({
        place: 'new',
        owner: exported.name,
        name: 'constructor',
        parameters: this.#constructorOf(type, source),
      })
      for (const member of type.getProperties()) {
        found.push(...this.#memberOf(member, { place: 'static', owner: exported.name, name: member.name }, source))
      }
      const instance = this.#checker.getTypeOfSymbolAtLocation(prototype, source)
      for (const member of instance.getProperties()) {
        found.push(...this.#memberOf(member, { place: 'method', owner: exported.name, name: member.name }, source))
      }
    }
    return found
  }

  /** Returns the functions of one member of a class or interface, unless the member is hidden. */
  #memberOf(member: ts.Symbol, at: Omit<Callable, 'parameters'>, source: ts.SourceFile): Callable[] {
    if (/^(?:_|prototype$|captureStackTrace$|prepareStackTrace$)/.test(member.name)) return []
    const [declaration] = member.declarations ?? []
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
    if (declaration !== undefined && ts.getCombinedModifierFlags(declaration) & hidden) return []
    return this.#functionsOf(this.#checker.getTypeOfSymbolAtLocation(member, source), at, source)
  }

  #functionsOf(type: ts.Type, at: Omit<Callable, 'parameters'>, source: ts.SourceFile): Callable[] {
    const signatures = type.getCallSignatures()
    if (signatures.length === 0) return []
    // The longest overload contains the parameters of the others.
    const most = Math.max(...signatures.map(({ parameters }) => parameters.length))
    const longest = signatures.filter(({ parameters }) => parameters.length === most)
    const [first] = longest
    if (first === undefined) return []
    const parameters = first.parameters.map((parameter, index) => {
      const alike = longest.map((signature) => signature.parameters[index] as ts.Symbol)
      return this.#parameterOf(parameter, alike, source)
    })
    return [{ ...at, parameters }]
  }

  #constructorOf(type: ts.Type, source: ts.SourceFile): Parameter[] {
    const [signature] = type.getConstructSignatures()
    const modifiers = signature?.declaration === undefined ? 0 : ts.getCombinedModifierFlags(signature.declaration)
    const isOurs = signature?.parameters.some((parameter) => ours.test(parameter.name)) === true
    return signature === undefined || modifiers & ts.ModifierFlags.Protected || isOurs
      ? []
      : signature.parameters.map((parameter) => this.#parameterOf(parameter, [parameter], source))
  }

  #parameterOf(parameter: ts.Symbol, alike: readonly ts.Symbol[], source: ts.SourceFile): Parameter {
    const declaration = parameter.valueDeclaration
    const isRest = declaration !== undefined && ts.isParameter(declaration) && declaration.dotDotDotToken !== undefined
    const types = alike.map((one) => this.#checker.getTypeOfSymbolAtLocation(one, source))
    const type = types[0] as ts.Type
    const isOptional =
      isRest || (declaration !== undefined && ts.isParameter(declaration) && declaration.questionToken !== undefined)
    const kinds = new Set(types.flatMap((one) => this.#kindsOf(one)))
    if (isOptional) kinds.add('undefined')
    return {
      name: parameter.name,
      type: this.#checker.typeToString(type),
      kinds: [...kinds],
      isRest,
      options: this.#optionsOf(type, source),
    }
  }

  /** Returns the keys of an options object, and an empty list for any other type. */
  #optionsOf(type: ts.Type, source: ts.SourceFile): Parameter[] {
    const objects = this.#parts(type).filter((part) => !(part.flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Null)))
    const [object] = objects
    if (object === undefined || objects.some((one) => !this.#isOptions(one))) return []
    const properties = new Map(
      objects.flatMap((one) => one.getProperties().map((property) => [property.name, property])),
    )
    return [...properties.values()].map((property) => {
      const propertyType = this.#checker.getTypeOfSymbolAtLocation(property, source)
      const kinds = new Set(this.#kindsOf(propertyType))
      if (property.flags & ts.SymbolFlags.Optional) kinds.add('undefined')
      return {
        name: property.name,
        type: this.#checker.typeToString(propertyType),
        kinds: [...kinds],
        isRest: false,
        options: [],
      }
    })
  }

  /** Returns true for an interface of plain data, such as `QueueOptions`. */
  #isOptions(type: ts.Type): boolean {
    const name = (type.aliasSymbol ?? type.symbol)?.name ?? ''
    if (optionsName.test(name) && !type.isClass()) return true
    return type.isIntersection() && type.types.every((part) => this.#isOptions(part))
  }

  #parts(type: ts.Type): ts.Type[] {
    if (type.isUnion()) return type.types.flatMap((part) => this.#parts(part))
    if (type.flags & ts.TypeFlags.TypeParameter) {
      const constraint = this.#checker.getBaseConstraintOfType(type)
      return constraint === undefined ? [type] : this.#parts(constraint)
    }
    return [type]
  }

  #kindsOf(type: ts.Type): Kind[] {
    return this.#parts(type).flatMap((part): Kind[] => {
      const { flags } = part
      if (flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.TypeParameter)) return ['unknown']
      if (flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void)) return ['undefined']
      if (flags & ts.TypeFlags.Null) return ['null']
      if (flags & ts.TypeFlags.NumberLike) return [flags & ts.TypeFlags.NumberLiteral ? 'number literal' : 'number']
      if (flags & ts.TypeFlags.BigIntLike) return ['bigint']
      if (flags & ts.TypeFlags.BooleanLike) return ['boolean']
      if (flags & ts.TypeFlags.StringLiteral) return ['word']
      if (flags & ts.TypeFlags.StringLike) return ['string']
      if (flags & ts.TypeFlags.ESSymbolLike) return ['symbol']
      if (part.getCallSignatures().length > 0) return ['function']
      if (this.#checker.isArrayType(part) || this.#checker.isTupleType(part)) return ['array']
      const properties = part.getProperties()
      const isEmptyAllowed = properties.every((property) => property.flags & ts.SymbolFlags.Optional)
      return isEmptyAllowed ? ['empty object', 'object'] : ['object']
    })
  }
}
