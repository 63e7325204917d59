import {
  CUmemAccess_flags,
  CUmemAccessDesc,
  CUmemLocation,
  cuMemGetAccess,
  cuMemSetAccess,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { isArray, type OptionKeys, requireKeyOf, requireList, requireOptions } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { type MemoryPlace, placeKey, type ResolvedPlace, resolvePlace } from './location.js'

/** What a device may do with mapped memory. */
export type MemoryAccess = 'none' | 'read' | 'readWrite'

/** Who gets which access. */
export interface AccessGrant {
  /** Who may use the memory. */
  readonly place: MemoryPlace
  /** What it may do. */
  readonly access: MemoryAccess
}

const codes: { readonly [A in MemoryAccess]: CUmemAccess_flags } = {
  none: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE,
  read: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ,
  readWrite: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
}

/** Access with its place resolved: checked, and ready for the driver. */
export interface ResolvedGrant {
  readonly place: ResolvedPlace
  readonly access: MemoryAccess
}

const grantKeys: OptionKeys<AccessGrant> = { place: true, access: true }

/** @throws TypeError, RangeError; DisposedError for a context that is gone. */
export function resolveGrants(grants: readonly AccessGrant[], api: string): ResolvedGrant[] {
  return requireList(grants, api, 'access').map((grant, index) => {
    const name = `access[${index}]`
    const { place, access } = requireOptions<AccessGrant>(grant, api, grantKeys, name)
    return { place: resolvePlace(place, api, `${name}.place`), access: requireAccess(access, api, `${name}.access`) }
  })
}

/** The same access for one place or for several. @throws TypeError, RangeError; DisposedError */
export function resolveSameAccess(
  places: MemoryPlace | readonly MemoryPlace[],
  access: MemoryAccess,
  api: string,
): ResolvedGrant[] {
  requireAccess(access, api, 'access')
  if (!isArray(places)) return [{ place: resolvePlace(places as MemoryPlace, api, 'places'), access }]
  return Array.from(places, (place, index) => ({ place: resolvePlace(place, api, `places[${index}]`), access }))
}

function requireAccess(access: MemoryAccess, api: string, name: string): MemoryAccess {
  requireKeyOf(access, api, name, codes)
  return access
}

interface GrantStruct {
  readonly memory: NativeMemory
  readonly words: U64Halves
}

/** The struct of each grant so far: there are few different ones, and each mapping needs one. */
const grantStructs = new Map<number, GrantStruct>()

function structOf({ place, access }: ResolvedGrant): GrantStruct {
  const { type, id } = place
  const key = placeKey(place) * 4 + codes[access]
  let struct = grantStructs.get(key)
  if (struct === undefined) {
    const memory = NativeMemory.allocate(CUmemAccessDesc.size)
    memory.bytes.set(CUmemAccessDesc.allocate({ location: { type, id }, flags: codes[access] }))
    struct = { memory, words: halvesOf(memory.address) }
    grantStructs.set(key, struct)
  }
  return struct
}

/** Grants as the driver reads them. */
export interface WrittenGrants {
  /** The array of `CUmemAccessDesc`. It is shared: nobody writes to it. */
  readonly memory: NativeMemory
  /** Its address. */
  readonly words: U64Halves
  readonly count: number
  /** Contexts of the devices that get access, each once. */
  readonly users: readonly Context[]
}

export function writeGrants(grants: readonly ResolvedGrant[]): WrittenGrants {
  const count = grants.length
  const [first] = grants
  const users = usersOf(grants)
  if (count === 1 && first !== undefined) {
    const { memory, words } = structOf(first)
    return { memory, words, count, users }
  }
  const memory = NativeMemory.allocate(count * CUmemAccessDesc.size)
  grants.forEach((grant, index) => {
    memory.bytes.set(structOf(grant).memory.bytes, index * CUmemAccessDesc.size)
  })
  return { memory, words: halvesOf(memory.address), count, users }
}

function usersOf(grants: readonly ResolvedGrant[]): readonly Context[] {
  const users: Context[] = []
  for (const { place, access } of grants) {
    const { context } = place
    if (context !== undefined && access !== 'none' && !users.includes(context)) users.push(context)
  }
  return users
}

/** Access as the driver writes it. */
export function readAccess(bits: number): MemoryAccess {
  return bits === codes.readWrite ? 'readWrite' : bits === codes.read ? 'read' : 'none'
}

/** `cuMemSetAccess` for a range of addresses. */
export function setAccess(address: bigint, byteLength: number, { memory, count }: WrittenGrants): void {
  if (count === 0) return
  check(cuMemSetAccess(address, byteLength, memory, count), 'cuMemSetAccess')
}

/** `cuMemGetAccess` at an address. */
export function getAccess(address: bigint, place: ResolvedPlace): MemoryAccess {
  const out = scratch()
  out.u64[0] = 0n
  const location = CUmemLocation.allocate({ type: place.type, id: place.id })
  check(cuMemGetAccess(out, location, address), 'cuMemGetAccess')
  return readAccess(Number(out.u64[0]))
}
