import { RendezvousError } from '../errors.js'

/** Address of a rendezvous: `tcp://127.0.0.1:40123`, `tcp://[::1]:40123` or `unix:///run/user/1000/…`. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** Formats an address for `SHOAL_RENDEZVOUS`. */
export function formatAddress(address: Address): string {
  if (address.kind === 'unix') return `unix://${address.path}`
  return `tcp://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}

/** Parses an address of {@link formatAddress}. @throws RendezvousError */
export function parseAddress(text: string): Address {
  if (text.startsWith('unix:///')) return { kind: 'unix', path: text.slice('unix://'.length) }
  const match = /^tcp:\/\/(?:\[([^[\]]+)\]|([^:/[\]]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port < 1 || port > 65535) {
    throw new RendezvousError(`'${text}' is no address of a rendezvous: tcp://HOST:PORT or unix:///PATH`)
  }
  return { kind: 'tcp', host, port }
}

/** Returns options for `net.connect` and `server.listen`. */
export function socketOptions(address: Address): { path: string } | { host: string; port: number } {
  return address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }
}
