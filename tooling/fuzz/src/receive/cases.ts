/** One case of the campaign: the seed determines the messages and the channel. */
import { Random } from '@shoal/conformance'
import type { Memories, Template } from './memories.js'
import { mutateBytes, mutateData, mutateDescriptors, pick } from './mutate.js'

/** Content of one send to a socket. If `isRaw` is set, `DescriptorSocket` puts no frame around it. */
export interface Part {
  readonly bytes: Uint8Array
  readonly descriptors: readonly number[]
  readonly isRaw: boolean
}

export const kinds = ['memory', 'handle', 'frame', 'receive', 'share', 'thread', 'death'] as const
export type Kind = (typeof kinds)[number]

export interface Case {
  readonly seed: number
  readonly kind: Kind
  readonly template: Template
  /** True if the case contains no mistake. */
  readonly isRight: boolean
  readonly parts: readonly Part[]
  /**
   * Messages of a channel that announce a share, in which `path` is still empty. `answers` are the receiver's answers.
   */
  readonly offers: readonly object[]
  readonly answers: readonly object[]
}

const weights: { readonly [K in Kind]: number } = {
  memory: 500,
  handle: 100,
  frame: 100,
  receive: 120,
  share: 60,
  thread: 118,
  death: 2,
}

function kindOf(random: Random): Kind {
  let at = random.integer(0, 999)
  for (const kind of kinds) {
    at -= weights[kind]
    if (at < 0) return kind
  }
  return 'memory'
}

export function framed(bytes: Uint8Array, descriptors: number): Uint8Array {
  const frame = Buffer.alloc(8 + bytes.length)
  frame.writeUInt32LE(bytes.length, 0)
  frame.writeUInt32LE(descriptors, 4)
  frame.set(bytes, 8)
  return frame
}

function templateOf(random: Random, kind: Kind, { shared, handles }: Memories): Template {
  if (kind === 'handle') return pick(random, handles)
  const found = pick(random, shared)
  // Many pieces take long, so only one in eight of these draws is used.
  return found.messages.length > 1 && random.integer(0, 7) > 0 ? (shared[0] as Template) : found
}

/** Returns a message with up to three changes: in its data, its bytes or its descriptors, or of the whole message. */
function changedPart(random: Random, { data, descriptors }: Template['messages'][number], memories: Memories): Part {
  let changed: unknown = data
  let list = descriptors
  let mutate: ((bytes: Uint8Array) => Uint8Array) | undefined
  for (let count = random.integer(1, 3); count > 0; count -= 1) {
    const what = random.integer(0, 9)
    if (what < 6) changed = mutateData(random, changed)
    else if (what < 8) list = mutateDescriptors(random, list, memories.strays)
    else if (what === 8) mutate = (bytes) => mutateBytes(random, bytes)
    else changed = pick(random, [...memories.shared, ...memories.handles]).messages[0]?.data
  }
  const bytes = Buffer.from(JSON.stringify(changed) ?? '')
  return { bytes: (mutate?.(bytes) ?? bytes).subarray(0, 2 ** 20), descriptors: list, isRaw: false }
}

function partsOf(random: Random, template: Template, isRight: boolean, memories: Memories): Part[] {
  const right = template.messages.map(
    ({ data, descriptors }): Part => ({ bytes: Buffer.from(JSON.stringify(data)), descriptors, isRaw: false }),
  )
  if (isRight) return right
  const at = random.integer(0, right.length - 1)
  const parts = [...right]
  const what = random.integer(0, 9)
  if (what === 0) parts.splice(at, 1)
  else if (what === 1) parts.splice(at, 0, parts[at] as Part)
  else parts[at] = changedPart(random, template.messages[at] as Template['messages'][number], memories)
  return parts
}

/** Returns frames whose header differs from the content, with descriptors where none belong. */
function frames(random: Random, part: Part, memories: Memories): Part[] {
  const announced = pick(random, [part.descriptors.length, 0, 1, 64, 65, 2 ** 31, 2 ** 32 - 1])
  const frame = Buffer.from(framed(part.bytes, announced))
  if (random.integer(0, 2) === 0) frame.writeUInt32LE(pick(random, [0, 1, 2 ** 20, 2 ** 20 + 1, 2 ** 32 - 1]), 0)
  const bytes = random.integer(0, 2) === 0 ? mutateBytes(random, frame) : frame
  const cut = random.integer(0, bytes.length)
  const strays = (): number[] => Array.from({ length: random.integer(0, 64) }, () => pick(random, memories.strays))
  const pieces: Part[] = [
    {
      bytes: bytes.subarray(0, cut),
      descriptors: random.integer(0, 1) === 0 ? part.descriptors : strays(),
      isRaw: true,
    },
    { bytes: bytes.subarray(cut), descriptors: random.integer(0, 1) === 0 ? [] : strays(), isRaw: true },
  ]
  return pieces.filter((piece) => piece.bytes.length > 0)
}

export function caseOf(seed: number, memories: Memories, only?: Kind): Case {
  const random = new Random(seed)
  const drawn = kindOf(random)
  const kind = only ?? drawn
  const isRight = kind !== 'frame' && kind !== 'death' && random.integer(0, 19) === 0
  const template = templateOf(random, kind, memories)
  const right = partsOf(random, template, true, memories)
  const first = right[0] as Part
  const parts =
    kind === 'frame'
      ? frames(random, first, memories)
      : kind === 'death'
        ? [first]
        : partsOf(random, template, isRight, memories)
  const offer = { shoal: 'share', version: 1, id: `${seed}`, path: '' }
  const changes = isRight ? 0 : random.integer(0, 1)
  const wrongOffers = changes === 1 && random.integer(0, 1) === 0
  const offers = wrongOffers ? [mutateData(random, offer), mutateData(random, offer)] : [offer]
  const answers: unknown[] = [{ type: 'ready' }, { type: random.integer(0, 4) === 0 ? 'refused' : 'taken' }]
  if (!isRight) answers[random.integer(0, 1)] = mutateData(random, pick(random, answers))
  const objects = (list: readonly unknown[]): object[] =>
    list.filter((one) => typeof one === 'object' && one !== null) as object[]
  return { seed, kind, template, isRight, parts, offers: objects(offers), answers: objects(answers) }
}
