export { type Address, formatAddress, parseAddress } from './rendezvous/address.js'
export { serveAsHelper } from './rendezvous/helper.js'
export { RendezvousServer, type ServerOptions } from './rendezvous/server.js'
