import { cudaDeviceAttr, cudaDeviceP2PAttr, cudaLimit } from '@shoal/cuda-sys/runtime'
import { describeValue } from '@shoal/types'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** The attributes of a device: `cudaDeviceAttr` without its prefix, such as `'MultiProcessorCount'`. */
export type DeviceAttribute = Exclude<WithoutPrefix<keyof typeof cudaDeviceAttr, 'cudaDevAttr'>, 'Max'>

/** What links two devices: `cudaDeviceP2PAttr` without its prefix. */
export type PeerAttribute = WithoutPrefix<keyof typeof cudaDeviceP2PAttr, 'cudaDevP2PAttr'>

/** The limits of a device: `cudaLimit` without its prefix, such as `'StackSize'`. */
export type DeviceLimit = WithoutPrefix<keyof typeof cudaLimit, 'cudaLimit'>

function codeOf<C extends number>(codes: Readonly<Record<string, C>>, prefix: string, name: string, what: string): C {
  const key = prefix + String(name)
  if (name === 'Max' || !Object.hasOwn(codes, key)) throw new TypeError(`unknown ${what} ${describeValue(name)}`)
  return codes[key] as C
}

/** The code of an attribute, or a TypeError for a name there is not. */
export function deviceAttributeCode(attribute: DeviceAttribute): cudaDeviceAttr {
  return codeOf<cudaDeviceAttr>(cudaDeviceAttr, 'cudaDevAttr', attribute, 'device attribute')
}

export function peerAttributeCode(attribute: PeerAttribute): cudaDeviceP2PAttr {
  return codeOf<cudaDeviceP2PAttr>(cudaDeviceP2PAttr, 'cudaDevP2PAttr', attribute, 'peer attribute')
}

export function limitCode(limit: DeviceLimit): cudaLimit {
  return codeOf<cudaLimit>(cudaLimit, 'cudaLimit', limit, 'limit')
}

/** Every attribute by name, in the order of the C header; names that share a code are all there. */
export function deviceAttributeNames(): readonly DeviceAttribute[] {
  return Object.keys(cudaDeviceAttr)
    .filter((name) => name !== 'cudaDevAttrMax')
    .map((name) => name.slice('cudaDevAttr'.length) as DeviceAttribute)
}
