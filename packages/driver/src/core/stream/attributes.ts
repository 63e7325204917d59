import type { CUlaunchAttributeID, CUstream } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { type OptionKeys, requireKeyOf, requireOptions, withJson } from '@shoal/types'
import { EncodedAttributes, type LaunchAttributes } from '../attributes/launchAttributes.js'
import type { Context } from '../context/context.js'

/** Attributes for all kernels of a stream (`CUstreamAttrValue`, `cudaStreamAttrValue`). */
export interface StreamAttributes
  extends Pick<
    LaunchAttributes,
    'accessPolicyWindow' | 'priority' | 'memorySynchronizationDomainMap' | 'memorySynchronizationDomain'
  > {
  /** How host threads wait for the stream. */
  readonly synchronizationPolicy?: 'auto' | 'spin' | 'yield' | 'blocking' | undefined
}

/** Current attributes of a stream. The access window has an address instead of a memory object. */
export interface StreamAttributeValues extends Required<Omit<StreamAttributes, 'accessPolicyWindow'>> {
  /** The access window; undefined if none was set. */
  readonly accessPolicyWindow:
    | {
        readonly address: bigint
        readonly byteLength: number
        readonly hitRatio: number
        readonly hit: 'normal' | 'streaming' | 'persisting'
        readonly miss: 'normal' | 'streaming'
      }
    | undefined
}

const attributeKeys: OptionKeys<StreamAttributes> = {
  accessPolicyWindow: true,
  synchronizationPolicy: true,
  priority: true,
  memorySynchronizationDomainMap: true,
  memorySynchronizationDomain: true,
}

// Values of CUlaunchAttributeID
const ids = { window: 1, policy: 3, priority: 8, domainMap: 9, domain: 10 } as const
const policies = [undefined, 'auto', 'spin', 'yield', 'blocking'] as const
const policyCodes = { auto: 1, spin: 2, yield: 3, blocking: 4 } as const
const properties = ['normal', 'streaming', 'persisting'] as const
const valueBytes = 64

/**
 * Sets the given attributes (`cuStreamSetAttribute`, `cudaStreamSetAttribute`). @throws TypeError, RangeError,
 * DisposedError, StatusError
 */
export function setAttributes(context: Context, stream: CUstream, attributes: StreamAttributes, api: string): void {
  requireOptions(attributes, api, attributeKeys, 'attributes')
  const { synchronizationPolicy, ...shared } = attributes
  const entries = [...EncodedAttributes.of(shared, api).entries()]
  if (synchronizationPolicy !== undefined) {
    const value = new Uint8Array(valueBytes)
    value[0] = requireKeyOf(synchronizationPolicy, api, 'synchronizationPolicy', policyCodes)
    entries.push({ id: ids.policy, value })
  }
  for (const { id, value } of entries) context._call('streamSetAttribute', stream, id as CUlaunchAttributeID, value)
}

/** Reads all attributes (`cuStreamGetAttribute`, `cudaStreamGetAttribute`). @throws DisposedError, StatusError */
export function readAttributes(context: Context, stream: CUstream): StreamAttributeValues {
  const memory = NativeMemory.allocate(valueBytes)
  const view = new DataView(memory.buffer)
  const read = <T>(id: number, decode: () => T): T => {
    context._call('streamGetAttribute', stream, id as CUlaunchAttributeID, memory)
    return decode()
  }
  return withJson({
    accessPolicyWindow: read(ids.window, () => {
      const byteLength = Number(view.getBigUint64(8, true))
      if (byteLength === 0) return undefined
      return {
        address: view.getBigUint64(0, true),
        byteLength,
        hitRatio: view.getFloat32(16, true),
        hit: properties[view.getInt32(20, true)] ?? 'normal',
        miss: view.getInt32(24, true) === 1 ? 'streaming' : 'normal',
      }
    }),
    synchronizationPolicy: read(ids.policy, () => policies[view.getInt32(0, true)] ?? 'auto'),
    priority: read(ids.priority, () => view.getInt32(0, true)),
    memorySynchronizationDomainMap: read(ids.domainMap, () => ({
      default: view.getUint8(0),
      remote: view.getUint8(1),
    })),
    memorySynchronizationDomain: read(ids.domain, () => (view.getInt32(0, true) === 1 ? 'remote' : 'default')),
  })
}
