import { readCString, readMemory } from '@shoal/ffi'
import {
  ncclParamBind,
  ncclParamDumpAll,
  ncclParamGet,
  ncclParamGetAllParameterKeys,
  ncclParamGetI8,
  ncclParamGetI16,
  ncclParamGetI32,
  ncclParamGetI64,
  ncclParamGetParameter,
  ncclParamGetStr,
  ncclParamGetU8,
  ncclParamGetU16,
  ncclParamGetU32,
  ncclParamGetU64,
  type ncclParamHandle_t,
  ncclResult_t,
} from '@shoal/nccl-sys'
import { inspectKey, inspectLine, PublicObject, requireKeyOf, requireMade, requireText } from '@shoal/types'
import { checkNccl } from './errors.js'
import type { OwnBytes } from './ownBytes.js'

/** Integer types of NCCL parameters. */
export type ParameterType = 'i8' | 'i16' | 'i32' | 'i64' | 'u8' | 'u16' | 'u32' | 'u64'

const readers = {
  i8: { api: 'ncclParamGetI8', call: ncclParamGetI8, cell: Int8Array },
  i16: { api: 'ncclParamGetI16', call: ncclParamGetI16, cell: Int16Array },
  i32: { api: 'ncclParamGetI32', call: ncclParamGetI32, cell: Int32Array },
  i64: { api: 'ncclParamGetI64', call: ncclParamGetI64, cell: BigInt64Array },
  u8: { api: 'ncclParamGetU8', call: ncclParamGetU8, cell: Uint8Array },
  u16: { api: 'ncclParamGetU16', call: ncclParamGetU16, cell: Uint16Array },
  u32: { api: 'ncclParamGetU32', call: ncclParamGetU32, cell: Uint32Array },
  u64: { api: 'ncclParamGetU64', call: ncclParamGetU64, cell: BigUint64Array },
} as const

const types = Object.keys(readers) as ParameterType[]
const firstRoom = 256
const mostRoom = 65536

/**
 * A parameter of NCCL, such as `NCCL_DEBUG_SUBSYS` (`ncclParam…`, NCCL 2.30).
 *
 * Returns the value in use, from the environment, a file or the default. You cannot change parameters through this
 * class; set them in the environment before the first use of NCCL.
 */
export class NcclParameter extends PublicObject {
  /** Name of the parameter in the environment. */
  readonly key: string
  readonly #handle: ncclParamHandle_t

  private constructor(key: string, handle: ncclParamHandle_t) {
    requireMade(handle, 'NcclParameter', 'NcclParameter.bind')
    super()
    this.key = key
    this.#handle = handle
  }

  /**
   * Returns the names of the parameters (`ncclParamGetAllParameterKeys`).
   *
   * Returns only documented parameters, unless the environment has `NCCL_PARAM_DUMP_ALL=true`. More parameters may
   * appear after a communicator was made.
   *
   * @throws VersionTooOldError below NCCL 2.30.
   */
  static keys(): string[] {
    const table = new BigUint64Array(1)
    const length = new Int32Array(1)
    checkNccl(ncclParamGetAllParameterKeys(table, length), 'ncclParamGetAllParameterKeys')
    const count = length[0] ?? 0
    if (count <= 0) return []
    const addresses = new BigUint64Array(readMemory(table[0] ?? 0n, 8 * count).buffer)
    return Array.from(addresses, (address) => readCString(address) ?? '')
  }

  /**
   * Returns the parameter of a name (`ncclParamBind`).
   *
   * @example
   * ```ts
   * NcclParameter.bind('NCCL_DEBUG_SUBSYS').text // 'INIT,ENV,BOOTSTRAP'
   * ```
   *
   * @throws StatusError `ncclInvalidArgument` for an unknown parameter; VersionTooOldError below NCCL 2.30.
   */
  static override bind(key: string): NcclParameter {
    requireText(key, 'NcclParameter.bind', 'key')
    const out = new BigUint64Array(1)
    checkNccl(ncclParamBind(out, key), 'ncclParamBind')
    return new NcclParameter(key, (out[0] ?? 0n) as ncclParamHandle_t)
  }

  /**
   * Returns the value of a parameter in NCCL's text form, such as `'INIT,ENV'` (`ncclParamGetParameter`).
   *
   * @throws StatusError `ncclInvalidArgument` for an unknown parameter; VersionTooOldError below NCCL 2.30.
   */
  static read(key: string): string {
    requireText(key, 'NcclParameter.read', 'key')
    const value = new BigUint64Array(1)
    const length = new Int32Array(1)
    checkNccl(ncclParamGetParameter(key, value, length), 'ncclParamGetParameter')
    const bytes = length[0] ?? 0
    return bytes > 0 ? Buffer.from(readMemory(value[0] ?? 0n, bytes)).toString() : ''
  }

  /** Makes NCCL log all parameters with values, origins and accepted values (`ncclParamDumpAll`). */
  static dump(): void {
    ncclParamDumpAll()
  }

  /** The value in NCCL's text form. */
  get text(): string {
    return NcclParameter.read(this.key)
  }

  /**
   * Integer type of the parameter, or `'text'` for a string; undefined for other types, such as flags: see `text` and
   * `bytes`.
   */
  get type(): ParameterType | 'text' | undefined {
    const cell = new BigUint64Array(1)
    if (ncclParamGetStr(this.#handle, cell) === 0) return 'text'
    // 8 bytes are enough for integers of every size.
    const bytes = new Uint8Array(cell.buffer)
    return types.find((type) => readers[type].call(this.#handle, bytes) === 0)
  }

  /** The value: a number, a bigint for 64 bits, or a string for other types. */
  get value(): number | bigint | string {
    const { type } = this
    if (type === 'text') return this.readText()
    return type === undefined ? this.text : this.readInteger(type)
  }

  /**
   * Returns the value of a parameter of this integer type (`ncclParamGetI8` … `ncclParamGetU64`).
   *
   * @throws StatusError `ncclInvalidArgument` if its type differs.
   */
  readInteger(type: 'i64' | 'u64'): bigint
  readInteger(type: Exclude<ParameterType, 'i64' | 'u64'>): number
  readInteger(type: ParameterType): number | bigint
  readInteger(type: ParameterType): number | bigint {
    const {
      api,
      call,
      cell: Cell,
    } = requireKeyOf<(typeof readers)[ParameterType]>(type, 'NcclParameter.readInteger', 'type', readers)
    const cell = new Cell(1)
    checkNccl(call(this.#handle, cell), api)
    return cell[0] as number | bigint
  }

  /**
   * Returns the value of a string parameter; empty if unset (`ncclParamGetStr`).
   *
   * @throws StatusError `ncclInvalidArgument` if its type differs.
   */
  readText(): string {
    const out = new BigUint64Array(1)
    checkNccl(ncclParamGetStr(this.#handle, out), 'ncclParamGetStr')
    return readCString(out[0] ?? 0n) ?? ''
  }

  /** The value in NCCL's memory (`ncclParamGet`): a native-endian integer or flag, or a NUL-terminated string. */
  get bytes(): OwnBytes {
    const length = new Int32Array(1)
    for (let room = firstRoom; ; room *= 16) {
      const out = new Uint8Array(room)
      const status = ncclParamGet(this.#handle, out, room, length)
      // NCCL does not report the required size.
      if (status === ncclResult_t.ncclInvalidArgument && room < mostRoom) continue
      checkNccl(status, 'ncclParamGet')
      return out.slice(0, length[0] ?? 0)
    }
  }

  get [Symbol.toStringTag](): string {
    return 'NcclParameter'
  }

  override [inspectKey](): string {
    return inspectLine('NcclParameter', { key: this.key })
  }
}
