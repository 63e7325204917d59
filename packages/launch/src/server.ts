export { type Address, formatAddress, parseAddress } from './rendezvous/address.js'
export { RendezvousServer, type ServerOptions } from './rendezvous/server.js'
