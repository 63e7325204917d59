import { ShoalError } from '@shoal/types'
import type { Callable, Kind, Parameter } from './contract.js'

/** Messages of V8, Node.js and the addon for arguments that no code of Shoal has checked. */
const engineMessages =
  /is not (?:a function|iterable|defined|a constructor|extensible)|Cannot (?:read|set|convert|perform|mix|destructure|assign|delete|access|define|use)|Maximum call stack|private member|incompatible receiver|called on|must be called|not a typed array|Reduce of|Invalid (?:array|typed|DataView|string|count|time)|is outside the bounds|out of bounds|should be a multiple|does not exist on|could not be cloned|Class constructor|Illegal|object null|no setter|only a getter|read only|cannot be converted to a BigInt|Immutable|is not a valid|^expected|was expected/i

/** Returns true if no code of Shoal checked the argument, because the error is not one of Shoal's errors. */
export function engineError(error: unknown): boolean {
  if (error instanceof ShoalError) return false
  if (!(error instanceof TypeError || error instanceof RangeError)) return true
  // Node's own errors have a code.
  if (typeof (error as { code?: unknown }).code === 'string') return true
  return engineMessages.test(error.message.replace(/, not .*$/s, ''))
}

/** Classes through which users reach the methods of classes whose objects they do not create. */
const offeredAs: { readonly [className: string]: readonly string[] } = {
  CommunicatorOperations: ['Communicator'],
  AtomicOperations: ['Session.atomics'],
  Signals: ['Session.signals'],
  DeviceCode: ['Session.deviceCode'],
  ConnectedJob: ['Job'],
}

/**
 * Returns the names that an error may use for a function: those with its own class, or with a class that inherits it.
 */
export function names(callable: Callable, module: { readonly [name: string]: unknown }): string[] {
  const { place, owner, name } = callable
  if (place === 'export') return [`${name}:`]
  const classes: string[] = []
  for (
    let at: unknown = module[owner as string];
    typeof at === 'function' && at.name !== '';
    at = Object.getPrototypeOf(at)
  ) {
    classes.push(at.name)
  }
  classes.push(owner as string, ...(offeredAs[owner as string] ?? []))
  return classes.flatMap((one) => (place === 'new' ? [`new ${one}:`, `${one}:`] : [`${one}.${name}:`]))
}

/** Parameters whose type accepts more than an integer from 0 on: the accepted values, and the reason. */
const lenient: readonly (readonly [api: RegExp, junk: RegExp, why: string])[] = [
  [/#priority$/, /^-1$/, 'streams have priorities below 0'],
  [/^PreparedLaunch\.set#value$/, /^(?:NaN|-1|0\.5|2\*\*53|Infinity)$/, 'a number of f32'],
  [/^encode\w+#value$/, /^(?:NaN|-1|0\.5|2\*\*53|Infinity)$/, 'any number is rounded'],
  [/^encodeArray#values$/, /^(?:an array|an array of bytes|an array of a false length)$/, 'arrays of numbers'],
  [/^Stream\.record#event$/, /^undefined$/, 'it makes an event of its own'],
  [
    /^(?:Device|Pinned|Pitched)Buffer\.from#array$/,
    /^an array (?:of bytes|of 64-bit integers|of a false length)$/,
    'any typed array; the sizes are those it has',
  ],
  [/^(?:dtypeOf|decodeArray|addressOf)#/, /array|DataView|buffer/i, 'any typed array'],
  [/#signal$/, /^an aborted signal$/, 'a signal; what need not wait does not ask it'],
  [/#background$/, /^(?:an unknown key|an object that is no text|a thenable)$/, 'an object that is filled'],
  [/^(?:DescriptorSocket\.send|(?:Connected)?Job\.(?:gather|set))#bytes$/, /^an array of bytes$/, 'bytes'],
  [/^Session\.atomics?#|^AtomicOperations\.\w+#(?:value|expected|desired)$/, /^-0$/, 'an integer'],
  [/^Signals\.\w+#value$/, /^-0$/, 'an integer'],
  [/^bootstrap#environment$/, /./, 'any object may hold the variables'],
  [/^setCoreDumpSetting#value$/, /^-0$/, 'an integer'],
  [/^nvshmemStatusText#status$/, /^-1$/, 'a 32-bit integer'],
  [/^ncclStatusText#status$/, /^-1$/, 'a 32-bit integer'],
  [/^(?:Linker\.add#data|textIn#bytes)$/, /^an array of bytes$/, 'bytes'],
  [/#defines$/, /^an unknown key$/, 'macros have any name'],
  [/#keep$/, /./, 'whatever is to stay alive'],
  [/^Graph\.keep#objects$/, /^a (?:graph|stream) of another device$/, 'whatever is disposed of'],
  [/^RegisteredBuffer\.register#buffer$/, /^an ArrayBuffer$/, 'an ArrayBuffer'],
  [/#results$/, /^undefined$/, 'the default'],
  [
    /^(?:Device|Pinned|Pitched)Buffer\.from#(?:options|dtype)$/,
    /^(?:undefined|an object without prototype|a frozen object)$/,
    'the type of the array',
  ],
  [/^TensorMap\.im2colWide#(?:lower|upper)CornerWidth$/, /^-1$/, 'windows begin before the picture'],
  [/#mipmapLevelBias$/, /^(?:-1|0\.5)$/, 'levels may be a fraction, and below the first'],
  [/#timeout$/, /^0\.5$/, 'milliseconds may be a fraction'],
  [/(?:\.fill(?:Sync)?|^fillNode)#value$/, /^(?:NaN|-0|-1|0\.5|2\*\*53|Infinity)$/, 'numbers of f32'],
  [/\.(?:slice|subarray)#(?:start|end)$/, /^-1$/, 'counts from the end'],
]

/** Functions that test what a value is. They accept any value. */
const predicate = /^(?:types\.)?is[A-Z]\w*#/

/** Returns true if a call should have refused an argument that it accepted. */
export function isNonsense(api: string, parameter: Parameter, junk: string, kind: string): boolean {
  const { kinds, name } = parameter
  if (kinds.includes('unknown') || predicate.test(`${api}#${name}`)) return false
  if (kind !== 'never' && kinds.includes(kind as Kind)) return false
  return !lenient.some(([at, what]) => at.test(`${api}#${name}`) && what.test(junk))
}
