import { LaunchEnvironmentError } from '../errors.js'
import { type Address, parseAddress } from '../rendezvous/address.js'
import type { Target } from '../rendezvous/attempt.js'
import type { RankPlace } from './place.js'
import { type Environment, numberIn, requiredNumber, textIn } from './variables.js'

/** A rank of `shoal run`, or of another program that serves a rendezvous and sets its address. */
export interface ShoalPlace extends RankPlace {
  readonly target: Target
}

export function readShoal(environment: Environment): ShoalPlace | undefined {
  const rendezvous = textIn(environment, 'SHOAL_RENDEZVOUS')
  if (rendezvous === undefined) return undefined
  const because = 'SHOAL_RENDEZVOUS names the rendezvous of a job'
  return {
    launcher: 'shoal',
    rank: requiredNumber(environment, 'RANK', because),
    worldSize: requiredNumber(environment, 'WORLD_SIZE', because),
    localRank: numberIn(environment, 'LOCAL_RANK'),
    localWorldSize: numberIn(environment, 'LOCAL_WORLD_SIZE'),
    nodeRank: numberIn(environment, 'GROUP_RANK'),
    target: { address: readAddress(rendezvous), secret: readSecret(environment, because) },
  }
}

/** Parses `SHOAL_RENDEZVOUS`. @throws LaunchEnvironmentError */
function readAddress(text: string): Address {
  try {
    return parseAddress(text)
  } catch (cause) {
    throw new LaunchEnvironmentError(`SHOAL_RENDEZVOUS: ${(cause as Error).message}`, { cause })
  }
}

/** Returns the secret: any text of at least 16 bytes. @throws LaunchEnvironmentError */
export function readSecret(environment: Environment, because: string): Uint8Array {
  const text = textIn(environment, 'SHOAL_SECRET')
  if (text === undefined) {
    throw new LaunchEnvironmentError(
      `${because}, and SHOAL_SECRET is not set. Give all ranks the same random text, for example: ` +
        'export SHOAL_SECRET=$(openssl rand -hex 32)',
    )
  }
  const bytes = Buffer.from(text)
  if (bytes.byteLength < 16) {
    throw new LaunchEnvironmentError(`SHOAL_SECRET has ${bytes.byteLength} bytes; a secret has at least 16`)
  }
  return bytes
}
