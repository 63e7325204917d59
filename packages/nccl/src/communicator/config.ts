import type { NativeMemory } from '@shoal/ffi'
import {
  initialNcclConfig,
  NCCL_API_MAGIC,
  NCCL_CONFIG_UNDEF_INT,
  NCCL_CTA_POLICY_DEFAULT,
  NCCL_CTA_POLICY_EFFICIENCY,
  NCCL_CTA_POLICY_ZERO,
  type NcclConfigValues,
  ncclConfig_t,
  ncclConfigFields,
} from '@shoal/nccl-sys'
import {
  isInstance,
  type OptionKeys,
  outOfRange,
  requireBoolean,
  requireInteger,
  requireKeyOf,
  requireOptions,
  requireText,
  wrongType,
} from '@shoal/types'

/** How NCCL spends thread blocks: `NCCL_CTA_POLICY_DEFAULT`, `…_EFFICIENCY`, `…_ZERO`. */
export type CtaPolicy = 'default' | 'efficiency' | 'zero'

/**
 * Configuration of a communicator (`ncclConfig_t`), with NCCL's own names.
 *
 * NCCL or its environment variables determine omitted fields. The available fields depend on the loaded library:
 * `communicatorConfigFields()` returns them, and an unknown field throws VersionTooOldError.
 */
export interface CommunicatorConfig {
  /**
   * If false, NCCL returns from every call immediately and continues in the background; `ready()` waits for this work.
   * An init, a split or an operation that waits for a lost rank can then be aborted. Default: true. NCCL 2.14.
   */
  readonly blocking?: boolean | undefined
  /** Thread blocks in a cluster, 0 to 8. NCCL 2.17. */
  readonly cgaClusterSize?: number | undefined
  /** Minimum number of thread blocks of a kernel. NCCL 2.17. */
  readonly minCTAs?: number | undefined
  /** Maximum number of thread blocks of a kernel. NCCL 2.17. */
  readonly maxCTAs?: number | undefined
  /** Name of the network, such as `'IB'` or `'Socket'`. NCCL 2.17. */
  readonly netName?: string | undefined
  /** Whether communicators created by `split()` share the resources of this one. NCCL 2.18. */
  readonly splitShare?: boolean | undefined
  /** Traffic class of the network. NCCL 2.25. */
  readonly trafficClass?: number | undefined
  /** A name for logs and profilers. NCCL 2.27. */
  readonly commName?: string | undefined
  /** Whether in-network reductions may be used. NCCL 2.27. */
  readonly collnetEnable?: boolean | undefined
  /** Goal for the use of thread blocks: speed, or as few as possible. NCCL 2.27. */
  readonly CTAPolicy?: CtaPolicy | undefined
  /** Whether communicators created by `shrink()` share the resources of this one. NCCL 2.27. */
  readonly shrinkShare?: boolean | undefined
  /** Thread blocks of NVLink SHARP kernels. NCCL 2.27. */
  readonly nvlsCTAs?: number | undefined
  /** Channels per peer over the network. NCCL 2.28. */
  readonly nChannelsPerNetPeer?: number | undefined
  /** Whether operations are scheduled around NVLink. NCCL 2.28. */
  readonly nvlinkCentricSched?: boolean | undefined
  /** 0: no CUDA graphs, 1: one graph at a time, 2: several graphs, or graphs together with other work. NCCL 2.29. */
  readonly graphUsageMode?: number | undefined
  /** Contexts for one-sided operations. NCCL 2.29. */
  readonly numRmaCtx?: number | undefined
  /** Maximum number of peers in point-to-point operations. NCCL 2.30. */
  readonly maxP2pPeers?: number | undefined
  /** Whether operations captured into graphs keep the order of their streams. NCCL 2.30.5. */
  readonly graphStreamOrdering?: boolean | undefined
  /**
   * Bytes of an `ncclConfig_t` as the start value, for fields unknown to this package. `size`, `magic` and `version`
   * must come from the header that defines the bytes (`NCCL_CONFIG_INITIALIZER`). The fields above overwrite these
   * bytes, and `blocking`, `splitShare` and `shrinkShare` are required. `initialNcclConfig` of `@shoal/nccl-sys`
   * creates bytes from known fields.
   */
  readonly raw?: Uint8Array | undefined
}

type Field = Exclude<keyof CommunicatorConfig, 'raw'>
type Rule =
  | { readonly kind: 'flag' | 'text' | 'policy' }
  | { readonly kind: 'number'; readonly least: number; readonly most: number }

const largest = 0x7fff_ffff
const flag: Rule = { kind: 'flag' }
const text: Rule = { kind: 'text' }
const number = (least: number, most = largest): Rule => ({ kind: 'number', least, most })

const rules: { readonly [F in Field]-?: Rule } = {
  blocking: flag,
  cgaClusterSize: number(0, 8),
  minCTAs: number(1),
  maxCTAs: number(1),
  netName: text,
  splitShare: flag,
  trafficClass: number(0),
  commName: text,
  collnetEnable: flag,
  CTAPolicy: { kind: 'policy' },
  shrinkShare: flag,
  nvlsCTAs: number(1),
  nChannelsPerNetPeer: number(1),
  nvlinkCentricSched: flag,
  graphUsageMode: number(0, 2),
  numRmaCtx: number(1),
  maxP2pPeers: number(1),
  graphStreamOrdering: flag,
}

const policies: { readonly [P in CtaPolicy]: number } = {
  default: NCCL_CTA_POLICY_DEFAULT,
  efficiency: NCCL_CTA_POLICY_EFFICIENCY,
  zero: NCCL_CTA_POLICY_ZERO,
}

/**
 * Returns the fields of `CommunicatorConfig` that the loaded NCCL supports.
 *
 * @throws LibraryNotFoundError when NCCL is missing, VersionTooOldError when it has no configuration (before 2.14).
 */
export function communicatorConfigFields(): (keyof CommunicatorConfig)[] {
  return ncclConfigFields().filter((field): field is Field => Object.hasOwn(rules, field))
}

/**
 * Encodes a config as the `ncclConfig_t` of the loaded NCCL; undefined without a config.
 *
 * @throws TypeError, RangeError for wrong fields; VersionTooOldError for fields unknown to the library.
 */
export function nativeConfig(config: CommunicatorConfig | undefined, api: string): NativeMemory | undefined {
  if (config === undefined) return undefined
  const { raw, ...named } = requireOptions(config, api, configKeys, 'config')
  if (raw !== undefined) requireRaw(raw, named, api)
  const values: Record<string, number | string> = {}
  for (const [field, value] of Object.entries(named)) {
    if (value !== undefined) values[field] = nativeValue(rules[field as Field], value, api, `config.${field}`)
  }
  const { minCTAs, maxCTAs } = named
  if (minCTAs !== undefined && maxCTAs !== undefined && minCTAs > maxCTAs) {
    throw new RangeError(`${api}: config.minCTAs must be at most config.maxCTAs, ${maxCTAs}, not ${minCTAs}`)
  }
  return initialNcclConfig(values as NcclConfigValues, undefined, raw)
}

const configKeys = { raw: true, ...rules } as unknown as OptionKeys<CommunicatorConfig>
/** Fields that this package itself uses. */
const ownFields = ['blocking', 'splitShare', 'shrinkShare'] as const
const mostBytes = 4096

/** Checks that bytes start like an `ncclConfig_t`. @throws TypeError, RangeError */
function requireRaw(raw: Uint8Array, others: CommunicatorConfig, api: string): void {
  if (!isInstance(raw, Uint8Array)) throw wrongType(api, 'config.raw', 'a Uint8Array', raw)
  const { length } = raw
  const { offsets } = ncclConfig_t
  // `size`, `magic` and `version` precede the fields.
  const least = offsets.blocking
  if (length < least || length > mostBytes) {
    throw outOfRange(api, 'config.raw', `an ncclConfig_t of ${least} to ${mostBytes} bytes`, length)
  }
  const view = new DataView(raw.buffer, raw.byteOffset, length)
  const size = view.getBigUint64(offsets.size, true)
  if (size !== BigInt(length)) throw outOfRange(api, 'config.raw', `${length} bytes by its own size`, size)
  const magic = view.getUint32(offsets.magic, true)
  if (magic !== NCCL_API_MAGIC) throw outOfRange(api, 'config.raw', `a struct with the magic ${NCCL_API_MAGIC}`, magic)
  for (const field of ownFields) {
    const at = offsets[field]
    if (others[field] !== undefined || at + 4 > length || view.getInt32(at, true) === NCCL_CONFIG_UNDEF_INT) continue
    throw new RangeError(`${api}: config.raw must leave ${field} unset; name it in config instead`)
  }
}

function nativeValue(rule: Rule, value: unknown, api: string, name: string): number | string {
  switch (rule.kind) {
    case 'flag':
      return requireBoolean(value, api, name) ? 1 : 0
    case 'text':
      return requireText(value, api, name)
    case 'policy':
      return requireKeyOf(value, api, name, policies)
    case 'number':
      return requireInteger(value, api, name, rule.least, rule.most)
  }
}

/**
 * Whether communicators from a split or a shrink share the resources of one with this config. NCCL's environment
 * variables override the config.
 */
export function sharesResources(config: CommunicatorConfig, how: 'split' | 'shrink'): boolean {
  const forced = process.env[`NCCL_COMM_${how.toUpperCase()}_SHARE_RESOURCES`]
  if (forced === '0' || forced === '1') return forced === '1'
  return (how === 'split' ? config.splitShare : config.shrinkShare) === true
}

/**
 * Whether a communicator from another one is blocking. Without a config it inherits the other's mode; a config without
 * the field means NCCL's default. NCCL's environment variable overrides both.
 */
export function blocks(config: CommunicatorConfig | undefined, before: boolean): boolean {
  const forced = process.env['NCCL_COMM_BLOCKING']
  if (forced === '0' || forced === '1') return forced === '1'
  return config === undefined ? before : config.blocking !== false
}
